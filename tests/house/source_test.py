"""Checks the form of source files, that every header is included somewhere, and that there is one list of packages."""
import re
import unittest

from house import ROOT, project_files, source_files, text_of

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


class Source(unittest.TestCase):
    def test_every_header_says_what_it_is_and_is_included_once(self):
        found = []
        for path in source_files():
            if path.suffix == ".h":
                text = text_of(path)
                if not text.startswith("// "):
                    found.append(f"{path}: begins without a comment that says why it is there")
                if not re.search(r"^#pragma once$", text, re.MULTILINE):
                    found.append(f"{path}: no #pragma once")
        self.assertEqual(found, [])

    def test_every_source_begins_with_a_comment_or_an_include(self):
        found = [str(path) for path in source_files()
                 if path.suffix == ".cpp" and not re.match(r"// |#include ", text_of(path))]
        self.assertEqual(found, [])

    def test_every_header_is_included_somewhere(self):
        included = {name for path in source_files() for name in INCLUDE.findall(text_of(path))}
        dead = [str(path) for path in source_files()
                if path.suffix == ".h" and str(path.relative_to("src")) not in included]
        self.assertEqual(dead, [])

    def test_every_source_that_the_build_names_exists(self):
        found, named = [], 0
        for path in project_files():
            if path.name == "CMakeLists.txt" or path.suffix == ".cmake":
                for name in re.findall(r"(?<![\w./-])(?:\$\{CMAKE_SOURCE_DIR\}/)?(src/[\w/.-]+\.(?:cpp|h))\b", text_of(path)):
                    named += 1
                    if not (ROOT / name).is_file():
                        found.append(f"{path}: {name} is not there")
        self.assertGreater(named, 10)
        self.assertEqual(found, [])

    def test_one_file_knows_the_rules_for_terminals(self):
        found = [str(path) for path in source_files() if not str(path).endswith("_test.cpp")
                 and re.search(r'\bisatty\(|ioctl\([^;]*TIOCGWINSZ|"(TERM|NO_COLOR|COLUMNS)"', text_of(path))]
        self.assertEqual(found, ["src/base/terminal.cpp"])

    def test_no_function_ends_the_process(self):
        # An error is thrown up to main(), which returns the exit code. The pattern does not match _exit(): code between
        # fork and exec, and signal handlers, must call it.
        found = [f"{path}: {match}" for path in source_files() if not str(path).endswith("_test.cpp")
                 for match in re.findall(r"(?:std::|(?<![\w:])(?:::)?)(?:exit|quick_exit)\([^;]*;", text_of(path))]
        self.assertEqual(found, [])

    def test_file_names_are_snake_case(self):
        found = [str(path) for path in source_files() if not re.fullmatch(r"[a-z][a-z0-9_]*\.(h|cpp)", path.name)]
        self.assertEqual(found, [])

    def test_no_file_is_named_helpers_or_the_like(self):
        found = [str(path) for path in source_files() if re.search(r"(util|helper|common|manager|misc)", path.name)]
        self.assertEqual(found, [])

    def test_json_with_replaced_bytes_is_written_in_one_place(self):
        may = {"json_text.cpp", "control.cpp"}
        found = [str(path) for path in source_files()
                 if "error_handler_t::replace" in text_of(path) and path.name not in may]
        self.assertEqual(found, [], "use dump_json of base/json_text.h")

    def test_text_files_end_with_one_newline_and_no_blanks(self):
        found = []
        for path in project_files():
            if path.suffix in (".h", ".cpp", ".py", ".md", ".sh", ".cmake", ".yaml") or path.name in ("dev", "Dockerfile"):
                text = text_of(path)
                if text and (not text.endswith("\n") or text.endswith("\n\n")):
                    found.append(f"{path}: must end with one newline")
                found += [f"{path}:{n}: blanks at the end" for n, line in enumerate(text.split("\n"), 1)
                          if line != line.rstrip()]
        self.assertEqual(found, [])


class Version(unittest.TestCase):
    def test_the_version_is_the_same_everywhere(self):
        version = re.search(r"project\(sinew VERSION ([0-9.]+)", text_of("CMakeLists.txt")).group(1)
        self.assertIn(f'#define SINEW_VERSION "{version}"', text_of("include/sinew/library.h"))
        self.assertIn(f'{{"sinew", "{version}"}}', text_of("src/train/environment.cpp"))


class Packages(unittest.TestCase):
    def packages(self, text, name):
        return set(re.search(rf"^{name}=\(([^)]*)\)", text, re.MULTILINE).group(1).split())

    def test_the_image_installs_what_dev_installs(self):
        dockerfile, dev = text_of("Dockerfile"), text_of("dev")
        build, runtime = re.split(r"^FROM ", dockerfile, flags=re.MULTILINE)[1:]
        self.assertRegex(build, r"\./dev build")  # ./dev installs the packages, so the image has no list of its own
        known = self.packages(dev, "PACKAGES")
        for stage in (build, runtime):
            for words in re.findall(r"apt-get install -y --no-install-recommends ([^&;]*)", stage.replace("\\\n", " ")):
                for package in words.split():
                    library = re.sub(r"[\d.]*(-\d+)?$", "", package)
                    library = {"libwebpdemux": "libwebp"}.get(library, library)  # they share one -dev package
                    self.assertTrue(package in known or any(name.startswith(library) for name in known),
                                    f"{package} is not in PACKAGES of ./dev")

    def test_the_image_does_not_run_as_root(self):
        dockerfile = text_of("Dockerfile")
        self.assertRegex(dockerfile, r'(?m)^ENTRYPOINT \["sinew"\]$')
        runtime = dockerfile.rsplit("\nFROM ", 1)[1]
        self.assertLess(runtime.index("\nUSER "), runtime.index("\nENTRYPOINT"))
        self.assertNotRegex(runtime, r"(?m)^USER (root|0)\b")


if __name__ == "__main__":
    unittest.main()
