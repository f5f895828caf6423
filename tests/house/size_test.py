"""Checks that functions and classes stay small; the list of exceptions here only shrinks."""
import re
import unittest

from house import ROOT, functions, source_files, text_of

LONGEST_FUNCTION = 80
LONGEST_CLASS = 200
LONGEST_COMMAND_FILE = 250  # lines of a file of cli/, which parses, calls and prints
LONGEST_CLI = 4200  # lines of all files of cli/ together, without tests

# (file, heading) -> the most lines of a function that is a table of test cases. Lower the number when the function
# shrinks. Never raise it, and never add a function.
LONG_FUNCTIONS = {
    ("src/checkpoint/safetensors_test.cpp", "std::vector<Malformed> malformed() {"): 85,
    ("src/spec/mutation_test.cpp", "const std::vector<Mutation>& mutations() {"): 97,
}
MOST_UNFORMATTED = 1


CLASS = re.compile(r"^( *)(?:class|struct) [^;{]*\{$")


def class_bodies(text):
    """Yields (first line, number of lines, heading) of every class and struct. Finds the end by indentation: a class
    closes at its own column."""
    lines = text.split("\n")
    for i, line in enumerate(lines):
        found = CLASS.match(line)
        if not found:
            continue
        end = next((j for j in range(i + 1, len(lines)) if lines[j].startswith(found.group(1) + "}")), i)
        yield i + 1, end - i + 1, line.strip()


class Size(unittest.TestCase):
    def test_no_function_is_longer_than_a_screen_and_a_half(self):
        found = []
        for path in source_files():
            for first, length, heading in functions(text_of(path)):
                if length > LONG_FUNCTIONS.get((str(path), heading), LONGEST_FUNCTION):
                    found.append(f"{path}:{first}: {length} lines: {heading}")
        self.assertEqual(found, [])

    def test_no_class_body_is_longer_than_it_can_be_understood(self):
        found = []
        for path in source_files():
            for first, length, heading in class_bodies(text_of(path)):
                if length > LONGEST_CLASS:
                    found.append(f"{path}:{first}: {length} lines: {heading}")
        self.assertEqual(found, [])

    def test_cli_parses_calls_and_prints_and_nothing_else(self):
        lines = {path: text_of(path).count("\n") for path in source_files()
                 if str(path).startswith("src/cli/") and not str(path).endswith("_test.cpp")}
        self.assertEqual({str(path): n for path, n in lines.items() if n > LONGEST_COMMAND_FILE}, {})
        self.assertLessEqual(sum(lines.values()), LONGEST_CLI)

    def test_the_list_of_unformatted_files_shrinks(self):
        names = text_of("tests/house/format_later.txt").split()
        self.assertLessEqual(len(names), MOST_UNFORMATTED)
        self.assertEqual([name for name in names if not (ROOT / name).is_file()], [], "gone: remove them from the list")

    def test_a_long_class_is_found(self):
        body = "".join(f"  int x{i} = {i};\n" for i in range(210))
        self.assertEqual([n for _, n, _ in class_bodies(f"class A : public B {{\n{body}}};\n")], [212])

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
