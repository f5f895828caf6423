"""Tests `sinew eval` and `sinew predict` on models that the tests train with the real programs.

SINEW names `sinew`. The tests run only if SINEW_WORKER is set, too, which shows that the tensor half was built.
"""
import csv
import json
import math
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import tempfile
import unittest

SINEW = os.environ.get("SINEW")


def flowers(path, rows, seed, classes=True, target=True):
    """Writes a table with two numeric columns and one text column, which together predict the target; some numbers are
    missing."""
    draw = random.Random(seed)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["size", "colour", "weight"] + (["kind" if classes else "price"] if target else []))
        for _ in range(rows):
            kind = draw.randrange(3)
            colour = ["red", "blue, dark", "green"][kind if draw.random() < 0.8 else draw.randrange(3)]
            size, weight = draw.gauss(100 + 40 * kind, 25), draw.gauss(3, 1)
            value = ["oak", "ash", "\"elm\""][kind] if classes else f"{5000 + 20 * size + 100 * weight:.2f}"
            shown = "" if draw.random() < 0.05 else f"{size:.3f}"
            writer.writerow([shown, colour, f"{weight:.4f}"] + ([value] if target else []))


def idx(path, kind, dims, values):
    path.write_bytes(bytes([0, 0, kind, len(dims)]) + b"".join(struct.pack(">I", d) for d in dims) + bytes(values))


def images(folder, prefix, count, seed):
    """Writes 8 x 8 grey images in which the left or the right half is bright."""
    draw = random.Random(seed)
    labels = [draw.randrange(2) for _ in range(count)]
    pixels = []
    for label in labels:
        for at in range(64):
            bright = (at % 8 < 4) == (label == 0)
            pixels.append(min(255, max(0, int(draw.gauss(150 if bright else 100, 60)))))
    idx(folder / f"{prefix}-images", 8, [count, 8, 8], pixels)
    idx(folder / f"{prefix}-labels", 8, [count], labels)
    return labels


CSV_JOB = """
name: flowers
model: {{name: mlp, hidden: [16], norm: {norm}, dropout: 0.1}}
data:
  format: csv
  train: {{path: {folder}/train.csv}}
  split: {{val: 0.2, test: 0.1}}
  columns: {{target: {target}}}
trainer: {{max_duration: 3ep, batch_size: 50, ema_decay: {ema}}}
optimizer: {{name: adamw, lr: 1e-2}}
"""
IDX_JOB = """
name: halves
model: {{name: cnn, channels: [4], norm: batch}}
data:
  format: idx
  train: {{images: {folder}/train-images, labels: {folder}/train-labels}}
  val: {{images: {folder}/val-images, labels: {folder}/val-labels}}
trainer: {{max_duration: 2ep, batch_size: 32, ema_decay: 0.9}}
"""


