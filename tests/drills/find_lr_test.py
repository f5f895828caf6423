"""Tests `sinew find-lr`: the suggestion is repeatable and useful, and nothing is written but what was asked for."""
import json
import pathlib
import re
import tempfile
import unittest

import sinew_process as sp


class FindLr(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        cls.job = sp.write_job(cls.path, 80)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def found(self, *words):
        return json.loads(sp.run("find-lr", self.job, "--json", *words, check=0).stdout)

    def test_the_same_job_gets_the_same_suggestion_on_any_lanes(self):
        before = sorted(self.path.iterdir())
        one, two, again = self.found("trainer.lanes=1"), self.found("trainer.lanes=2"), self.found("trainer.lanes=2")
        self.assertEqual(one, two)
        self.assertEqual(two, again)
        self.assertLessEqual(len(one["steps"]), 100)
        self.assertAlmostEqual(one["steps"][0]["lr"], 1e-8, delta=1e-15)
        self.assertTrue(1e-6 < one["suggestion"] < 1, one["suggestion"])
        self.assertNotEqual(one["steps"], self.found("trainer.seed=1")["steps"])
        self.assertEqual(before, sorted(self.path.iterdir()))

    def test_training_with_the_suggestion_is_not_worse(self):
        def loss(name, *words):
            run = self.path / name
            sp.run("train", self.job, "--run-dir", run, "trainer.lanes=1", *words, check=0)
            return sp.report(run)["last"]["val/loss"]
        usual = loss("usual", "optimizer.lr=1e-3")
        suggested = loss("suggested", f"optimizer.lr={self.found()['suggestion']}")
        self.assertLess(suggested, 1.1 * usual)

    def test_the_text_says_how_to_use_it_and_warns_of_a_far_rate(self):
        said = sp.run("find-lr", self.job, "optimizer.lr=1e-9", check=0).stdout
        rate = re.search(r"^suggestion: (\S+),", said, re.MULTILINE).group(1)
        self.assertIn(f" optimizer.lr={rate}\n", said)
        self.assertIn("warning: optimizer.lr of the job is 1e-09", said)
        self.assertNotIn("warning", sp.run("find-lr", self.job, f"optimizer.lr={rate}", check=0).stdout)

    def test_plots(self):
        for name, begin in (("lr.svg", b"<?xml"), ("lr.png", b"\x89PNG")):
            picture = self.path / name
            sp.run("find-lr", self.job, "--plot", picture, check=0)
            self.assertTrue(picture.read_bytes().startswith(begin))
            picture.unlink()

    def test_mistakes_are_refused(self):
        for words, text in ((["--plot", "lr.pdf"], "PLOT_WRONG_ENDING"), (["--min-lr", "1", "--max-lr", "1e-3"], "--min-lr is not below"),
                            (["--steps", "3"], "--steps")):
            done = sp.run("find-lr", self.job, *words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(text, done.stderr)
            self.assertIn("  try: ", done.stderr)

    def test_a_loss_that_cannot_fall_is_an_error(self):
        done = sp.run("find-lr", self.job, "--max-lr", "1e-7")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("[LR_NOT_FOUND]", done.stderr)


if __name__ == "__main__":
    unittest.main()
