"""Exports models that the tests train, runs the exports with onnxruntime and PyTorch, and compares with `sinew predict`.

SINEW names `sinew`, SINEW_WORKER `sinew-worker`. Needs onnx, onnxruntime, torch, safetensors and pillow.
"""
import csv
import datetime
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import numpy
import onnx
import onnxruntime
import torch
from PIL import Image
from safetensors.torch import load_file

SINEW = os.environ["SINEW"]
FAR = 1e-4  # the largest difference

JOB = """
name: {name}
model: {model}
data: {data}
loss: {loss}
trainer: {{max_duration: 4ep, batch_size: 50, ema_decay: {ema}, seed: 3, precision: fp32}}
optimizer: {{name: adamw, lr: 1e-2}}
"""


def people(path, rows, seed, target):
    """Writes a table with a column of every kind that can be exported. Returns the rows as the graph takes them."""
    draw = random.Random(seed)
    raw = {name: [] for name in ("size", "weight", "colour", "region", "zip", "member", "seen", "born")}
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*raw, "answer"])
        for _ in range(rows):
            kind = draw.randrange(3)
            size = None if draw.random() < 0.1 else round(draw.gauss(100 + 40 * kind, 25), 3)
            weight = round(draw.gauss(3, 1), 4)
            colour = draw.choice(["red", "blue, dark", "green", "NA"] + [["purple"], ["tint%d" % draw.randrange(40)]][seed % 2])
            colour = "" if colour == "NA" else colour
            region = draw.choice([10, 20, 35, 47])  # words: the job says so
            code = draw.choice([10115, 20095, 50667, 80331, 90403 + seed % 2])  # numbers that name a place
            member = draw.choice(["yes", "No"])
            seen = datetime.datetime(2019, 1, 1) + datetime.timedelta(hours=draw.randrange(60000))
            born = datetime.date(1940, 1, 1) + datetime.timedelta(days=draw.randrange(25000))
            answer = {"three": ["oak", "ash", "\"elm\""][kind], "two": ["no", "yes"][kind > 1],
                      "number": f"{5000 + 20 * (size or 0) + 900 * kind:.2f}"}[target]
            writer.writerow(["" if size is None else size, weight, colour, region, code, member,
                             seen.strftime("%Y-%m-%d %H:%M"), born.strftime("%d.%m.%Y"), answer])
            raw["size"].append(numpy.nan if size is None else size)
            raw["weight"].append(weight)
            raw["colour"].append(colour)
            raw["region"].append(str(region))
            raw["zip"].append(float(code))
            raw["member"].append(member)
            raw["seen"].append((seen - datetime.datetime(1970, 1, 1)).total_seconds())
            raw["born"].append((born - datetime.date(1970, 1, 1)).days * 86400.0)
    words = {"colour", "region", "member"}
    return {name: numpy.array(cells, dtype=object if name in words else numpy.float64) for name, cells in raw.items()}


def encoded(inputs, facts):
    """Encodes rows as config.json describes it, with none of Sinew's code."""
    rows = len(next(iter(inputs.values())))
    made = numpy.zeros((rows, len(facts["input_names"])), numpy.float32)
    for feature in facts["preparation"]["features"]:
        places = feature["places"]
        for row, value in enumerate(inputs[feature["name"]]):
            missing = value == "" if isinstance(value, str) else numpy.isnan(value)
            if isinstance(value, str) and feature["cells"]["kind"] == "boolean":
                value = float(value.lower() == "yes")
            if feature["kind"] in ("category", "code"):
                text = value if isinstance(value, str) else f"{value:g}"
                other = feature["other_at"] if feature["other_at"] >= 0 else feature["missing_at"]
                at = feature["missing_at"] if missing else places.get(text, other)
                if at >= 0:
                    made[row, at] = 1
                continue
            if missing and feature["missing_at"] >= 0:
                made[row, feature["missing_at"]] = 1
            value = feature["fill"] if missing else value
            at, scaled = feature["number_at"], (value - feature["center"]) / feature["std"]
            if feature["kind"] != "date":
                made[row, at] = scaled
                continue
            moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=value)
            made[row, at] = (moment.year - feature["year_center"]) / feature["year_std"]
            made[row, at + 1] = (value / 86400 - feature["center"]) / feature["std"]
            turns = [(moment.month - 1) / 12, moment.isoweekday() % 7 / 7] + [moment.hour / 24] * feature["hours"]
            for i, turn in enumerate(turns):
                made[row, at + 2 + 2 * i] = numpy.sin(2 * numpy.pi * turn)
                made[row, at + 3 + 2 * i] = numpy.cos(2 * numpy.pi * turn)
    return made


def write_idx(path, array):
    path.write_bytes(bytes([0, 0, 8, array.ndim]) + b"".join(struct.pack(">I", d) for d in array.shape) + array.tobytes())


