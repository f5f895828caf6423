"""Checks that the pages agree with the code and with each other: links, paths, the room table, commands, exit codes."""
import re
import unittest

from house import ROOT, project_files, source_files, text_of
from layers_test import MAY_INCLUDE

PAGES = [path for path in project_files() if path.suffix == ".md"]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
# A path in backquotes: it begins with a folder of the repository and has no placeholder.
PATH = re.compile(r"^(?:src|docs|tests|cmake|examples|bench|packaging)/[\w./-]*$")
# A path within src/: "train/engine.cpp", "base/".
IN_SOURCE = re.compile(rf"^(?:{'|'.join(MAY_INCLUDE)})/(?:[\w-]+\.(?:h|cpp))?$")

# MADE finds the codes in expressions that make an error. Calls that pass a code on (say, refuse, findings ...) have
# many names, so SAID finds every quoted or bracketed text that has the form of a code. Such a text counts as a code
# only if its first word (SPEC in SPEC_CONFLICT) is also the first word of a listed code.
CODE_FORM = r"([A-Z0-9]+(?:_[A-Z0-9]+)+)"
MADE = re.compile(r"\b(?:(?:Error|UsageError|ShardFailed|Diverged|LostConnection|Unsettled|ErrorCode)\s*\w*\(|ErrorCode\s+\w+\s*=|"
                  r"RefusalKind\s+\w+\s*\{\s*\d+\s*,|error_response\(\s*\d+\s*,)\s*\"" + CODE_FORM + '"')
SAID = re.compile(r'"' + CODE_FORM + r'"|\[' + CODE_FORM + r"\]")
# A command in a message: in backquotes, or at the beginning of a text.
HINT = re.compile(r'(?:`|")sinew ([a-z][\w-]*)([^`"\n]*)(?:`|")')


# A command on a page: in backquotes, or in a block, after a prompt or another command.
ON_PAGE = re.compile(r"(?:`|^|\$ |&& |/bin/|=1 |-- )sinew ([a-z][\w-]*)((?: [^`\n#|;]*)?)", re.MULTILINE)
OVERRIDE = re.compile(r"(?<![\w.{-])((?:[a-z_]+\.)+[a-z_]+)=")


def wrong_commands(page, sections, keys):
    """Returns the commands on a page that do not exist, or have an option or override that does not exist."""
    found = []
    for name, rest in ON_PAGE.findall(page):
        words = rest.split(" -- ")[0]  # the rest belongs to the command that sinew runs
        if name == "run":
            words = words.split(" python")[0]
        hint = wrong_hints(f"`sinew {name}{words}`", sections)
        unknown = [key for key in OVERRIDE.findall(words) if key not in keys and f"data.{key}" not in keys and not key.startswith("params.")]
        if hint or unknown:
            found.append(f"sinew {name}{rest} {unknown}")
    return found


def wrong_hints(text, sections):
    """Returns the commands in the text that do not exist, and those with an option that they do not have."""
    found = []
    for name, rest in HINT.findall(text):
        section = sections.get(name)
        if name in ("help", "was", "wrote"):  # "sinew was killed" is a sentence
            continue
        options = re.findall(r"(?<![\w-])--[a-z][\w-]*", rest)
        if section is None or any(option != "--help" and not re.search(re.escape(option) + r"\b", section) for option in options):
            found.append(f"sinew {name}{rest}")
    return found


NO_CODES = {
    "TEST_BROKEN", "TEST_FAILED",  # used only by headers for tests
    "RUN_DIR",                     # the name of an argument
    "REQUEST_LIMIT_EXCEEDED",      # a code of MLflow's API
}


def error_codes_in(text, areas):
    said = {quoted or bracketed for quoted, bracketed in SAID.findall(text)}
    return set(MADE.findall(text)) | {code for code in said if code.split("_")[0] in areas}


