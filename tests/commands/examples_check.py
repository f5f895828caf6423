"""Runs the examples of examples/commands/ as their comments say. Needs the reference environment, which has PyTorch."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest

from runner import PATIENCE, SINEW, Commands, wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Examples(Commands):
    def at_root(self, *words):
        environment = {**os.environ, "PATH": os.path.dirname(sys.executable) + ":" + os.environ["PATH"]}
        process = subprocess.Popen([SINEW, *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        self.started.append(process)
        return process

    def example(self, name, *words):
        return self.at_root("train", f"examples/commands/{name}.yaml", *words, "--run-dir", self.run_directory)

    def finish(self, process):
        out, err = process.communicate(timeout=PATIENCE * 3)
        self.assertEqual(process.returncode, 0, out + err)
        return out

    def test_shell(self):
        process = self.example("shell", "params.rate=0.1", "objective=train/loss <= 0.0001")
        wait_for(lambda: len(self.metrics()) > 12, "12 steps")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 75)
        self.finish(self.at_root("resume", self.run_directory))
        self.assertEqual([line["step"] for line in self.metrics()], list(range(1, 51)))
        self.assertAlmostEqual(self.metrics()[-1]["train/loss"], 0.9**50, places=4)
        self.assertEqual(self.report()["objective"]["met"], False)

    def test_pytorch_continues_as_if_undisturbed(self):
        whole = self.run_directory
        self.finish(self.example("pytorch", "params.steps=100", "early_stopping.patience=1000"))
        undisturbed = self.metrics()
        self.run_directory = whole + "-killed"
        process = self.example("pytorch", "params.steps=100", "early_stopping.patience=1000", "retries.crash=3", "retries.backoff=0.01s")
        wait_for(lambda: any("step-" in path.name for path in self.file("checkpoints").glob("*")), "a checkpoint")
        for line in subprocess.run([SINEW, "ps", self.run_directory], capture_output=True, text=True).stdout.splitlines():
            found = re.match(r"pid (\d+)  rank 0", line)
            if found:
                os.kill(int(found.group(1)), signal.SIGKILL)
        self.finish(process)
        values = [(line["step"], line["val/loss"]) for line in self.metrics()]
        self.assertEqual(values, [(line["step"], line["val/loss"]) for line in undisturbed])

    def test_the_forest_is_a_valid_job(self):
        done = subprocess.run([SINEW, "validate", "examples/commands/sklearn_forest.yaml"], cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