@unittest.skipUnless(SINEW and os.environ.get("SINEW_WORKER"), "needs sinew and sinew-worker")
class Apply(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="sinew-apply-"))
        flowers(cls.folder / "train.csv", 400, 1)
        flowers(cls.folder / "new.csv", 120, 2)
        cls.run_dir = cls.train("flowers", CSV_JOB.format(folder=cls.folder, target="kind", norm="batch", ema=0.9))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def sinew(cls, *words):
        return subprocess.run([SINEW, *map(str, words)], cwd=cls.folder, capture_output=True, text=True, timeout=300)

    @classmethod
    def train(cls, name, job):
        (cls.folder / f"{name}.yaml").write_text(job)
        run = cls.folder / "runs" / name / "a"
        done = cls.sinew("train", f"{name}.yaml", "--run-dir", run)
        assert done.returncode == 0, done.stdout + done.stderr
        return run

    def evaluate(self, *words):
        done = self.sinew("eval", *words, "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def predictions(self, *words):
        done = self.sinew("predict", *words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return list(csv.DictReader(done.stdout.splitlines()))

    def fails(self, code, text, *words):
        done = self.sinew(*words)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertIn(text, done.stderr)
        return done.stderr

    def last_val(self, run):
        last = {}
        for line in (run / "metrics.jsonl").read_text().splitlines():
            last.update({k[4:]: v for k, v in json.loads(line).items() if k.startswith("val/")})
        self.assertGreater(len(last), 1)
        return last

    # ---- the same numbers as training

    def test_artifact_and_checkpoint_give_the_numbers_of_training(self):
        expected = self.last_val(self.run_dir)
        self.assertEqual(self.evaluate(self.run_dir, "--split", "val")["metrics"], expected)
        self.assertEqual(self.evaluate(self.run_dir / "model", "--split", "val")["metrics"], expected)
        self.assertEqual(self.evaluate(self.run_dir / "checkpoints/last", "--split", "val")["metrics"], expected)
        self.assertTrue(self.evaluate("last", "--split", "val")["weights"].startswith("runs/"))

    def test_a_file_of_its_own_gives_the_numbers_of_training(self):
        for prefix, count in (("train", 200), ("val", 70)):
            images(self.folder, prefix, count, 3 + count)
        run = self.train("halves", IDX_JOB.format(folder=self.folder))
        expected = self.last_val(run)
        self.assertEqual(self.evaluate(run, "--split", "val")["metrics"], expected)
        for old in ("train-images", "train-labels"):  # evaluation works without the training data
            (self.folder / old).unlink()
        kept = json.loads((run / "model/model.json").read_text())
        self.assertEqual(self.evaluate(run, "--split", "val")["metrics"], expected)
        labels = list((self.folder / "val-labels").read_bytes()[8:])
        rows = self.predictions(run, self.folder / "val-images")
        self.assertEqual([row["sample"] for row in rows[:2]], ["val-images[0]", "val-images[1]"])
        right = sum(int(row["prediction"]) == label for row, label in zip(rows, labels, strict=True))
        self.assertEqual(right / len(labels), expected["accuracy"])
        self.assertIn("test.path=", self.fails(1, "[EVALUATION_NO_DATA]", "eval", run))
        # The weights belong to another architecture.
        other = self.folder / "other"
        shutil.copytree(run / "model", other)
        kept["job"] = kept["job"].replace("channels: [4]", "channels: [6]")
        (other / "model.json").write_text(json.dumps(kept))
        self.fails(1, "model.json has", "predict", other, self.folder / "val-images")
        (other / "model.digests.json").unlink()
        self.fails(1, "model.digests.json is missing", "predict", other, self.folder / "val-images")
        del kept["digests"]
        (other / "model.json").write_text(json.dumps(kept))  # as an older version wrote it
        said = self.fails(1, "[WEIGHTS_MISMATCH]", "predict", other, self.folder / "val-images")
        self.assertIn("warning: ", said)
        self.assertIn("not checked for damage", said)

    def test_eval_writes_its_report_and_a_confusion_matrix(self):
        done = self.sinew("eval", self.run_dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("confusion", done.stdout)
        report = json.loads((self.run_dir / "eval-test.json").read_text())
        self.assertEqual(report["samples"], 40)
        self.assertEqual(sum(map(sum, report["confusion"])), 40)
        right = sum(row[i] for i, row in enumerate(report["confusion"]))
        self.assertEqual(right / 40, report["metrics"]["accuracy"])
        self.assertEqual(report["data"], [])
        self.evaluate(self.run_dir, "test.path=new.csv")  # the same file name for other data: the report names the data
        other = json.loads((self.run_dir / "eval-test.json").read_text())
        self.assertEqual((other["samples"], other["data"]), (120, ["data.test.path=new.csv"]))

    # ---- new data

    def test_new_rows_are_prepared_as_the_training_rows(self):
        """A test file given on the command line must not change how `train` is split. Its rows are prepared as
        model.json describes."""
        result = self.evaluate(self.run_dir, "test.path=new.csv")
        self.assertEqual(result["samples"], 120)
        with open(self.folder / "new.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        without = self.folder / "without.csv"
        with open(without, "w", newline="") as file:  # columns in another order, no target, one unknown column
            writer = csv.writer(file)
            writer.writerow(["note", "weight", "size", "colour"])
            for row in rows:
                writer.writerow(["x", row["weight"], row["size"], row["colour"]])
        moved = self.folder / "moved"
        shutil.copytree(self.run_dir / "model", moved, dirs_exist_ok=True)
        guesses = self.predictions(moved, without)
        right = sum(guess["prediction"] == row["kind"] for guess, row in zip(guesses, rows, strict=True))
        self.assertEqual(right / 120, result["metrics"]["accuracy"])
        self.assertGreater(right / 120, 0.5)
        for guess in guesses:
            self.assertTrue(1 / 3 - 1e-6 <= float(guess["probability"]) <= 1)
        self.assertEqual(guesses[0]["sample"], "without.csv:2")
        # A batch of one sample predicts the same as all samples together, up to rounding in kernels of another shape.
        lines = without.read_text().splitlines()
        (self.folder / "one.csv").write_text("\n".join([lines[0], lines[7]]) + "\n")
        one = self.predictions(moved, self.folder / "one.csv")
        self.assertEqual(one[0]["prediction"], guesses[6]["prediction"])
        self.assertAlmostEqual(float(one[0]["probability"]), float(guesses[6]["probability"]), places=5)

    def test_json_lines_equal_csv(self):
        done = self.sinew("predict", self.run_dir, "new.csv", "-o", "out.jsonl")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "")
        objects = [json.loads(line) for line in (self.folder / "out.jsonl").read_text().splitlines()]
        rows = self.predictions(self.run_dir, "new.csv")
        self.assertEqual([o["prediction"] for o in objects], [row["prediction"] for row in rows])
        self.assertEqual([o["probability"] for o in objects], [float(row["probability"]) for row in rows])
        self.assertEqual({o["class"] for o in objects} <= {0, 1, 2}, True)

    def test_nan_is_null_in_json_lines(self):
        broken = self.folder / "broken"
        shutil.copytree(self.run_dir / "model", broken)
        weights = (broken / "model.safetensors").read_bytes()
        header = 8 + struct.unpack("<Q", weights[:8])[0]
        tensors = json.loads(weights[8:header])
        data = bytearray(weights)
        for name, tensor in tensors.items():
            if name != "__metadata__" and tensor["dtype"] == "F32":
                begin, end = tensor["data_offsets"]
                data[header + begin:header + end] = struct.pack("<f", math.nan) * ((end - begin) // 4)
        (broken / "model.safetensors").write_bytes(data)
        # The list of digests would refuse these weights, so it is removed, as in a model that another program wrote.
        (broken / "model.digests.json").unlink()
        described = json.loads((broken / "model.json").read_text())
        del described["digests"]
        (broken / "model.json").write_text(json.dumps(described))
        done = self.sinew("predict", broken, "new.csv", "--format", "jsonl")
        self.assertEqual(done.returncode, 0, done.stderr)
        objects = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(len(objects), 120)
        for field in ("prediction", "class", "probability"):
            self.assertEqual([o[field] for o in objects], [None] * 120)
        self.assertIn("NaN or an infinity for 120 of 120 samples", done.stderr)

    def test_a_sample_whose_outputs_overflow_has_no_class(self):
        lines = (self.folder / "new.csv").read_text().splitlines()
        colour = lines[1].rpartition(",")[0].partition(",")[2].rpartition(",")[0]
        huge = self.folder / "huge.csv"
        huge.write_text("\n".join([*lines[:3], f"1e308,{colour},1e308,oak"]) + "\n")
        done = self.sinew("predict", self.run_dir, huge)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = list(csv.DictReader(done.stdout.splitlines()))
        self.assertEqual([bool(row["prediction"]) for row in rows], [True, True, False])
        self.assertEqual((rows[2]["sample"], rows[2]["probability"]), ("huge.csv:4", ""))
        self.assertIn("warning: the model computed NaN or an infinity for 1 of 3 samples", done.stderr)
        done = self.sinew("predict", self.run_dir, huge, "--format", "jsonl")
        last = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual((last["prediction"], last["class"], last["probability"]), (None, None, None))

    def test_a_signal_ends_a_command_that_has_nothing_to_save(self):
        flowers(self.folder / "many.csv", 20000, 6)
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=signal_number):
                asked = subprocess.Popen([SINEW, "predict", self.run_dir, "many.csv"], cwd=self.folder,
                                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                try:
                    self.assertTrue(asked.stdout.read(1))  # the program now waits until its output is read
                    asked.send_signal(signal_number)
                    self.assertEqual(asked.wait(60), -signal_number)
                finally:
                    asked.kill()
                    asked.wait()
                    asked.stdout.close()

    def test_predicted_numbers_have_the_units_of_the_target(self):
        flowers(self.folder / "train.csv.prices", 300, 4, classes=False)
        job = CSV_JOB.format(folder=self.folder, target="price", norm="none", ema=0).replace("train.csv", "prices.csv")
        (self.folder / "train.csv.prices").rename(self.folder / "prices.csv")
        run = self.train("prices", job)
        self.assertEqual(self.evaluate(run, "--split", "val")["metrics"], self.last_val(run))
        flowers(self.folder / "newprices.csv", 90, 5, classes=False)
        result = self.evaluate(run, "test.path=newprices.csv")
        rows = self.predictions(run, "newprices.csv")
        with open(self.folder / "newprices.csv", newline="") as file:
            truth = [float(row["price"]) for row in csv.DictReader(file)]
        error = math.sqrt(sum((float(row["prediction"]) - y) ** 2 for row, y in zip(rows, truth, strict=True)) / len(truth))
        self.assertAlmostEqual(error, result["metrics"]["rmse"], delta=1e-3 * error)
        self.assertTrue(4000 < float(rows[0]["prediction"]) < 12000)

    def test_a_checkpoint_alone_prepares_samples_by_the_training_data(self):
        """Without model.json, the training data determines how samples are prepared. It is split as in the training."""
        expected = self.evaluate(self.run_dir, "test.path=new.csv")["metrics"]
        alone = self.folder / "alone"
        shutil.copytree((self.run_dir / "checkpoints/last").resolve(), alone, dirs_exist_ok=True)
        self.assertEqual(self.evaluate(alone, "test.path=new.csv")["metrics"], expected)
        self.assertEqual(self.predictions(alone, "new.csv"), self.predictions(self.run_dir, "new.csv"))

    # ---- mistakes

    def test_changed_training_data_is_refused_if_it_is_needed(self):
        copy = self.folder / "copy.csv"
        flowers(copy, 400, 9)
        error = self.fails(1, "[TRAIN_DATA_CHANGED]", "eval", self.run_dir, f"train.path={copy}")
        self.assertIn("test.path=", error)

    def test_data_and_models_send_no_control_characters_to_the_terminal(self):
        hostile = "kind\x1b]0;title\x07\u009b31m"
        table = self.folder / "hostile.csv"
        table.write_text("size,kind\n" + "".join(f"{i},{('oak', hostile)[i % 2]}\n" for i in range(200)))
        job = CSV_JOB.format(folder=self.folder, target="kind", norm="batch", ema=0.9).replace("train.csv", table.name)
        run = self.train("hostile", job)
        said = self.sinew("eval", run, "--split", "val")
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("kind?]0;title??", said.stdout)
        wrong = self.folder / "no\x1b[2Jcolumn.csv"
        wrong.write_text("x\n1\n")
        error = self.sinew("predict", run, wrong)
        self.assertIn("no?[2Jcolumn.csv: has no column 'size'", error.stderr)
        for text in (said.stdout, said.stderr, error.stdout, error.stderr):
            self.assertEqual([c for c in text if (ord(c) < 0x20 and c != "\n") or 0x7F <= ord(c) < 0xA0], [])

    # ---- models by name

    def test_a_registered_model_is_used_by_its_name(self):
        flowers(self.folder / "named.csv", 40, 77, target=False)
        done = self.sinew("models", "register", self.run_dir, "--model", "shop/flowers")
        self.assertEqual(done.returncode, 0, done.stderr)
        expected = self.predictions(self.run_dir, "named.csv")
        for name in ("shop/flowers", "shop/flowers/1", "shop/flowers@candidate"):
            self.assertEqual(self.predictions(name, "named.csv"), expected)
        self.assertEqual(self.evaluate("shop/flowers@candidate", "--split", "val")["metrics"], self.last_val(self.run_dir))
        for model in ("shop/flowers@candidate", self.run_dir / "model"):
            shown = self.sinew("inspect", model)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            self.assertRegex(shown.stdout, r"model\.safetensors: \d+ tensors")
        self.fails(1, "[MODEL_NOT_FOUND]", "inspect", "flowers@champion")
        self.fails(1, "[MODEL_ALIAS_NOT_FOUND]", "predict", "shop/flowers@champion", "named.csv")
        self.fails(1, "[MODEL_VERSION_NOT_FOUND]", "predict", "shop/flowers/7", "named.csv")
        self.fails(1, "[MODEL_NOT_FOUND]", "predict", "flowers@champion", "named.csv")

        # A training that starts from it records the version, not the name, and is its child.
        (self.folder / "tuned.yaml").write_text(
            CSV_JOB.format(folder=self.folder, target="kind", norm="batch", ema=0.9).replace("flowers", "tuned", 1)
            .replace("norm: batch,", "norm: batch, init_from: shop/flowers@candidate,"))
        self.assertEqual(self.sinew("check", "tuned.yaml", "--time", "1s").returncode, 0)
        done = self.sinew("train", "tuned.yaml", "--run-dir", "runs/tuned/a", "trainer.max_duration=1st")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(".sinew/versions/shop-flowers-1-", (self.folder / "runs/tuned/a/resolved.yaml").read_text())
        self.assertEqual(self.sinew("models", "register", "runs/tuned/a").returncode, 0)
        self.assertRegex(self.sinew("models", "show", "tuned").stdout, "parent: shop/flowers version 1")

        # A file that was changed after the version was checked out is not used.
        weights = next((self.folder / "runs/.sinew/versions").glob("shop-flowers-1-*/model/model.safetensors"))
        weights.write_bytes(weights.read_bytes()[:-1] + b"x")
        self.fails(1, "[WEIGHTS_DAMAGED]", "predict", "shop/flowers", "named.csv")
        # The list of digests itself, and the file that says that there is one, are compared with the registry.
        for name in ("model.json", "model.digests.json"):
            file = weights.parent / name
            whole = file.read_bytes()
            file.write_bytes(whole + b"\n")
            self.assertIn(name, self.fails(1, "[MODEL_NOT_USABLE]", "predict", "shop/flowers", "named.csv"))
            file.write_bytes(whole)
        # The hint works: the directory is written again.
        shutil.rmtree(weights.parent.parent)
        self.assertEqual(self.predictions("shop/flowers", "named.csv"), expected)

    def test_a_text_model_continues_a_prompt(self):
        draw = random.Random(5)
        words = ["one ", "two ", "three ", "four ", "fünf "]
        (self.folder / "text.txt").write_text("".join(draw.choice(words) for _ in range(3000)))
        run = self.train("text", """
name: text
data: {format: text, train: text.txt, split: {val: 0.1}, text: {window: 24}}
model: {name: lstm, hidden_size: 48}
trainer: {max_duration: 4ep, batch_size: 16}
optimizer: {name: adamw, lr: 0.01}
""")

        def continued(*words):
            done = self.sinew("predict", run, "--prompt", *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout
        text = continued("three t", "--max-tokens", 60)
        self.assertTrue(text.startswith("three t") and text.endswith("\n"), text)
        self.assertEqual(len(text), 68)
        self.assertGreater(sum(text.count(word) for word in words), 6, "it has learned the words")
        self.assertEqual(continued("three t", "--max-tokens", 60), text, "the same seed")
        self.assertNotEqual(continued("three t", "--max-tokens", 60, "--seed", 1), text)
        # A window of text: the most likely token is the prediction of `sinew predict` for that window.
        window = "fünf three two one four t"[:24]
        (self.folder / "window.txt").write_text(window)
        row = self.predictions(run, "window.txt")[0]
        self.assertEqual(continued(window, "--max-tokens", 1, "--temperature", 0), window + row["prediction"] + "\n")
        done = self.sinew("predict", run, "--prompt", "one ", "-o", "made.txt")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertEqual((self.folder / "made.txt").read_text(), continued("one "))
        self.fails(1, "byte 2 does not occur in the training data", "predict", run, "--prompt", "onß")
        self.fails(1, "the prompt is empty", "predict", run, "--prompt", "")
        self.fails(1, "not on text", "predict", self.run_dir, "--prompt", "a")
        self.fails(2, "give either DATA or --prompt", "predict", run, "text.txt", "--prompt", "a")
        self.fails(2, "give either DATA or --prompt", "predict", run)

    def test_wrong_usage(self):
        self.fails(2, "[ARGUMENT_MISSING]", "eval")
        self.fails(2, "[OPTION_UNKNOWN]", "eval", "last", "--frob")
        self.fails(2, "--split is", "eval", "last", "--split", "dev")
        self.fails(2, "is not about the data", "eval", "last", "optimizer.lr=1")
        said = self.fails(2, "did you mean", "eval", self.run_dir, "test.pth=new.csv", "test.frmt=csv")
        self.assertEqual(len(said.splitlines()), 2, "one line for each problem of the job, and no other")
        self.fails(2, "[OPTION_INVALID]", "predict", "last")
        self.fails(2, "there is no nowhere.csv", "predict", "last", "nowhere.csv")
        self.fails(2, "[OPTION_INVALID]", "predict", "last", "new.csv", "--format", "xml")
        for command in ("eval", "predict"):
            done = self.sinew(command, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn("usage: sinew " + command, done.stdout)

    def test_an_error_names_what_is_not_a_model(self):
        (self.folder / "empty").mkdir(exist_ok=True)
        self.fails(1, "[WEIGHTS_NOT_FOUND]", "eval", "empty")
        self.fails(1, "nosuchrun", "eval", "nosuchrun")
        broken = self.folder / "cut"
        shutil.copytree(self.run_dir / "model", broken)
        weights = (broken / "model.safetensors").read_bytes()
        (broken / "model.safetensors").write_bytes(weights[:-4])
        self.assertIn("[WEIGHTS_DAMAGED]", self.fails(1, "model.safetensors has", "predict", broken, "new.csv"))
        (broken / "model.json").write_text("{")
        self.fails(1, "[WEIGHTS_DAMAGED]", "predict", broken, "new.csv")
        (broken / "model.digests.json").unlink()
        self.fails(1, "[WEIGHTS_UNREADABLE]", "predict", broken, "new.csv")
        lacking = self.folder / "lacking.csv"
        lacking.write_text("size,weight\n1,2\n")
        self.fails(1, "no column 'colour'", "predict", self.run_dir, lacking)


if __name__ == "__main__":
    unittest.main()
