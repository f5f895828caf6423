"""Indexes a real run while it trains, kills and resumes it, registers and promotes its model, and reproduces it to the
bit."""
import json
import pathlib
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import sinew_process as sp

STEPS = 120


class Registry(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        self.root = self.path / "runs"
        self.job = sp.write_job(self.path, STEPS, "early_stopping: {monitor: val/loss, patience: 1000, restore_best: false}")

    def models(self, *words, check=0):
        done = sp.run("models", *words, "--root", self.root, "--format", "json", check=check)
        return json.loads(done.stdout) if done.stdout else done.stderr

    def test_a_killed_and_resumed_run_is_registered_and_reproduced(self):
        first = self.root / "drill" / "one"
        process = sp.start("train", self.job, "--run-dir", first, "--ledger")
        self.addCleanup(lambda: process.poll() is None and sp.kill(process))
        self.assertTrue(sp.wait_for((first / "resolved.yaml").exists))  # before this, there is no run
        deadline = time.monotonic() + 120
        while not list(first.glob("checkpoints/step-*")) and time.monotonic() < deadline:
            self.models("list")
            self.models("register", first, check=1)  # indexes the run; there is no model yet
        sp.kill(process)
        self.assertIn("[RUN_NO_MODEL]", self.models("register", first, check=1))
        sp.run("resume", first, "--ledger", check=0)
        made = self.models("register", first, "--model", "m")
        self.assertEqual((made["version"], made["checks"]), (1, {"done": "passed", "finite": "passed", "intact": "passed", "whole": "passed"}))
        self.assertEqual(made["digest"], sp.report(first)["digest"])
        self.assertEqual(len(made["data"]["train"]), 64)
        self.assertTrue(self.models("promote", "m/1")["done"])

        # The same job gives the same model to the bit. So the second version may be promoted, and the store already has
        # its files.
        again = self.root / "drill" / "two"
        said = sp.run("repro", first, "--root", self.root, "--run-dir", again, check=0)
        self.assertIn("same: same digest", said.stdout)
        second = self.models("register", again, "--model", "m")
        self.assertEqual(second["version"], 2)
        files = [self.models("show", f"m/{version}")["files"] for version in (1, 2)]
        self.assertEqual(files[0]["model/model.safetensors"], files[1]["model/model.safetensors"])
        self.assertTrue(self.models("promote", "m/2")["done"])
        self.assertEqual(self.models("rollback", "m")["to"], 1)
        sp.run("models", "verify", "--root", self.root, check=0)

        # With other data, the output names the data as the likely cause.
        sp.write_idx(self.path, "train", 333, 2)
        sp.run("data", "status", first, "--root", self.root, check=4)
        said = sp.run("repro", first, "--root", self.root, "--run-dir", self.root / "drill" / "three", check=4)
        self.assertIn("likely cause: the data differs: train: changed images", said.stdout)
        self.assertIn("differ from step 1 on", said.stdout)


if __name__ == "__main__":
    unittest.main()
