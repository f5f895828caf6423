"""Disturbs six jobs with `sinew chaos`, in the long tier under many seeds (SINEW_SEEDS, 20 by default). Together the
jobs contain every kind of state. Every step must have the digest of the undisturbed run."""
import os
import pathlib
import random
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import sinew_process as sp

PATIENCE = 900  # seconds; on a crowded machine, a run of half a minute may take this long

# 299 images and batches of 32 and 24: the last batch of an epoch is short.
IMAGES = """
data:
  format: idx
  train: {images: FOLDER/images, labels: FOLDER/labels}
  split: {val: 0.1}
  augment: {flip: 0.5, crop_padding: 1, noise: 0.02}
"""
JOBS = {
    "mlp": IMAGES + """
model: {name: mlp, hidden: [48, 32], norm: batch}
trainer: {batch_size: 32, shards: 7, eval_interval: 60st}
optimizer: {name: sgd, lr: 0.02, momentum: 0.9}
""",
    "cnn": IMAGES + """
model: {name: cnn, channels: [4, 8], norm: batch, dropout: 0.2}
trainer: {batch_size: 32, shards: 8, grad_clip_norm: 1.0, eval_interval: 70st}
optimizer: {name: adamw, lr: 3.0e-3, weight_decay: 0.01}
scheduler: {name: cosine, warmup: 40st}
""",
    "resnet": IMAGES + """
model: {name: resnet18, width: 4, stem: cifar}
trainer: {batch_size: 24, shards: 4, precision: bf16, memory_format: channels_last, eval_interval: 100st}
optimizer: {name: sgd, lr: 0.02, momentum: 0.9, weight_decay: 1.0e-4}
""",
    "lstm": """
data:
  format: text
  train: FOLDER/text
  split: {val: 0.1}
  text: {tokens: chars, window: 12}
model: {name: lstm, embedding: 8, hidden_size: 16, layers: 2, dropout: 0.1}
trainer: {batch_size: 32, shards: 8, grad_clip_norm: 0.5, eval_interval: 80st}
optimizer: {name: adamw, lr: 3.0e-3}
""",
    "average": IMAGES + """
model: {name: mlp, hidden: [32], dropout: 0.1}
trainer: {batch_size: 24, shards: 5, ema_decay: 0.99, eval_interval: 50st}
optimizer: {name: adamw, lr: 1.0e-3}
checkpoint: {keep_best: 1}
early_stopping: {monitor: val/loss, patience: 1000}
""",
    "ramp": IMAGES + """
model: {name: cnn, channels: [6], norm: batch}
trainer: {batch_size: 40, shards: 8, batch_size_ramp: [16, 24], batch_size_ramp_interval: 200st, eval_interval: 90st}
optimizer: {name: sgd, lr: 0.02, momentum: 0.9}
scheduler: {name: cosine, warmup: 30st}
""",
}
STEPS = {"mlp": 1500, "cnn": 900, "resnet": 400, "lstm": 900, "average": 3600, "ramp": 1200}
SEEDS = range(1, 1 + int(os.environ.get("SINEW_SEEDS", "20")))
# (job, seed, steps, events)
SWEEP = [(name, seed, STEPS[name], 20) for seed in SEEDS for name in JOBS] if os.environ.get("SINEW_LONG") else [
    ("mlp", 1, 800, 4), ("lstm", 1, 400, 4)]


def write_text(path, characters):
    """Writes words of a small vocabulary in an order that a model can partly predict."""
    rng = random.Random(4)
    words = ["".join(rng.choice("abcdefgh") for _ in range(rng.randint(2, 6))) for _ in range(30)]
    text, place = "", 0
    while len(text) < characters:
        place = (place * 7 + rng.randint(0, 2)) % len(words)
        text += words[place] + " "
    path.write_text(text)


def write_data(path, characters):
    """Writes the data that the jobs read from FOLDER: images, labels and text."""
    sp.write_idx(path, "train", 333, 1)
    os.rename(path / "train-images", path / "images")
    os.rename(path / "train-labels", path / "labels")
    write_text(path / "text", characters)


class Chaos(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        write_data(cls.path, 9000)
        cls.calm = {}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def undisturbed(self, name, steps):
        """Returns the job file and its undisturbed run. Makes the run only once."""
        if name not in self.calm:
            job = self.path / f"{name}.yaml"
            text = JOBS[name].replace("FOLDER", str(self.path)).replace("trainer: {", f"trainer: {{max_duration: {steps}st, ")
            checkpoint = "checkpoint: {interval: 25st, keep: 2"
            text = text.replace("checkpoint: {", checkpoint + ", ") if "checkpoint: {" in text else text + checkpoint + "}\n"
            job.write_text(f"name: {name}\n" + text + "logging: {interval: 50st}\n")
            calm = self.path / f"calm-{name}"
            sp.run("train", job, "workers.max=1", "--run-dir", calm, "--ledger", timeout=PATIENCE, check=0)
            self.calm[name] = job, calm
        return self.calm[name]

    def disturb(self, name, seed, steps, events):
        job, calm = self.undisturbed(name, steps)
        workers = 1 + random.Random(f"{name} {seed}").randrange(8)
        directory = self.path / f"{name}-{seed}"
        words = ["chaos", job, "--seed", seed, "--events", events, "--kill-every", "700ms", "--workers", workers]
        done = sp.run(*words, "--against", calm, "--run-dir", directory, timeout=PATIENCE)
        found = re.search(r"(\d+) of (\d+) events took place", done.stdout)
        same = re.search(r"the same to the last bit: (\d+) of (\d+) steps", done.stdout)
        said = (directory / "disturbed.log").read_text()[-6000:]
        again = "again: sinew " + " ".join(map(str, words))
        self.assertEqual(done.returncode, 0, f"{again}\n{job.read_text()}\n{done.stdout}\n{done.stderr}\n{said}")
        print(f"{name:8} seed {seed:3} workers {workers}: {found[1]:>2} of {found[2]} events, {same[1]} steps the same, OK",
              file=sys.stderr, flush=True)

    def test_every_step_equals_that_of_the_undisturbed_run(self):
        for name, seed, steps, events in SWEEP:
            with self.subTest(job=name, seed=seed):
                self.disturb(name, seed, steps, events)

    def test_a_run_of_another_job_is_refused_for_comparison(self):
        name, _, steps, _ = SWEEP[0]
        job, calm = self.undisturbed(name, steps)
        done = sp.run("chaos", job, "optimizer.lr=0.01", "trainer.max_duration=40st", "--seed", 1, "--against", calm,
                      "--run-dir", self.path / "other", timeout=PATIENCE)
        self.assertEqual(done.returncode, 1)
        self.assertIn("is a run of another job", done.stderr)


if __name__ == "__main__":
    unittest.main()
