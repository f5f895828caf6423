"""Limits trainings from outside, and compares what `sinew advise` says with the limit that was planted."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import copies_test
import sinew_process as sp

BUSY = 4  # programs that compete for the core of the training

# Makes each picture take 4 ms longer to open.
SLOW_FILES = copies_test.OTHER_FILES.replace("#include <string.h>", "#include <string.h>\n#include <unistd.h>").replace(
    "  size_t length = strlen(path);", "  size_t length = strlen(path);\n  if (length > 4 && strcmp(path + length - 4, \".png\") == 0) usleep(4000);")


class Advise(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def advice(self, run):
        advice = json.loads(sp.run("advise", run, "--json", check=0).stdout)
        self.assertAlmostEqual(sum(part["share"] for part in advice["parts"]), 1)
        self.assertEqual(advice["limits"][0], advice["parts"][0]["limit"])
        return advice, {part["limit"]: part["share"] for part in advice["parts"]}

    def stages(self, run):
        report = json.loads((run / "report.json").read_text())
        lanes = report["time"].pop("lanes")
        self.assertAlmostEqual(sum(report["time"].values()) / lanes, report["seconds"], delta=0.2)
        return report["time"]

    def test_slow_files_make_a_training_wait_for_samples(self):
        copies_test.write_images(self.path / "images")
        (self.path / "job.yaml").write_text(f"""
name: slow
model: {{name: mlp, hidden: [16]}}
data: {{format: image_folder, train: {{path: {self.path}/images}}, on_corrupt: skip, normalize: none, image: {{channels: 1, size: [8, 8]}}}}
trainer: {{max_duration: 60st, batch_size: 30, shards: 6, precision: fp32}}
optimizer: {{name: sgd, lr: 0.05}}
""")
        source, library = self.path / "open.c", self.path / "libslow.so"
        source.write_text(SLOW_FILES)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        run = self.path / "run"
        sp.run("train", self.path / "job.yaml", "--run-dir", run, check=0, env={"LD_PRELOAD": str(library)})
        advice, shares = self.advice(run)
        self.assertEqual(advice["limits"][0], "input-bound", advice)
        self.assertGreater(shares["input-bound"], 0.5)
        self.assertIn("data.prefetch.threads", advice["remedies"][0]["what"])
        self.assertTrue(advice["remedies"][0]["keeps_result"])
        self.assertRegex(sp.run("advise", run, check=0).stdout, r"^input-bound, \d+ %: the lanes waited for samples ")

    def test_other_programs_starve_a_training(self):
        job = sp.write_job(self.path, 3000)
        core = {min(os.sched_getaffinity(0))}
        bind = lambda: os.sched_setaffinity(0, core)
        for _ in range(BUSY):
            busy = subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=bind)
            self.addCleanup(busy.wait)
            self.addCleanup(busy.kill)
        run = self.path / "run"
        done = subprocess.run(sp.command("train", job, "--run-dir", run, "budget.time=6s"), capture_output=True, text=True,
                              timeout=300, preexec_fn=bind)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        advice, _ = self.advice(run)
        self.assertEqual(advice["limits"][0], "starved", advice)
        self.assertIn("end other programs on this machine, or give the run fewer lanes", [one["what"] for one in advice["remedies"]])

    def test_the_stages_of_workers_add_up_to_the_duration(self):
        job = sp.write_job(self.path, 200)
        alone, group = self.path / "alone", self.path / "group"
        sp.run("train", job, "--run-dir", alone, "--ledger", check=0)
        sp.run("train", job, "--run-dir", group, "--ledger", "--workers", 3, check=0)
        self.assertEqual(sp.digests(group), sp.digests(alone))
        of_one, of_three = self.stages(alone), self.stages(group)
        for stage in ("startup", "forward", "backward", "optimizer", "evaluation", "digest", "loop", "finish"):
            self.assertGreater(of_one[stage], 0, stage)
            self.assertGreater(of_three[stage], 0, stage)
        self.assertEqual(of_one["member_wait"], 0)
        self.assertGreater(of_three["member_wait"], 0)

    def test_there_is_no_advice_without_a_record(self):
        job = sp.write_job(self.path, 5)
        run = self.path / "run"
        sp.run("train", job, "--run-dir", run, check=0)
        report = json.loads((run / "report.json").read_text())
        del report["time"]
        (run / "report.json").write_text(json.dumps(report))
        refused = sp.run("advise", run)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("has no record of where its time went [ADVISE_NO_RECORD]", refused.stderr)


if __name__ == "__main__":
    unittest.main()
