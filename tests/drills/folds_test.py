"""Tests cross-validation with real trainings: every fold equals a training of that fold alone, whatever happens on the
way, and the means over the folds are what the folds measured."""
import json
import math
import pathlib
import re
import shutil
import signal
import statistics
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import sinew_process as sp

FOLDS = 3


class Folds(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        self.job = sp.write_job(self.path, 30)
        text = self.job.read_text().replace("split: {val: 0.1}", f"split: {{folds: {FOLDS}}}")
        self.assertIn("folds", text)
        self.job.write_text(text)
        self.run_directory = self.path / "runs/drill/all"

    def train(self, *words, check=0, where=None):
        return sp.run("train", self.job, "--run-dir", where or self.run_directory, *words, check=check)

    def digests(self, where=None):
        trials = (where or self.run_directory) / "trials"
        return [sp.report(trials / f"{fold:05d}")["digest"] for fold in range(FOLDS)]

    def start(self):
        """Starts a training of all folds, one after another, and waits until the first one has measured something."""
        process = sp.start("train", self.job, "--run-dir", self.run_directory, "--parallel", "1")
        self.addCleanup(process.stderr.close)
        first = self.run_directory / "trials/00000/metrics.jsonl"
        deadline = time.monotonic() + 120
        while not first.exists() or not first.read_text():
            self.assertIsNone(process.poll(), "it ended before it could be disturbed")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        return process

    def alone(self):
        """Trains each fold alone, and returns the digests."""
        found = []
        for fold in range(FOLDS):
            own = self.path / f"alone-{fold}"
            sp.run("train", self.job, "--run-dir", own, f"data.split.fold={fold}", check=0)
            found.append(sp.report(own)["digest"])
        return found

    def test_each_fold_is_a_training_and_the_table_has_their_means(self):
        said = self.train("data.split.test=0.1").stdout
        report = sp.report(self.run_directory)
        self.assertEqual((report["status"], report["exit_code"]), ("done", 0))
        self.assertEqual([fold["fold"] for fold in report["folds"]], list(range(FOLDS)))
        sizes = []
        for fold in report["folds"]:
            own = self.run_directory / fold["run"]
            last = {k: v for k, v in sp.report(own)["last"].items() if k.startswith(("val/", "test/"))}
            self.assertEqual(fold["metrics"], last)
            self.assertIn("test/accuracy", last)
            shown = json.loads(sp.run("eval", own, "--split", "val", "--json", check=0).stdout)
            self.assertEqual(shown["metrics"]["loss"], last["val/loss"])
            sizes.append(shown["samples"])
            other = json.loads(sp.run("eval", own, "--split", "val", f"val.images={self.path}/train-images",
                                      f"val.labels={self.path}/train-labels", "--json", check=0).stdout)
            self.assertEqual(other["samples"], 333)
        self.assertEqual(sum(sizes), 300, "each sample that is not test data is in one fold")
        self.assertEqual(len(set(self.digests())), FOLDS)
        for name in report["folds"][0]["metrics"]:
            values = [fold["metrics"][name] for fold in report["folds"]]
            self.assertTrue(math.isclose(report["last"][name], statistics.mean(values), rel_tol=1e-12), name)
            self.assertTrue(math.isclose(report["last"][name + "_std"], statistics.stdev(values), rel_tol=1e-9,
                                         abs_tol=1e-15), name)
        self.assertRegex(said, r"METRIC +MEAN +STD +FOLD 0 +FOLD 1 +FOLD 2")
        self.assertRegex(said, rf"val/accuracy +{report['last']['val/accuracy']:.3f}")
        root = self.path / "runs"
        rows = json.loads(sp.run("runs", "--root", root, "--format", "json", check=0).stdout)
        self.assertEqual([row["id"] for row in rows], ["all"], "the folds are one run")
        self.assertEqual(rows[0]["best"]["val/accuracy"], report["last"]["val/accuracy"])
        one = json.loads(sp.run("runs", "show", "all", "--root", root, "--format", "json", check=0).stdout)
        self.assertEqual(one["folds"], report["folds"])
        self.assertRegex(sp.run("runs", "show", "all", "--root", root, check=0).stdout, r"METRIC +MEAN +STD +FOLD 0")
        page = (self.run_directory / "report.html").read_text()
        self.assertIn("Metrics of the folds", page)
        self.assertIn("val/accuracy", page)
        self.assertRegex(page, r">fold 2  [\d.]+<", "a curve for each fold")
        picture = self.path / "folds.svg"
        sp.run("runs", "plot", self.run_directory, "--metric", "val/loss", "--output", picture, check=0)
        self.assertEqual(len(re.findall(r">fold \d  [\d.]+<", picture.read_text())), FOLDS)
        self.assertIn("trials/00000", sp.run("eval", self.run_directory, check=1).stderr)
        self.train("data.split.test=0.1", check=2)  # the directory holds a cross-validation

    def test_the_folds_survive_an_interrupt_and_a_kill(self):
        expected = self.alone()
        process = self.start()
        shown = json.loads(sp.run("runs", "--root", self.path / "runs", "--format", "json", check=0).stdout)
        self.assertEqual([row["status"] for row in shown], ["running"])
        one = json.loads(sp.run("runs", "show", self.run_directory, "--format", "json", check=0).stdout)
        self.assertEqual((one["folds"][0]["fold"], one["folds"][0]["run"]), (0, "trials/00000"))
        self.assertIn(one["folds"][0]["status"], ("running", "done"))  # a fold takes less than a second
        self.assertGreater(one["steps"], 0)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(120), 75)
        self.assertEqual(sp.report(self.run_directory)["status"], "stopped")
        process = sp.start("resume", self.run_directory)
        time.sleep(1.0)
        sp.kill(process)
        said = sp.run("resume", self.run_directory, check=0).stdout
        self.assertIn("METRIC", said)
        self.assertEqual(self.digests(), expected)
        self.assertEqual(sp.report(self.run_directory)["status"], "done")

    def test_sinew_stop_ends_all_folds(self):
        self.job.write_text(self.job.read_text().replace("30st", "3000st"))
        process = self.start()
        done = sp.run("runs", "delete", self.run_directory, "--root", self.path / "runs", check=2)
        self.assertIn("RUN_IN_USE", done.stderr)
        said = sp.run("stop", self.run_directory, check=0).stdout
        self.assertEqual(process.wait(120), 75)
        self.assertIn("stopped", said)
        sp.run("runs", "delete", self.run_directory, "--root", self.path / "runs", check=0)

    def test_workers_do_not_change_the_folds(self):
        self.train("--workers", "2")
        self.assertTrue((self.run_directory / "trials/00000/coordinator.json").exists())
        plain = self.path / "plain"
        self.train(where=plain)
        self.assertEqual(self.digests(), self.digests(plain))

    def test_folds_of_which_one_fails_have_no_mean(self):
        (self.run_directory / "trials/00001").mkdir(parents=True)
        (self.run_directory / "trials/00001/checkpoints").write_text("a file, so this fold cannot save")
        said = self.train(check=1).stdout
        report = sp.report(self.run_directory)
        self.assertEqual((report["status"], report["exit_code"], report["last"]), ("failed", 1, {}))
        self.assertEqual([fold["status"] for fold in report["folds"]], ["done", "failed", "done"])
        self.assertIn("FOLD 1 (failed)", said)
        self.assertRegex(said, r"fold 1: failed: [^;]*checkpoints[^;]*; see ", "the reason, not only the exit code")
        self.assertIn("output.log", said)
        self.assertFalse((self.run_directory / "metrics.jsonl").exists())
        (self.run_directory / "trials/00001/checkpoints").unlink()
        said = sp.run("resume", self.run_directory, check=0).stdout
        self.assertIn("MEAN", said)
        self.assertEqual(self.digests(), self.alone())

    def test_folds_of_data_that_changed_are_not_mixed(self):
        process = self.start()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(120), 75)
        labels = self.path / "train-labels"
        good = labels.read_bytes()
        labels.write_bytes(good[:-1] + bytes([(good[-1] + 1) % 2]))
        done = sp.run("resume", self.run_directory, check=1)
        self.assertIn("TRAIN_DATA_CHANGED", done.stderr)
        self.assertIn("sinew data status", done.stderr)
        changed = sp.run("data", "status", self.run_directory, "--root", self.path / "runs")
        self.assertIn("train-labels", changed.stdout)
        labels.write_bytes(good)
        sp.run("resume", self.run_directory, check=0)
        self.assertEqual(self.digests(), self.alone())

    def test_wrong_data_ends_it_before_the_first_fold(self):
        done = self.train("data.train.images=nowhere", check=1)
        self.assertIn("nowhere", done.stderr)
        self.assertFalse((self.run_directory / "trials").exists())

    def test_a_fold_whose_directory_is_gone_is_not_done(self):
        self.train()
        shutil.rmtree(self.run_directory / "trials/00001")
        done = sp.run("resume", self.run_directory, check=1)
        report = sp.report(self.run_directory)
        self.assertEqual([fold["status"] for fold in report["folds"]], ["done", "missing", "done"])
        self.assertIn("the directories of these are gone: 1", done.stdout + done.stderr)

    def test_a_search_judges_a_trial_by_the_mean_over_its_folds(self):
        self.job.write_text(self.job.read_text() + """
tune:
  trials: 2
  parallel: 2
  sampler: random
  search: {optimizer.lr: {low: 1e-3, high: 1e-2, log: true}}
""")
        study = self.path / "study"
        sp.run("tune", self.job, "--study", study, "trainer.max_duration=10st", "trainer.eval_interval=10st", check=0)
        lines = [json.loads(line) for line in (study / "study.jsonl").read_text().splitlines()]
        ends = {line["id"]: line for line in lines if line.get("event") == "end"}
        self.assertEqual(sorted(ends), [0, 1])
        for trial, end in ends.items():
            self.assertEqual(end["state"], "complete")
            folds = sp.report(study / f"trials/{trial:05d}")["folds"]
            self.assertEqual(len(folds), FOLDS)
            self.assertTrue(math.isclose(end["values"][0], statistics.mean(f["metrics"]["val/loss"] for f in folds),
                                         rel_tol=1e-12))
        worse = max(ends, key=lambda trial: ends[trial]["values"][0])
        models = lambda trial: list((study / f"trials/{trial:05d}/trials").glob("*/model"))
        self.assertEqual((len(models(worse)), len(models(1 - worse))), (0, FOLDS), "only the best trial keeps models")
        done = sp.run("tune", self.job, "--study", self.path / "pbt", "tune.sampler=pbt", "tune.trials=16")
        self.assertEqual(done.returncode, 2)
        self.assertIn("TUNE_FOLDS_IN_GENERATIONS", done.stderr)

    def test_what_contradicts_folds_is_refused(self):
        for words, code in (((f"data.split.fold={FOLDS}",), "SPEC_BAD_RANGE"),
                            (("data.split.val=0.2",), "SPEC_CONFLICT"),
                            (("data.split.folds=1",), "SPEC_"),
                            (("--ledger",), "OPTION_INVALID"),
                            (("--parallel", "2", "data.split.fold=1"), "OPTION_INVALID")):
            with self.subTest(words):
                done = self.train(*words, check=2)
                self.assertRegex(done.stderr, re.escape(code))
        self.assertFalse(self.run_directory.exists())
        few = sp.run("train", self.job, "--run-dir", self.path / "few", "data.split.folds=400", "data.split.fold=1")
        self.assertEqual(few.returncode, 1)
        self.assertIn("DATA_BAD_SPLIT", few.stderr + few.stdout)

    def test_a_check_takes_the_first_fold(self):
        checked = json.loads(sp.run("check", self.job, "--json", "--time", "20s").stdout)
        self.assertTrue(any(one.get("status") == "pass" or one.get("result") == "pass" or "pass" in str(one)
                            for one in checked["checks"]), checked)


if __name__ == "__main__":
    unittest.main()
