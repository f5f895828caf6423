"""The folder of one job that `check_faults.py` tries: writes its data and job file, and runs `sinew check` on it."""
import csv
import json
import os
import pathlib
import subprocess
import time

from contestants import PYTHON, SINEW
from tables import tables_of_files, tables_of_sklearn

FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
MLP = "model: {name: mlp, hidden: [64, 64]}\noptimizer: {name: adamw, lr: 1e-3}\ntrainer: {max_duration: 30ep, batch_size: 64}\n"
CNN = "model: {name: cnn, channels: [16, 32]}\noptimizer: {name: adamw, lr: 1e-3}\ntrainer: {max_duration: 5ep, batch_size: 64}\n"


def real_table(name):
    """Returns the columns and the rows (lists of texts) of a table that others made, in random order."""
    import numpy as np
    if name == "titanic":  # with all its columns
        with open(data_folder() / "tabular/titanic.csv", newline="", encoding="utf-8") as file:
            columns, *rows = csv.reader(file)
    else:
        table = next(one for one in [*tables_of_sklearn(), *tables_of_files()] if one.name == name)
        columns, rows = table.columns, table.rows
    return list(columns), [list(rows[i]) for i in np.random.default_rng(len(rows)).permutation(len(rows))]


def data_folder():
    return pathlib.Path(os.environ["SINEW_DATA"])


def digits():
    """Returns 1797 images of 8 x 8 pixels from 0 to 16 [n, 1, 8, 8], and their labels, in random order."""
    import numpy as np
    from sklearn import datasets
    images, labels = datasets.load_digits(return_X_y=True)
    order = np.random.default_rng(3).permutation(len(labels))
    return images[order].reshape(-1, 1, 8, 8).astype(np.float32), labels[order].astype(np.int64)


def clothes(count):
    """Returns the first images of Fashion-MNIST [n, 1, 28, 28] as bytes, and their labels."""
    import gzip

    import numpy as np
    with gzip.open(FASHION / "train-images-idx3-ubyte.gz") as images, gzip.open(FASHION / "train-labels-idx1-ubyte.gz") as labels:
        pixels = np.frombuffer(images.read(16 + 784 * count), np.uint8)[16:].reshape(count, 1, 28, 28)
        return pixels, np.frombuffer(labels.read(8 + count), np.uint8)[8:].astype(np.int64)


def export(model, shape, path):
    """Writes the .pt2 of a model that takes samples of this shape."""
    import torch
    example = torch.randn(4, *shape)
    program = torch.export.export(model.train(), (example,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    torch.export.save(program, path)


class Place:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)

    def table(self, name, columns, rows):
        with open(self.folder / name, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([columns, *rows])

    def arrays(self, split, inputs, labels):
        import numpy as np
        np.save(self.folder / f"{split}_x.npy", inputs)
        np.save(self.folder / f"{split}_y.npy", labels)

    def pictures(self, split, images, names):
        """Writes grey images [n, 1, height, width] of bytes into one folder for each name."""
        from PIL import Image
        for i, (image, name) in enumerate(zip(images, names)):
            (self.folder / split / name).mkdir(parents=True, exist_ok=True)
            Image.fromarray(image[0]).save(self.folder / split / name / f"{i}.png")

    def init(self, source, target=None, change=None):
        """Writes the job that `sinew init` proposes. change: two texts; the first is replaced by the second."""
        done = self.run(SINEW, "init", source, *(["--target", target] if target else []), "-o", "job.yaml")
        if done.returncode != 0:
            raise RuntimeError(f"sinew init ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        if change:
            path = self.folder / "job.yaml"
            assert change[0] in path.read_text()
            path.write_text(path.read_text().replace(*change))

    def job(self, text):
        (self.folder / "job.yaml").write_text("name: tried\n" + text)

    def csv_job(self, target, rest=MLP, data="  split: {val: 0.2}\n"):
        self.job(f"data:\n  format: csv\n  train: train.csv\n  columns: {{target: {target}}}\n{data}{rest}")

    def array_job(self, rest=CNN, data="  split: {val: 0.2}\n", splits=("train",)):
        files = "".join(f"  {split}: {{images: {split}_x.npy, labels: {split}_y.npy}}\n" for split in splits)
        self.job(f"data:\n  format: npy\n{files}{data}{rest}")

    def python(self, script, *words):
        done = self.run(PYTHON, script, *words)
        if done.returncode != 0:
            raise RuntimeError(f"{script} ended with {done.returncode}:\n{done.stderr[-2000:]}")

    def run(self, *words):
        return subprocess.run([str(word) for word in words], cwd=self.folder, capture_output=True, text=True, timeout=600)

    def check(self):
        """Returns the checks of `sinew check`, and the seconds that it took."""
        began = time.monotonic()
        done = self.run(SINEW, "check", "job.yaml", "--json")
        seconds = time.monotonic() - began
        if done.returncode not in (0, 4):
            return [{"check": "job", "verdict": "error", "cause": "refused", "what": (done.stderr or done.stdout)[:300]}], seconds
        return json.loads(done.stdout)["checks"], seconds
