"""Runs the tutorials of docs/tutorials/ command by command, and compares what they show. SINEW names `sinew`. Needs the
packages of tests/requirements.txt."""
import os
import pathlib
import random
import shutil
import tempfile
import unittest

import page

SINEW = os.environ["SINEW"]
TUTORIALS = page.ROOT / "docs" / "tutorials"


def passengers(path):
    """Writes a table like that of the Titanic's passengers, with made-up rows: the real one is not part of the project."""
    draw = random.Random(1)
    lines = ["survived,pclass,sex,age,sibsp,parch,fare,embarked,class,who,adult_male,deck,embark_town,alive,alone"]
    for number in range(891):
        sex, pclass = draw.choice(["male", "male", "female"]), draw.choice([1, 2, 3, 3])
        age = "" if draw.random() < 0.2 else round(draw.uniform(1, 70), 1)
        who = "child" if age != "" and age < 16 else {"male": "man", "female": "woman"}[sex]
        survived = int(draw.random() < (0.15 if who == "man" else 0.8))
        deck = "G" if number % 250 == 0 else "" if draw.random() < 0.6 else draw.choice("ABCDEF")
        harbour, town = draw.choice([("S", "Southampton"), ("C", "Cherbourg"), ("Q", "Queenstown")])
        sibsp, parch = draw.choice([0, 0, 0, 1, 2]), draw.choice([0, 0, 0, 1, 2])
        lines.append(f"{survived},{pclass},{sex},{age},{sibsp},{parch},{draw.uniform(5, 90) / pclass:.4f},{harbour},"
                     f"{['First', 'Second', 'Third'][pclass - 1]},{who},{who == 'man'},{deck},{town},{['no', 'yes'][survived]},{sibsp + parch == 0}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


class Tutorials(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def runs_as_written(self, name, least):
        steps = page.steps_of((TUTORIALS / name).read_text(encoding="utf-8"))
        commands = page.run(steps, self.folder, SINEW)
        self.assertGreaterEqual(len(commands), least)
        found = [difference for command in commands for difference in page.differences(command)]
        if found:
            self.fail("\n\n".join(found))

    def test_table(self):
        real = pathlib.Path(os.environ.get("SINEW_DATA", "/none"), "tabular", "titanic.csv")
        if real.exists():
            shutil.copy(real, self.folder / "titanic.csv")
        else:
            passengers(self.folder / "titanic.csv")
        self.runs_as_written("table.md", 20)

    def test_images(self):
        self.runs_as_written("images.md", 10)

    def test_own_model(self):
        self.runs_as_written("own-model.md", 6)

    def test_every_tutorial_is_run(self):
        pages = {path.stem.replace("-", "_") for path in TUTORIALS.glob("*.md")}
        self.assertEqual({name for name in pages if not hasattr(self, f"test_{name}")}, set())


class Reader(unittest.TestCase):
    """The reader of pages itself: it must see what does not come true."""

    def check(self, text):
        with tempfile.TemporaryDirectory() as folder:
            return [what for command in page.run(page.steps_of(text), pathlib.Path(folder), SINEW) for what in page.differences(command)]

    def test_true_pages_pass(self):
        self.assertEqual(self.check("Save these lines as `x.txt`:\n\n```\nloss 0.25 after 3 steps\n```\n\n"
                                    "```console\n$ A=5\n$ cat x.txt\nloss 7.5 ... 9 steps\n$ echo $A\n5\n```\n"), [])
        self.assertEqual(self.check("```console\n$ echo 'bad [SOME_CODE]'; false\nbad [SOME_CODE]\n```\n"), [])

    def test_false_pages_fail(self):
        for text in ("$ echo one\ntwo\n", "$ false\n", "$ echo 'bad [SOME_CODE]'\nbad [SOME_CODE]\n", "$ echo 'a b c'\na ... d\n", "$ cat x.txt\n"):
            self.assertNotEqual(self.check(f"```console\n{text}```\n"), [], text)


if __name__ == "__main__":
    unittest.main()
