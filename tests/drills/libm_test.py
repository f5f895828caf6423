"""Trains with a worker whose libm rounds differently. The ledger must equal that of one undisturbed worker."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import sinew_process as sp

PATIENCE = 240  # seconds; for a crowded machine
STEPS = 200

# A libm whose pow is wrong by a millionth: libtorch rounds a learning rate to float32, which hides the last bits of a
# double. The job below calls pow only for its learning rate.
OTHER_POW = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
double pow(double x, double y) {
  double (*real)(double, double) = (double (*)(double, double))dlsym(RTLD_NEXT, "pow");
  return real(x, y) * (1 + 1e-6);
}
"""


class Libm(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        job = sp.write_job(self.path, STEPS)
        text = job.read_text()
        for old, new in (("{name: adamw, lr: 3e-3, weight_decay: 0.01}", "{name: sgd, lr: 1e-2, momentum: 0.9}"),
                         ("{name: cosine, warmup: 10st}", "{name: step, step_size: 3st, gamma: 0.97}")):
            self.assertIn(old, text)
            text = text.replace(old, new)
        job.write_text(text)
        self.job = job
        source, self.library = self.path / "pow.c", self.path / "libother.so"
        source.write_text(OTHER_POW)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.library, source, "-ldl", "-lm"], check=True)

    def start(self, *words, **variables):
        return sp.launch(self, self.path / "log", *words, **variables)

    def said(self):
        return (self.path / "log").read_text()[-4000:]

    def test_a_worker_with_another_libm_uses_the_leaders_learning_rate(self):
        other = {"LD_PRELOAD": str(self.library)}
        sp.run("train", self.job, "--run-dir", self.path / "calm", "--ledger", check=0)
        sp.run("train", self.job, "--run-dir", self.path / "other", "--ledger", check=0, env=other)
        calm = sp.digests(self.path / "calm")
        self.assertNotEqual(calm, sp.digests(self.path / "other"), "the other libm has no effect")

        directory = self.path / "group"
        process = self.start("train", self.job, "--run-dir", directory, "--ledger", "--workers", 1, SINEW_PACE="8")
        self.assertTrue(sp.wait_for(lambda: sp.computing(directory), PATIENCE), self.said())
        joined = self.start("join", directory, SINEW_PACE="8", **other)
        self.assertTrue(sp.wait_for(lambda: process.poll() is not None or len(sp.computing(directory)) == 2, PATIENCE), self.said())
        self.assertIsNone(process.poll(), "it ended before the other worker computed:\n" + self.said())
        self.assertEqual(process.wait(PATIENCE), 0, self.said())
        self.assertEqual(joined.wait(PATIENCE), 0, self.said())
        self.assertEqual(sp.digests(directory), calm)
        said = [json.loads(line)["event"] for line in (directory / "log.jsonl").read_text().splitlines()]
        self.assertNotIn("members_differ", said)


if __name__ == "__main__":
    unittest.main()
