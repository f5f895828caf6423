"""Grows a random forest, ten trees at a time, with joblib's workers. The model becomes an artifact of the run."""
import argparse
import json
import os
import pathlib

import joblib
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

parser = argparse.ArgumentParser()
parser.add_argument("--trees", type=int, default=200)
parser.add_argument("--depth", type=int, default=6)
parser.add_argument("--leaf", type=int, default=2)
options = parser.parse_args()

folder = pathlib.Path(os.environ.get("SINEW_CHECKPOINT_DIR", "."))
train_x, val_x, train_y, val_y = train_test_split(*load_digits(return_X_y=True), random_state=0)
workers = int(os.environ.get("OMP_NUM_THREADS", "1"))

resume_from = os.environ.get("SINEW_RESUME_FROM")
if resume_from:
    forest = joblib.load(resume_from)
else:
    forest = RandomForestClassifier(
        n_estimators=0, max_depth=options.depth, min_samples_leaf=options.leaf, warm_start=True, random_state=0, n_jobs=workers)

for trees in range(forest.n_estimators + 10, options.trees + 1, 10):
    forest.set_params(n_estimators=trees)
    forest.fit(train_x, train_y)
    print(json.dumps({"step": trees, "train_accuracy": forest.score(train_x, train_y), "val_accuracy": forest.score(val_x, val_y)}))
    joblib.dump(forest, folder / ".saving")
    os.replace(folder / ".saving", folder / f"trees-{trees:05d}.joblib")
