"""Compares the metrics of `sinew eval` with those that scikit-learn computes from the output of `sinew predict`."""
import csv
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
from sklearn import metrics

SINEW = pathlib.Path(os.environ["SINEW_BIN"]) / "sinew"


def table(path, rows, classes, seed):
    """Writes a table whose classes overlap and are not equally frequent."""
    draw = np.random.default_rng(seed)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "kind"])
        for _ in range(rows):
            kind = int(draw.integers(0, classes, 2).min())
            writer.writerow([f"{draw.normal() + kind:.3f}", f"{draw.normal() - kind / 2:.3f}", f"k{kind}"])


def calibration_error(sure, right):
    """The expected calibration error of Guo et al. 2017 with 15 bins, as torchmetrics computes it."""
    edges = np.linspace(0, 1, 16)
    error = 0.0
    for low, high in zip(edges, edges[1:]):
        inside = (sure > low) & (sure <= high)
        if inside.any():
            error += inside.mean() * abs(right[inside].mean() - sure[inside].mean())
    return error


class Metrics(unittest.TestCase):
    def compare(self, classes, loss):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            table(folder / "train.csv", 400, classes, 1)
            table(folder / "new.csv", 333, classes, 2)
            (folder / "job.yaml").write_text(f"""
name: metrics
model: {{name: mlp, hidden: [8]}}
loss: {loss}
data: {{format: csv, train: train.csv, split: {{val: 0.2}}, columns: {{target: kind}}}}
trainer: {{max_duration: 3ep, batch_size: 50}}
optimizer: {{name: adamw, lr: 3e-2}}
""")
            sinew = lambda *words: subprocess.run([SINEW, *words], cwd=folder, capture_output=True, text=True, timeout=300,
                                                  check=True).stdout
            sinew("train", "job.yaml", "--run-dir", "run")
            report = json.loads(sinew("eval", "run", "test.path=new.csv", "--json"))
            rows = list(csv.DictReader(sinew("predict", "run", "new.csv").splitlines()))
            logged = [json.loads(line) for line in (folder / "run/metrics.jsonl").read_text().splitlines()]
            truth = [row["kind"] for row in csv.DictReader((folder / "new.csv").read_text().splitlines())]
        guess = [row["prediction"] for row in rows]
        sure = np.array([float(row["probability"]) for row in rows])
        right = np.array(truth) == np.array(guess)
        wanted = {"accuracy": right.mean(), "ece": calibration_error(sure, right),
                  "balanced_accuracy": metrics.balanced_accuracy_score(truth, guess),
                  "mcc": metrics.matthews_corrcoef(truth, guess)}
        for average, suffix in (("macro", ""), ("weighted", "_weighted")):
            precision, recall, f1, _ = metrics.precision_recall_fscore_support(truth, guess, average=average, zero_division=0)
            wanted["f1" + suffix] = f1
            if average == "macro":
                wanted |= {"precision": precision, "recall": recall}
        if classes == 2:
            positive = np.array(truth) == "k1"
            score = np.where(np.array(guess) == "k1", sure, 1 - sure)
            wanted |= {"auc": metrics.roc_auc_score(positive, score),
                       "pr_auc": metrics.average_precision_score(positive, score)}
        self.assertEqual(set(report["metrics"]) - {"loss", "top5"}, set(wanted))
        for name, value in wanted.items():
            self.assertAlmostEqual(report["metrics"][name], value, delta=2e-4 if name in ("auc", "pr_auc", "ece") else 1e-9,
                                   msg=name)
        names = sorted(set(truth))
        self.assertEqual([one["name"] for one in report["classes"]][:len(names)], names)
        each = metrics.precision_recall_fscore_support(truth, guess, labels=names, zero_division=0)
        for i, name in enumerate(("precision", "recall", "f1", "support")):
            np.testing.assert_allclose([one[name] for one in report["classes"]][:len(names)], each[i], atol=1e-9)
        self.assertTrue(any("val/mcc" in record for record in logged), "a training evaluates them, too")

    def test_two_classes(self):
        self.compare(2, "cross_entropy")

    def test_one_logit(self):
        self.compare(2, "bce")

    def test_seven_classes(self):
        self.compare(7, "cross_entropy")


if __name__ == "__main__":
    unittest.main()
