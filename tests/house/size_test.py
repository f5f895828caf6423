"""Files and functions stay small, and what is not yet in form gets less: the lists here only shrink."""
import subprocess
import unittest

from house import ROOT, functions, source_files, text_of

LONGEST_FUNCTION = 80
LONGEST_FILE = 400

# File -> lines it may have at most. Lower the number when the file shrinks, remove it at 400; never add or raise.
LONG_FILES = {
}
# Tables of cases written as one function: heading -> lines it may have at most. The same rule.
LONG_FUNCTIONS = {
    ("src/checkpoint/safetensors_test.cpp", "std::vector<Malformed> malformed() {"): 85,
    ("src/spec/mutation_test.cpp", "const std::vector<Mutation>& mutations() {"): 97,
}
MOST_UNFORMATTED = 1


class Size(unittest.TestCase):
    def test_no_function_is_longer_than_a_screen_and_a_half(self):
        found = []
        for path in source_files():
            for first, length, heading in functions(text_of(path)):
                if length > LONG_FUNCTIONS.get((str(path), heading), LONGEST_FUNCTION):
                    found.append(f"{path}:{first}: {length} lines: {heading}")
        self.assertEqual(found, [])

    def test_no_file_is_longer_than_one_thought(self):
        found = []
        for path in source_files():
            lines = text_of(path).count("\n")
            if lines > LONG_FILES.get(str(path), LONGEST_FILE):
                found.append(f"{path}: {lines} lines; at most {LONG_FILES.get(str(path), LONGEST_FILE)}")
        self.assertEqual(found, [])

    def test_the_exceptions_are_still_needed(self):
        for name in LONG_FILES:
            self.assertTrue((ROOT / name).is_file(), f"{name} is gone: remove it from LONG_FILES")
            self.assertGreater(text_of(name).count("\n"), LONGEST_FILE, f"{name} is short now: remove it from LONG_FILES")

    def test_the_list_of_unformatted_files_shrinks(self):
        names = text_of("tests/house/format_later.txt").split()
        self.assertLessEqual(len(names), MOST_UNFORMATTED)
        self.assertEqual([name for name in names if not (ROOT / name).is_file()], [], "gone: remove them from the list")

    def test_a_long_function_is_found(self):
        body = "".join(f"  int x{i} = {i};\n" for i in range(90))
        for heading in ("int f() {\n", "Thing::Thing(int a)\n    : a_(a) {\n", "TEST(A, B) {\n",
                        "std::vector<int> f(int first,\n                   int second) {\n"):
            text = f"namespace a {{\n\n{heading}{body}}}\n\n}}  // namespace a\n"
            self.assertEqual([length > LONGEST_FUNCTION for _, length, _ in functions(text)], [True], heading)
        member = "class A {\n  int f() const {\n" + body.replace("  int", "    int") + "  }\n};\n"
        self.assertEqual([length for _, length, _ in functions(member)], [92])


if __name__ == "__main__":
    unittest.main()
