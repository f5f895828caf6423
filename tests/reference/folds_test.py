"""Compares the folds of `data.split.folds` with those of scikit-learn: the sizes, and the samples of each class."""
import csv
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
from sklearn.model_selection import GroupKFold, StratifiedKFold, TimeSeriesSplit

SINEW = pathlib.Path(os.environ["SINEW_BIN"]) / "sinew"
ROWS, FOLDS = 211, 4


class Folds(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        draw = np.random.default_rng(3)
        self.kinds = np.array([f"k{kind}" for kind in draw.integers(0, 4, (ROWS, 2)).min(axis=1)])
        self.groups = draw.integers(0, 17, (ROWS, 2)).min(axis=1)
        self.times = draw.permutation(ROWS)
        with open(self.path / "rows.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["a", "b", "customer", "day", "kind"])
            for kind, group, time in zip(self.kinds, self.groups, self.times):
                writer.writerow([f"{draw.normal():.3f}", f"{draw.normal():.3f}", f"c{group}", time + 0.5, kind])
        (self.path / "job.yaml").write_text(f"""
name: folds
model: linear
data:
  format: csv
  train: rows.csv
  split: {{folds: {FOLDS}}}
  columns: {{target: kind, ignore: [customer, day]}}
trainer: {{max_duration: 1ep, batch_size: 64}}
""")

    def counts(self, *words):
        """Trains all folds. Returns the samples of each class in the validation data of each fold."""
        sinew = lambda *words: subprocess.run([SINEW, *words], cwd=self.path, capture_output=True, text=True,
                                              timeout=300, check=True).stdout
        sinew("train", "job.yaml", "--run-dir", "run", *words)
        found = []
        for fold in range(FOLDS):
            shown = json.loads(sinew("eval", f"run/trials/{fold:05d}", "--split", "val", "--json"))
            found.append({one["name"]: one["support"] for one in shown["classes"]})
        return found

    def test_classes_are_dealt_out_as_by_stratified_k_fold(self):
        found = self.counts()
        theirs = [val for _, val in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(self.kinds, self.kinds)]
        self.assertEqual(sorted(sum(one.values()) for one in found), sorted(map(len, theirs)))
        for kind in np.unique(self.kinds):
            self.assertEqual(sorted(one[kind] for one in found),
                             sorted(int((self.kinds[val] == kind).sum()) for val in theirs), kind)

    def test_groups_are_as_balanced_as_by_group_k_fold(self):
        found = self.counts("data.split.group=customer")
        theirs = [len(val) for _, val in GroupKFold(FOLDS).split(self.groups, groups=self.groups)]
        self.assertEqual(sorted(sum(one.values()) for one in found), sorted(theirs))

    def test_time_goes_forward_as_by_time_series_split(self):
        found = self.counts("data.split.by=day")
        ordered = self.kinds[np.argsort(self.times)]
        for one, (_, val) in zip(found, TimeSeriesSplit(FOLDS).split(ordered)):
            names, counts = np.unique(ordered[val], return_counts=True)
            self.assertEqual({k: n for k, n in one.items() if n}, dict(zip(names.tolist(), counts.tolist())))


if __name__ == "__main__":
    unittest.main()
