"""Disturbs trainings of models from .pt2 files, with random numbers inside, on 2 and 3 workers with `sinew chaos`.
Every step must have the digest of the undisturbed run on one worker. The long tier trains all ten models."""
import json
import os
import pathlib
import shutil
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
LINEAR = """trainer: {max_duration: 60st, batch_size: 32, eval_interval: 30st}
optimizer: {name: adamw, lr: 3.0e-3}
"""


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

    def job(self, name, form=None, file=None):
        data = (TEXT if name in LIKE_TEXT else IMAGES).replace("FOLDER", str(self.path))
        loss = "loss: program\n" if name == "vae" else ""
        path = self.path / f"{file or name}.yaml"
        if form:
            path.write_text(f"name: {name}\nmodel: {{name: program, file: {self.path}/{file or name}.pt2}}\n{data}{form}")
            return path
        path.write_text(f"""name: {name}
model: {{name: program, file: {self.path}/{name}.pt2}}
{loss}{data}trainer: {{max_duration: {STEPS}st, batch_size: 32, shards: 7, eval_interval: 60st, grad_clip_norm: 1.0}}
optimizer: {{name: adamw, lr: 3.0e-3, weight_decay: 0.01}}
checkpoint: {{interval: 25st, keep: 2}}
logging: {{interval: 50st}}
""")
        return path

    def test_the_model_is_the_same_on_any_number_of_workers(self):
        for name in NAMES:
            job, calm = self.job(name), self.path / f"calm-{name}"
            sp.run("train", job, "workers.max=1", "--run-dir", calm, "--ledger", timeout=900, check=0)
            for workers in (2, 3):
                with self.subTest(program=name, workers=workers):
                    done = sp.run("chaos", job, "--seed", workers, "--events", 4, "--kill-every", "500ms", "--workers",
                                  workers, "--against", calm, "--run-dir", self.path / f"{name}-{workers}", timeout=900)
                    self.assertEqual(done.returncode, 0, f"{done.stdout}\n{done.stderr}")
                    self.assertIn(f"the same to the last bit: {STEPS} of {STEPS} steps", done.stdout)

    def test_programs_that_cannot_be_trained_are_refused_early(self):
        """`sinew inspect` reports such programs from the file alone, and `sinew train` refuses them before its first
        step ends."""
        import program_refused as refused
        for name, (*_, said) in refused.REFUSED.items():
            with self.subTest(program=name):
                done = sp.run("inspect", refused.write(name, self.path), check=4)
                self.assertIn(said, done.stdout)
                self.assertIn("it cannot be trained here", done.stdout)
        for name in ("clamped", "own_statistics", "transposed", "half", "clamped_view", "expanded", "frozen", "whole"):
            with self.subTest(trained=name):
                refused.write(name, self.path)
                done = sp.run("train", self.job(name, LINEAR), "--run-dir", self.path / name, check=1)
                self.assertIn({**refused.REFUSED, **refused.WHEN_RUN}[name][-1], done.stderr)

    def test_a_run_counts_the_layers_of_its_program(self):
        import torch
        layers = {}
        for name in ("cnn", "gpt"):
            run = self.path / f"layers-{name}"
            sp.run("train", self.job(name, LINEAR, file=name), "--run-dir", run, check=0)
            report = json.loads((run / "report.json").read_text())
            layers[name] = {layer["name"]: layer for layer in report["layers"]}
            self.assertEqual(report["flops_per_step"], sum(layer["flops"] for layer in report["layers"]))
            self.assertEqual(report["attempt"]["steps"], 60)
        batch, forms = 32, layers["cnn"]
        self.assertEqual(forms["0"]["flops"], 2 * (2 * 9 * 1 * 6 * 64 * batch), "the pictures have no gradient")
        self.assertEqual(forms["0"]["parameters"], 9 * 6 + 6)
        self.assertEqual(forms["6"]["flops"], 3 * (2 * 96 * 5 * batch))
        self.assertEqual((forms["1"]["flops"], forms["1"]["parameters"]), (0, 12), "a batch norm moves memory only")
        self.assertGreater(forms["1"]["bytes"], 2 * 4 * 6 * 64 * batch)
        weights = torch.export.load(self.path / "gpt.pt2").state_dict
        for name in ("qkv", "out", "mlp.1", "mlp.3"):
            width, depth = weights[f"{name}.weight"].shape
            self.assertEqual(layers["gpt"][name]["flops"], 3 * (2 * width * depth * 12 * batch), name)
        self.assertTrue(any(name.startswith("scaled_dot_product_attention") and layer["flops"] > 0 for name, layer in layers["gpt"].items()))

    def test_tensors_that_modules_share_stay_shared(self):
        import program_refused as refused
        import torch
        sp.run("inspect", refused.write("shared_norm", self.path), check=0)
        sp.run("train", self.job("shared_norm", LINEAR), "--run-dir", self.path / "shared", check=0)
        weights = torch.export.load(self.path / "shared/model/model.pt2").state_dict
        for part in ("weight", "running_mean", "running_var", "num_batches_tracked"):
            self.assertTrue(torch.equal(weights[f"one.{part}"], weights[f"other.{part}"]), part)
        self.assertEqual(weights["one.num_batches_tracked"], 2 * 60)
        self.assertGreater(weights["left"].abs().sum(), 0)
        self.assertEqual(weights["right"].abs().sum(), 0)

    def test_sizes_outside_of_those_of_the_export_are_refused_before_the_first_step(self):
        import program_refused as refused
        done = sp.run("inspect", refused.write("branching", self.path), check=0)
        self.assertIn("0 to 8", done.stdout)
        job = self.job("branching", LINEAR)  # 32 samples in 2 shards, and fewer at the end of an epoch
        done = sp.run("train", job, "--run-dir", self.path / "branching", check=1)
        self.assertIn("samples do not fit the model: input x has the size", done.stderr)
        done = sp.run("inspect", job, check=1)
        self.assertIn("is at most 8", done.stderr)
        sp.run("train", job, "trainer.shards=4", "--run-dir", self.path / "branching-4", check=0)

    def test_a_program_writes_only_into_copies_of_its_inputs(self):
        import program_refused as refused
        import torch
        refused.write("erasing", self.path)
        form = "trainer: {max_duration: 20st, batch_size: 32}\noptimizer: {name: sgd, lr: 0.1}\n"
        job = self.job("erasing", form)
        job.write_text(job.read_text().replace(".pt2}", ".pt2, inputs: [left=input, right=input]}", 1))
        sp.run("train", job, "--run-dir", self.path / "erasing", check=0)
        before = torch.export.load(self.path / "erasing.pt2").state_dict["body.weight"]
        after = torch.export.load(self.path / "erasing/model/model.pt2").state_dict["body.weight"]
        self.assertFalse(torch.equal(before, after), "the other input was erased, too")

    def test_the_exported_model_is_the_one_that_was_trained(self):
        """Replaces the file by another model in the middle of a run."""
        import torch
        job, run = self.job("mlp", LINEAR.replace("60st", "1500st"), file="swapped"), self.path / "swapped"
        shutil.copy(self.path / "mlp.pt2", self.path / "swapped.pt2")
        training = sp.start("train", job, "--ledger", "--run-dir", run)
        try:
            self.assertTrue(sp.wait_for(lambda: sp.step_of(run) > 0, 120))
            shutil.copy(self.path / "cnn.pt2", self.path / "swapped.pt2")
            self.assertEqual(training.wait(600), 0, training.stderr.read())
        finally:
            sp.kill(training)
        weights = torch.export.load(run / "model/model.pt2").state_dict
        self.assertEqual(set(weights), set(torch.export.load(self.path / "mlp.pt2").state_dict))


if __name__ == "__main__":
    unittest.main()
