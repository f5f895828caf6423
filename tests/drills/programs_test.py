"""Models brought as .pt2, with random numbers inside, disturbed by `sinew chaos`: with 1, 2 and 3 workers that are
killed and joined every step has the digest of the undisturbed run. All ten in the long tier."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import chaos_test
import sinew_process as sp

HERE = pathlib.Path(__file__).parent
IMAGES = """data:
  format: idx
  train: {images: FOLDER/images, labels: FOLDER/labels}
  split: {val: 0.1}
  augment: {flip: 0.5, noise: 0.02}
"""
TEXT = """data: {format: text, train: FOLDER/text, split: {val: 0.1}, text: {tokens: chars, window: 12}}
"""
LIKE_IMAGES, LIKE_TEXT = "mlp cnn resnet vit mixer experts vae".split(), "lstm gru gpt".split()
NAMES = LIKE_IMAGES + LIKE_TEXT if os.environ.get("SINEW_LONG") else ["gpt", "vae"]
STEPS = 500


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        chaos_test.write_data(cls.path, 6000)
        subprocess.run([sys.executable, HERE / "program_models.py", cls.path], check=True, timeout=600)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def job(self, name):
        data = (IMAGES if name in LIKE_IMAGES else TEXT).replace("FOLDER", str(self.path))
        loss = "loss: program\n" if name == "vae" else ""
        path = self.path / f"{name}.yaml"
        path.write_text(f"""name: {name}
model: {{name: program, file: {self.path}/{name}.pt2}}
{loss}{data}trainer: {{max_duration: {STEPS}st, batch_size: 32, shards: 7, eval_interval: 60st, grad_clip_norm: 1.0}}
optimizer: {{name: adamw, lr: 3.0e-3, weight_decay: 0.01}}
checkpoint: {{interval: 25st, keep: 2}}
logging: {{interval: 50st}}
""")
        return path

    def test_whoever_computes_them_the_model_is_the_same(self):
        for name in NAMES:
            job, calm = self.job(name), self.path / f"calm-{name}"
            sp.run("train", job, "workers.max=1", "--run-dir", calm, "--ledger", timeout=900, check=0)
            for workers in (2, 3):
                with self.subTest(program=name, workers=workers):
                    done = sp.run("chaos", job, "--seed", workers, "--events", 4, "--kill-every", "500ms", "--workers",
                                  workers, "--against", calm, "--run-dir", self.path / f"{name}-{workers}", timeout=900)
                    self.assertEqual(done.returncode, 0, f"{done.stdout}\n{done.stderr}")
                    self.assertIn(f"the same to the last bit: {STEPS} of {STEPS} steps", done.stdout)


if __name__ == "__main__":
    unittest.main()