def halves(count, seed, side=12, channels=1):
    """Makes images [count, side, side, channels] in which the left or the right half is bright, and their labels."""
    draw = numpy.random.default_rng(seed)
    labels = draw.integers(0, 2, count)
    bright = (numpy.arange(side) < side // 2)[None, None, :] == (labels == 0)[:, None, None]
    pixels = draw.normal(numpy.where(bright, 150, 100)[..., None], 60, (count, side, side, channels))
    return pixels.clip(0, 255).astype(numpy.uint8), labels.astype(numpy.uint8)


class Export(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="sinew-export-"))
        cls.count = 0

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def sinew(self, *words, code=0):
        done = subprocess.run([SINEW, *map(str, words)], cwd=self.folder, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def train(self, model, data, loss="{name: auto}", ema=0.9):
        type(self).count += 1
        name = f"job{self.count}"
        (self.folder / f"{name}.yaml").write_text(JOB.format(name=name, model=model, data=data, loss=loss, ema=ema))
        run = self.folder / "runs" / name / "a"
        self.sinew("train", f"{name}.yaml", "--run-dir", run)
        return run

    def predictions(self, run, data):
        done = self.sinew("predict", run, data, "--format", "jsonl")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def export(self, run, to="onnx"):
        out = self.folder / f"{run.parent.name}-{to}"
        said = self.sinew("export", run, "--to", to, "-o", out).stdout
        self.assertIn("trained model", said)
        self.assertIn("# ", (out / "README.md").read_text())
        return out

    def check_onnx(self, run, inputs, data, scale=1.0):
        """Exports, and compares onnxruntime on batches of 1 and 7 with `sinew predict` on the same samples.

        Returns the directory, and the numbers that onnxruntime made of all samples.
        """
        out = self.export(run)
        model = onnx.load(out / "model.onnx")
        onnx.checker.check_model(model, full_check=True)
        self.assertEqual({p.key for p in model.metadata_props} & {"sinew.job", "sinew.job_sha256", "sinew.step"},
                         {"sinew.job", "sinew.job_sha256", "sinew.step"})
        session = onnxruntime.InferenceSession(str(out / "model.onnx"), providers=["CPUExecutionProvider"])
        self.assertEqual([port.shape[0] for port in session.get_inputs()], ["batch"] * len(inputs))
        wanted = self.predictions(run, data)
        self.assertGreater(len(wanted), 14)
        whole = dict(zip((port.name for port in session.get_outputs()), session.run(None, inputs)))
        self.compare(whole, wanted, scale)
        for size in (1, 7):
            for first in range(0, 14, size):
                batch = {name: values[first:first + size] for name, values in inputs.items()}
                made = dict(zip((port.name for port in session.get_outputs()), session.run(None, batch)))
                self.compare(made, wanted[first:first + size], scale)
        python = [sys.executable, str(out / "predict.py")]
        done = subprocess.run([*python, "--check"], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = subprocess.run([*python, str(data)], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.compare_rows(list(csv.DictReader(done.stdout.splitlines())), wanted, scale)
        return out, whole["probabilities" if "probabilities" in whole else "prediction"]

    def load(self, run, to):
        """Exports for PyTorch. Returns the model, and the facts that its file and its directory hold."""
        out, about = self.export(run, to), {"sinew.json": ""}
        if to == "torchscript":
            model = torch.jit.load(out / "model.pt", _extra_files=about)
        else:
            model = torch.export.load(out / "model.pt2", extra_files=about).module()
        text = about["sinew.json"]
        facts = json.loads(text.decode() if isinstance(text, bytes) else text)
        self.assertEqual(facts["job"], run.parent.name)
        return model, facts | json.loads((out / "config.json").read_text())

    def check_torch(self, run, samples, wanted, scale=1.0):
        """Compares both formats of PyTorch with what onnxruntime made of the same samples, on batches of 1 and 7."""
        for to in ("torchscript", "pt2"):
            model, facts = self.load(run, to)
            if wanted.ndim == 2 and "classes" in facts:
                self.assertEqual(len(facts["classes"]), wanted.shape[1])
            for size in (1, 7):
                for first in range(0, 14, size):
                    with torch.no_grad():
                        made = model(torch.from_numpy(samples[first:first + size])).numpy()
                    self.assertEqual(len(made), size)
                    self.assertLess(numpy.abs(made.reshape(size, -1) - wanted[first:first + size].reshape(size, -1)).max() / scale, FAR)
        self.check_weights(run)

    def check_weights(self, run):
        weights, mine = load_file(self.export(run, "safetensors") / "model.safetensors"), load_file(run / "model/model.safetensors")
        self.assertEqual(set(weights), set(mine))
        self.assertTrue(all(torch.equal(weights[name], mine[name]) for name in mine))

    def compare(self, made, wanted, scale):
        for i, row in enumerate(wanted):
            if "class" not in row:
                got, want = numpy.atleast_1d(made["prediction"][i]), numpy.atleast_1d(row["prediction"])
                self.assertLess(numpy.abs(got - want).max() / scale, FAR)
                continue
            self.assertLess(abs(made["probabilities"][i].max() - row["probability"]), FAR)
            self.assertAlmostEqual(float(made["probabilities"][i].sum()), 1, places=4)
            if row["probability"] > 0.5 + FAR:
                self.assertEqual(made["label"][i], row["prediction"])

    def compare_rows(self, made, wanted, scale):
        self.assertEqual(len(made), len(wanted))
        for got, row in zip(made, wanted):
            if "class" not in row:
                self.assertLess(abs(float(got["prediction"]) - numpy.atleast_1d(row["prediction"])[0]) / scale, FAR)
            else:
                self.assertLess(abs(float(got["probability"]) - row["probability"]), FAR)

    # ---- tables

    def table(self, target, model, loss="{name: auto}", scale=1.0):
        people(self.folder / f"{target}.csv", 400, 1, target)
        new = self.folder / f"{target}-new.csv"
        inputs = people(new, 40, 2, target)
        data = (f"{{format: csv, train: {{path: {self.folder}/{target}.csv}}, split: {{val: 0.2, test: 0.1}}, "
                "columns: {target: answer, categorical: [region]}}")
        run = self.train(model, data, loss)
        out, made = self.check_onnx(run, inputs, new, scale)
        facts = json.loads((self.export(run, "torchscript") / "config.json").read_text())
        shutil.rmtree(self.folder / f"{run.parent.name}-torchscript")
        self.check_torch(run, encoded(inputs, facts), made, scale)
        return out

    def test_a_table_of_three_classes(self):
        out = self.table("three", "{name: mlp, hidden: [16, 8], norm: batch, dropout: 0.1, activation: gelu}")
        card = (out / "README.md").read_text()
        self.assertIn("test/accuracy", card)
        self.assertIn("`oak`", card)

    def test_a_table_of_two_classes(self):
        self.table("two", "{name: mlp, hidden: [8], activation: silu}", "{name: bce}")

    def test_a_table_with_a_number_to_predict(self):
        self.table("number", "{name: mlp, hidden: [8], activation: tanh}", scale=1000)

    def test_the_model_for_tables(self):
        self.table("three", "{name: tabular, hidden: [16, 8], max_one_hot: 3}")
        self.table("two", "{name: tabular, hidden: [8]}")
        self.table("number", "{name: tabular, hidden: [8], max_one_hot: 3}", scale=1000)

    def test_linear_models_and_a_recurrent_one(self):
        self.table("three", "{name: linear}")
        self.table("three", "{name: svm}", "{name: hinge}")
        self.table("three", "{name: lstm, hidden_size: 6}")

    def test_an_array_of_numbers_with_two_targets(self):
        draw = numpy.random.default_rng(4)
        x = draw.normal(5, 3, (200, 4))
        y = numpy.stack([x.sum(1), 100 * x[:, 0]], 1).astype(numpy.float32)
        for name, array in (("x", x[:160]), ("y", y[:160]), ("new", x[160:])):
            numpy.save(self.folder / f"{name}.npy", array)
        run = self.train("{name: mlp, hidden: [8]}", f"{{format: npy, train: {{images: {self.folder}/x.npy, "
                         f"labels: {self.folder}/y.npy}}, split: {{val: 0.2, test: 0}}}}")
        _, made = self.check_onnx(run, {"values": x[160:]}, self.folder / "new.npy", scale=300)
        self.check_torch(run, x[160:], made, scale=300)

    # ---- images

    def images(self, model, seed=5, side=12):
        for name, count in (("train", 150), ("new", 20)):
            pixels, labels = halves(count, seed + count, side)
            write_idx(self.folder / f"{name}-images", pixels[..., 0])
            write_idx(self.folder / f"{name}-labels", labels)
        data = (f"{{format: idx, train: {{images: {self.folder}/train-images, labels: {self.folder}/train-labels}}, "
                "split: {val: 0.2, test: 0}}")
        run = self.train(model, data)
        _, made = self.check_onnx(run, {"images": pixels}, self.folder / "new-images")
        self.check_torch(run, pixels, made)

    def test_a_perceptron_on_images(self):
        self.images("{name: mlp, hidden: [16], activation: gelu}")

    def test_a_cnn(self):
        self.images("{name: cnn, channels: [4, 6], norm: batch, activation: silu}")

    def test_residual_networks(self):
        self.images("{name: resnet18, width: 4}")
        self.images("{name: resnet34, width: 4, stem: imagenet}", side=40)
        self.images("{name: resnet50, width: 4}")

    def test_a_recurrent_network_on_images(self):
        self.images("{name: lstm, hidden_size: 8, layers: 2, bidirectional: true, dropout: 0.1}")

    def test_image_files(self):
        for part, count in (("train", 80), ("new", 20)):
            pixels, labels = halves(count, count, 16, 3)
            for i, (image, label) in enumerate(zip(pixels, labels)):
                place = self.folder / "files" / part / (["left", "right"][label] if part == "train" else ".")
                place.mkdir(parents=True, exist_ok=True)
                if part == "new" and i % 4 == 0:  # stored lying on its side, as by a phone
                    Image.fromarray(image).transpose(Image.ROTATE_90).save(place / f"{i:03}.tif", tiffinfo={274: 6})
                else:
                    Image.fromarray(image).save(place / f"{i:03}.png")
        run = self.train("{name: cnn, channels: [4]}", f"{{format: image_folder, train: {{path: {self.folder}/files/train}}, "
                         "split: {val: 0.2, test: 0}}")
        _, made = self.check_onnx(run, {"images": pixels}, self.folder / "files/new")
        self.check_torch(run, pixels, made)

    # ---- text

    def test_text(self):
        text = "the quick brown fox jumps over the lazy dog; näher, mein Gott. " * 60
        (self.folder / "text.txt").write_text(text)
        new = "dog jumps over the quick fox. näher the lazy Gott " * 4
        (self.folder / "new.txt").write_text(new)
        run = self.train("{name: lstm, embedding: 8, hidden_size: 12, layers: 2}", f"{{format: text, train: {{path: {self.folder}/text.txt}}, "
                         "split: {val: 0.2, test: 0}, text: {window: 8}}")
        characters = numpy.array([ord(c) for c in new][:len(new) // 8 * 8], dtype=numpy.int64).reshape(-1, 8)
        _, made = self.check_onnx(run, {"characters": characters}, self.folder / "new.txt")
        tokens = {code: i for i, code in enumerate(sorted(set(map(ord, text))))}
        self.check_torch(run, numpy.vectorize(tokens.get, otypes=[numpy.int64])(characters), made)

    # ---- what is refused

    def test_what_cannot_be_exported_is_refused_and_leaves_nothing(self):
        path = self.folder / "words.csv"
        draw = random.Random(6)
        with open(path, "w") as file:
            file.write("note,size,kind\n")
            for i in range(200):
                note = " ".join("".join(draw.choices("abcdefghij", k=4)) for _ in range(9))
                file.write(f"{note} {i},{i % 7},{'ab'[i % 2]}\n")
        run = self.train("{name: mlp, hidden: [4]}", f"{{format: csv, train: {{path: {path}}}, split: {{val: 0.2, test: 0}}, "
                         "columns: {target: kind, text: [note]}}")
        before = sorted(self.folder.iterdir())
        said = self.sinew("export", run, "--to", "onnx", "-o", self.folder / "refused", code=1).stderr
        self.assertIn("[EXPORT_UNSUPPORTED]", said)
        self.assertIn("'note' is free text", said)
        said = self.sinew("export", run, "-o", self.folder, code=1).stderr
        self.assertIn("[EXPORT_EXISTS]", said)
        self.assertEqual(sorted(self.folder.iterdir()), before)
        for to in ("safetensors", "torchscript", "pt2"):
            self.export(run, to)

    def test_a_program_in_evaluation_mode_gives_a_warning(self):
        draw = numpy.random.default_rng(8)
        numpy.save(self.folder / "rows.npy", draw.normal(size=(60, 4)).astype(numpy.float32))
        numpy.save(self.folder / "classes.npy", draw.integers(0, 3, 60))
        net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 3))
        data = f"{{format: npy, train: {{images: {self.folder}/rows.npy, labels: {self.folder}/classes.npy}}, split: {{val: 0.2, test: 0}}}}"
        for mode in (True, False):
            program = torch.export.export(net.train(mode), (torch.zeros(5, 4),), dynamic_shapes=({0: torch.export.Dim("batch")},))
            file = self.folder / f"mode{mode:d}.pt2"
            torch.export.save(program, file)
            (self.folder / f"mode{mode:d}.yaml").write_text(JOB.format(
                name=f"mode{mode:d}", model=f"{{name: program, file: {file}}}", data=data, loss="{name: auto}", ema=0))
            trained = self.sinew("train", f"mode{mode:d}.yaml", "--run-dir", self.folder / f"runs/mode{mode:d}/a")
            for said in (trained.stdout + trained.stderr, self.sinew("inspect", file).stdout):
                for what in ("does not update its statistics in training", "drops nothing in training"):
                    self.assertEqual(what in said, not mode, said)


if __name__ == "__main__":
    unittest.main()