def fenced_removed(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text):
    """Returns the anchors that a renderer makes from the headings."""
    titles = re.findall(r"^#+ (.*)$", fenced_removed(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


class Docs(unittest.TestCase):
    def test_every_link_resolves(self):
        found = []
        for page in PAGES:
            for target in LINK.findall(fenced_removed(text_of(page))):
                if re.match(r"https?://", target):
                    continue
                name, _, anchor = target.partition("#")
                where = (ROOT / page).parent / name if name else ROOT / page
                if not where.exists():
                    found.append(f"{page}: {target} is not there")
                elif anchor and anchor not in anchors(where.read_text()):
                    found.append(f"{page}: {target} has no such heading")
        self.assertEqual(found, [])

    def test_every_path_named_exists(self):
        found = []
        for page in PAGES:
            for word in CODE.findall(fenced_removed(text_of(page))):
                if PATH.match(word) and not (ROOT / word).exists():
                    found.append(f"{page}: {word}")
                if IN_SOURCE.match(word) and not (ROOT / "src" / word).exists() and word not in ("model/", "data/"):
                    found.append(f"{page}: src/{word}")
        self.assertEqual(found, [])

    def test_paths_of_every_room_are_known(self):
        for path in (ROOT / "src").iterdir():
            self.assertTrue(IN_SOURCE.match(f"{path.name}/no_such_file.cpp"), path.name)

    def test_the_room_table_is_the_source_tree(self):
        rooms = re.findall(r"^\| `(\w+)/` \|", text_of("README.md"), re.MULTILINE)
        self.assertEqual(set(rooms), {path.name for path in (ROOT / "src").iterdir() if path.is_dir()})
        self.assertEqual(len(rooms), len(set(rooms)))

    def test_the_room_table_has_the_order_of_includes(self):
        rooms = re.findall(r"^\| `(\w+)/` \|", text_of("README.md"), re.MULTILINE)
        for room in rooms:
            for other in MAY_INCLUDE[room]:
                self.assertLess(rooms.index(other), rooms.index(room), f"{room} includes {other}, which stands below it")

    def test_every_command_is_documented(self):
        array = re.search(r"kCommands\[\] = \{(.*?)\n\};", text_of("src/cli/main.cpp"), re.DOTALL).group(1)
        commands = set(re.findall(r'^\s*\{"([\w-]+)",', array, re.MULTILINE))
        self.assertTrue(commands)
        page = set(re.findall(r"^## sinew ([\w-]+)", text_of("docs/reference/commands.md"), re.MULTILINE))
        self.assertEqual(page, commands)

    def test_hints_name_commands_and_options_that_exist(self):
        page = text_of("docs/reference/commands.md")
        sections = dict(re.findall(r"^## sinew ([\w-]+)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
        self.assertEqual(wrong_hints("throw Error(\"A_B\", \"x\", \"use `sinew train --workers 4`\");", sections), [])
        for wrong in ("`sinew trian`", "`sinew train --wrokers 4`"):
            self.assertEqual(len(wrong_hints(f'"try {wrong}"', sections)), 1, wrong)
        found, hints = [], 0
        for path in source_files():
            if re.search(r"_(test|bench|fuzz)\.cpp$", str(path)):
                continue
            text = text_of(path)
            hints += len(HINT.findall(text))
            found += [f"{path}: {wrong}" for wrong in wrong_hints(text, sections)]
        self.assertGreater(hints, 30)
        self.assertEqual(found, [])

    def test_pages_name_commands_and_options_that_exist(self):
        page = text_of("docs/reference/commands.md")
        sections = dict(re.findall(r"^## sinew ([\w-]+)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
        keys = set(re.findall(r"^(?:\| |### )`?([\w.]+)", text_of("docs/reference/job-file.md"), re.MULTILINE))  # options and sections
        for right in ("`sinew train job.yaml optimizer.lr=0.1`", "$ sinew eval last test.path=new", "sinew run params.x=1 -- a --no-such\n"):
            self.assertEqual(wrong_commands(right, sections, keys), [], right)
        for wrong in ("`sinew trian job.yaml`", "$ sinew train --wrokers 4", "sinew train job.yaml optimizer.rate=1\n"):
            self.assertEqual(len(wrong_commands(wrong, sections, keys)), 1, wrong)
        found, commands = [], 0
        for name in PAGES:
            if name.name == "CHANGELOG.md":
                continue  # it names commands of former versions, too
            text = text_of(name)
            commands += len(ON_PAGE.findall(text))
            found += [f"{name}: {wrong}" for wrong in wrong_commands(text, sections, keys)]
        self.assertGreater(commands, 200)
        self.assertEqual(found, [])

    def test_the_fields_of_coordinator_json_are_those_that_are_written(self):
        writer = re.search(r"^void write_coordinator_info\(.*?^}", text_of("src/cluster/coordinator_info.cpp"), re.MULTILINE | re.DOTALL)
        written = set(re.findall(r'"(\w+)"', writer.group(0)))
        self.assertIn("exit_code", written)
        row = re.search(r"^\| `coordinator.json` \|(.*)$", text_of("docs/formats/run-directory.md"), re.MULTILINE).group(1)
        self.assertLessEqual(set(re.findall(r"`(\w+)`", row)), written)

    def test_every_error_code_is_listed_and_every_listed_one_is_used(self):
        page = re.findall(r"^\| `([A-Z0-9_]+)` \|", text_of("docs/reference/errors.md"), re.MULTILINE)
        self.assertEqual(page, sorted(set(page)))
        areas = {code.split("_")[0] for code in page}
        used = error_codes_in(text_of("packaging/sinew/__main__.py"), areas)  # the launcher of an installed sinew
        for path in source_files():
            if not re.search(r"_(test|bench|fuzz)\.cpp$", str(path)):
                used |= error_codes_in(text_of(path), areas)
        self.assertGreater(len(used), 300)
        self.assertEqual(sorted(used - set(page) - NO_CODES), [])
        self.assertEqual(sorted(set(page) - used), [], "listed, but no source uses it")

    def test_error_codes_are_found_in_every_form(self):
        for text in ('throw Error("NEW_CODE",', 'throw UsageError(\n    "NEW_CODE", what', 'Error fail("NEW_CODE"',
                     'ErrorCode code = "NEW_CODE";', 'constexpr ErrorCode kCode = "NEW_CODE";', 'ErrorCode("NEW_CODE")',
                     'constexpr RefusalKind kCode{400, "NEW_CODE", "OF_MLFLOW"};', 'return error_response(413, "NEW_CODE",'):
            self.assertEqual(error_codes_in(text, {"SPEC"}), {"NEW_CODE"}, text)
        for text in ('say(key, "SPEC_NEW",', 'return "SPEC_NEW";', '"there is no command [SPEC_NEW]\\n"'):
            self.assertEqual(error_codes_in(text, {"SPEC"}), {"SPEC_NEW"}, text)
        self.assertEqual(error_codes_in('getenv("NO_COLOR")', {"SPEC"}), set())

    def test_exit_codes_are_those_of_the_code(self):
        body = re.search(r"enum ExitCode \{(.*?)\};", text_of("src/base/exit_code.h"), re.DOTALL).group(1)
        codes = set(re.findall(r"= (\d+)", body))
        page = set(re.findall(r"^\| `(\d+)` \|", text_of("docs/reference/exit-codes.md"), re.MULTILINE))
        self.assertLessEqual(codes, page)
        self.assertEqual(page - codes, {"130", "143"})  # codes of processes that a signal ended

    def test_the_readme_has_the_two_commands(self):
        readme = text_of("README.md")
        self.assertIn("\n./dev train examples/fashion-mnist.yaml\n", readme)
        self.assertIn("\n./dev test\n", readme)

    def test_required_pages_exist(self):
        for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "docs/glossary.md"):
            self.assertTrue((ROOT / name).is_file(), name)
        self.assertRegex(text_of("CHANGELOG.md"), r"(?m)^## ")

    def test_a_change_log_has_the_version_of_the_build(self):
        version = re.search(r"project\(sinew VERSION ([\d.]+)", text_of("CMakeLists.txt")).group(1)
        self.assertRegex(text_of("CHANGELOG.md"), rf"(?m)^## {re.escape(version)}\b")


if __name__ == "__main__":
    unittest.main()
