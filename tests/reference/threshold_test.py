"""Compares the threshold that a training chooses with the one that scikit-learn finds from the predicted probabilities,
and checks that `sinew predict`, `sinew eval` and an ONNX export use it."""
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from sklearn import metrics

SINEW = pathlib.Path(os.environ["SINEW_BIN"]) / "sinew"


def table(path, rows, seed):
    """Writes a table with two classes that overlap. The second one is rare."""
    draw = np.random.default_rng(seed)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "bought"])
        for _ in range(rows):
            rare = draw.random() < 0.15
            writer.writerow([f"{draw.normal() + 1.2 * rare:.3f}", f"{draw.normal() - 0.8 * rare:.3f}",
                             "yes" if rare else "no"])


class Threshold(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        table(self.path / "train.csv", 500, 1)
        table(self.path / "val.csv", 301, 2)
        table(self.path / "test.csv", 333, 3)
        self.write_job("cross_entropy")

    def write_job(self, loss):
        (self.path / "job.yaml").write_text(f"""
name: rare
model: {{name: mlp, hidden: [8]}}
loss: {loss}
data: {{format: csv, train: train.csv, val: val.csv, test: test.csv, columns: {{target: bought}}}}
trainer: {{max_duration: 4ep, batch_size: 50}}
optimizer: {{name: adamw, lr: 1e-2}}
""")

    def sinew(self, *words, check=True):
        return subprocess.run([SINEW, *words], cwd=self.path, capture_output=True, text=True, timeout=300, check=check)

    def read(self, run, file):
        """Returns the truth, the predictions and the probabilities of `yes` of a file."""
        truth = np.array([row["bought"] == "yes" for row in csv.DictReader((self.path / file).read_text().splitlines())])
        rows = list(csv.DictReader(self.sinew("predict", run, file).stdout.splitlines()))
        guess = np.array([row["prediction"] == "yes" for row in rows])
        sure = np.array([float(row["probability"]) for row in rows])
        return truth, guess, np.where(guess, sure, 1 - sure)

    def model(self, run):
        return json.loads((self.path / run / "model/model.json").read_text())

    def compare(self, loss):
        self.write_job(loss)
        plain = self.sinew("train", "job.yaml", "--run-dir", "plain")
        self.assertNotIn("threshold", self.model("plain"))
        self.assertNotIn("threshold", plain.stdout)
        truth, _, likely = self.read("plain", "val.csv")
        report = json.loads((self.path / "plain/report.json").read_text())
        # Every threshold that separates two probabilities, and one below and one above all of them.
        steps = np.unique(likely)
        candidates = np.concatenate([[0], (steps[1:] + steps[:-1]) / 2, [1.1]])
        tuned = {
            "f1": lambda t: metrics.f1_score(truth, likely >= t, zero_division=0),
            "accuracy": lambda t: metrics.accuracy_score(truth, likely >= t),
            "balanced_accuracy": lambda t: metrics.balanced_accuracy_score(truth, likely >= t),
            "mcc": lambda t: metrics.matthews_corrcoef(truth, likely >= t),
            "youden": lambda t: metrics.recall_score(truth, likely >= t) - (likely[~truth] >= t).mean(),
        }
        precision, recall, _ = metrics.precision_recall_curve(truth, likely)
        best_f1 = (2 * precision * recall / np.maximum(precision + recall, 1e-300)).max()
        for metric, value_at in tuned.items():
            with self.subTest(metric=metric):
                run = f"tuned-{metric}"
                said = self.sinew("train", "job.yaml", "--run-dir", run, f"threshold={metric}").stdout
                found = self.model(run)["threshold"]
                self.assertEqual(found["metric"], metric)
                self.assertTrue(found["chosen"])
                best = max(map(value_at, candidates))
                self.assertAlmostEqual(found["val"], best, delta=1e-9)
                self.assertAlmostEqual(value_at(found["value"]), best, delta=1e-9)
                self.assertAlmostEqual(found["val_at_half"], value_at(0.5), delta=1e-9)
                self.assertRegex(said, rf"threshold [0-9.e-]+ of 'yes': {metric} .* on the validation data \(.* at 0.5\)")
                ended = json.loads((self.path / run / "report.json").read_text())
                self.assertEqual(ended["digest"], report["digest"], "a threshold does not change the training")
                self.assertEqual(ended["last"]["val/f1"], report["last"]["val/f1"])
                truth_of_test, guess, likely_of_test = self.read(run, "test.csv")
                np.testing.assert_array_equal(guess, likely_of_test >= found["value"])
                self.assertAlmostEqual(ended["last"]["test/accuracy"], (guess == truth_of_test).mean(), delta=1e-9)
                shown = json.loads(self.sinew("eval", run, "--json").stdout)
                self.assertEqual(shown["metrics"]["accuracy"], ended["last"]["test/accuracy"])
                self.assertAlmostEqual(shown["threshold"], found["value"], delta=1e-9)
                for name in ("loss", "auc", "pr_auc", "ece"):
                    self.assertEqual(ended["last"]["test/" + name], report["last"]["test/" + name])
        self.assertAlmostEqual(self.model("tuned-f1")["threshold"]["val"], best_f1, delta=1e-9)
        self.assertGreater(best_f1, self.model("tuned-f1")["threshold"]["val_at_half"], "the table is made so")
        return "tuned-f1"

    def test_two_outputs(self):
        self.compare("cross_entropy")

    def test_one_logit(self):
        self.compare("bce")

    def test_an_export_uses_it(self):
        for loss in ("cross_entropy", "bce"):
            with self.subTest(loss):
                self.write_job(loss)
                run, made = f"run-{loss}", self.path / f"onnx-{loss}"
                self.sinew("train", "job.yaml", "--run-dir", run, "threshold=f1")
                self.sinew("export", run, "--to", "onnx", "-o", made)
                self.assertEqual(subprocess.run([sys.executable, made / "predict.py", "--check"]).returncode, 0)
                said = subprocess.run([sys.executable, made / "predict.py", self.path / "test.csv"], capture_output=True,
                                      text=True, check=True).stdout
                theirs = list(csv.DictReader(said.splitlines()))
                ours = list(csv.DictReader(self.sinew("predict", run, "test.csv").stdout.splitlines()))
                self.assertEqual([row["prediction"] for row in theirs], [row["prediction"] for row in ours])
                np.testing.assert_allclose([float(row["probability"]) for row in theirs],
                                           [float(row["probability"]) for row in ours], atol=1e-5)
                self.assertLess(min(float(row["probability"]) for row in ours), 0.5)
                self.assertIn("A sample counts as `yes` from the probability", (made / "README.md").read_text())

    def test_a_fixed_one(self):
        self.sinew("train", "job.yaml", "--run-dir", "run", "threshold.value=0.2")
        found = self.model("run")["threshold"]
        self.assertEqual((found["value"], found["chosen"]), (0.2, False))
        truth, guess, likely = self.read("run", "val.csv")
        np.testing.assert_array_equal(guess, likely >= 0.2)
        self.assertAlmostEqual(found["val"], metrics.f1_score(truth, guess), delta=1e-9)
        newest = sorted((self.path / "run/checkpoints").glob("step-*"))[-1]
        _, from_checkpoint, _ = self.read(newest, "val.csv")
        np.testing.assert_array_equal(from_checkpoint, guess)

    def test_what_has_no_threshold(self):
        (self.path / "three.csv").write_text("a,kind\n" + "".join(f"{i % 7},k{i % 3}\n" for i in range(90)))
        for words, code in ((("data.train=three.csv", "data.columns.target=kind", "data.val=three.csv",
                              "data.test=three.csv", "threshold=f1"), "TRAIN_THRESHOLD_NOT_BINARY"),
                            (("data.columns.target=a", "data.task=regression", "loss=mse", "threshold=f1"),
                             "TRAIN_THRESHOLD_NOT_BINARY"),
                            (("threshold=f1", "threshold.value=0.2"), "SPEC_"),
                            (("threshold.value=1.5",), "SPEC_"), (("threshold=best",), "SPEC_")):
            with self.subTest(words):
                done = self.sinew("train", "job.yaml", "--run-dir", "bad", *words, check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(code, done.stderr + done.stdout)
        text = (self.path / "job.yaml").read_text().replace("val: val.csv, ", "")
        (self.path / "job.yaml").write_text(text)
        done = self.sinew("train", "job.yaml", "--run-dir", "bad", "threshold=f1", check=False)
        self.assertIn("TRAIN_THRESHOLD_NO_DATA", done.stderr + done.stdout)


if __name__ == "__main__":
    unittest.main()
