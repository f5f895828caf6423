"""Trains under a budget of memory: the shards and lanes are chosen to fit, nothing is killed, and the result depends on
the shards alone. Budgets are parts of what the usual shards need on two lanes, so no test depends on the machine."""
import json
import pathlib
import random
import re
import tempfile
import unittest

import memory_group
import sinew_process as sp

MIB = 1 << 20


def write_wide_job(folder):
    """Writes a job whose default shards need some hundred MiB on each lane."""
    folder = pathlib.Path(folder)
    sp.write_idx(folder, "wide", 1200, 3)
    (folder / "wide.yaml").write_text(f"""
name: wide
model: {{name: cnn, channels: [1024, 8]}}
data:
  format: idx
  train: {{images: {folder}/wide-images, labels: {folder}/wide-labels}}
  split: {{val: 0.1}}
trainer: {{max_duration: 3st, batch_size: 1024, eval_interval: 2st, precision: fp32, ema_decay: 0.9}}
optimizer: {{name: adamw, lr: 1e-3}}
checkpoint: {{interval: 1st}}
logging: {{tensorboard: false}}
""")
    return folder / "wide.yaml"


class Memory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        cls.job = write_wide_job(cls.path)
        cls.plain = cls.path / "plain"
        sp.run("train", cls.job, "--run-dir", cls.plain, "trainer.lanes=2", check=0)
        cls.peak = sp.report(cls.plain)["resources"]["peak_memory_bytes"]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def option(self, run, key):
        """Returns an option of the run's resolved.yaml, and the comment beside it."""
        found = re.search(rf"^  {key}: *(\S+)(?: *# (.*))?$", (run / "resolved.yaml").read_text(), re.MULTILINE)
        self.assertIsNotNone(found, (run / "resolved.yaml").read_text())
        return found.group(1), found.group(2) or ""

    def digest(self, run):
        return sp.report(run)["digest"]

    def test_without_a_budget_nothing_changes(self):
        self.assertEqual(self.option(self.plain, "shards")[0], "8")
        self.assertIn("from trainer.batch_size alone", self.option(self.plain, "shards")[1])
        given = self.path / "given"
        sp.run("train", self.job, "--run-dir", given, "trainer.shards=8", "trainer.lanes=1", check=0)
        self.assertEqual(self.digest(given), self.digest(self.plain))
        unlimited = self.path / "unlimited"
        done = sp.run("train", self.job, "--run-dir", unlimited, check=0)
        self.assertEqual(self.option(unlimited, "shards")[0], "8")
        self.assertNotIn("measuring the memory", done.stdout + done.stderr)

    def test_a_budget_decides_once_and_a_resume_keeps_the_shards(self):
        run, budget = self.path / "budget", int(0.6 * self.peak / MIB)
        done = sp.run("train", self.job, "--run-dir", run, f"budget.memory={budget}MiB", "budget.training=2st", check=3)
        self.assertIn("measuring the memory", done.stderr)
        shards, why = self.option(run, "shards")
        lanes, _ = self.option(run, "lanes")
        self.assertEqual(lanes, "auto")  # a machine may have another number each time
        self.assertLessEqual(sp.report(run)["resources"]["peak_memory_bytes"], budget * MIB)
        self.assertGreaterEqual(int(shards), 8)
        if int(shards) > 8:
            self.assertIn("budget.memory allows", why)
        sp.run("resume", run, "budget.training=never", "budget.memory=64GiB", check=0)
        self.assertEqual(self.option(run, "shards")[0], shards)
        for lanes in (1, 2):
            again = self.path / f"again{lanes}"
            sp.run("train", self.job, "--run-dir", again, f"trainer.shards={shards}", f"trainer.lanes={lanes}", check=0)
            self.assertEqual(self.digest(again), self.digest(run), lanes)

    def test_a_budget_that_cannot_do_is_refused_before_the_first_step(self):
        run = self.path / "tiny"
        done = sp.run("train", self.job, "--run-dir", run, "budget.memory=100MiB")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("[MEMORY_TOO_SMALL]", done.stderr)
        self.assertIn("budget.memory allows 100.0 MiB", done.stderr)
        self.assertEqual(sp.report(run)["steps"], 0)

    def test_given_shards_are_tried_too_if_there_is_a_budget(self):
        done = sp.run("train", self.job, "--run-dir", self.path / "fixed", "trainer.shards=1", "trainer.lanes=1",
                      f"budget.memory={int(0.6 * self.peak / MIB)}MiB")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("[MEMORY_TOO_SMALL]", done.stderr)
        self.assertIn("shards of 1024 samples on 1 lane need", done.stderr)
        self.assertIn("choose a larger trainer.shards", done.stderr)

    def test_inspect_and_plan_say_the_same(self):
        words = (self.job, f"budget.memory={int(0.6 * self.peak / MIB)}MiB")
        said = sp.run("inspect", *words, check=0).stdout
        shards = re.search(r"^shards +(\d+)", said, re.MULTILINE).group(1)
        run = self.path / "as-inspected"
        sp.run("train", *words[:1], "--run-dir", run, *words[1:], check=0)
        self.assertEqual(self.option(run, "shards")[0], shards)
        plan = json.loads(sp.run("plan", *words, "--json", "--time", "2s", check=0).stdout)
        self.assertLessEqual(plan["memory_bytes"]["low"], 0.6 * self.peak)


    def test_a_stop_during_the_trials_leaves_nothing_decided(self):
        run = self.path / "stopped"
        process = sp.start("train", self.job, "--run-dir", run, f"budget.memory={int(0.6 * self.peak / MIB)}MiB")
        for line in process.stderr:
            if "measuring the memory" in line:
                break
        process.terminate()
        process.communicate(timeout=120)
        self.assertEqual(process.returncode, 75)
        self.assertFalse((run / "resolved.yaml").exists())


class Groups(unittest.TestCase):
    """Limits of control groups, which the kernel enforces by killing."""

    @classmethod
    def setUpClass(cls):
        try:
            memory_group.MemoryGroup(64 * MIB, "sinew-probe").close()
        except OSError as error:
            raise unittest.SkipTest(f"this user cannot make a control group: {error}")
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        cls.job = write_wide_job(cls.path)
        run = cls.path / "plain"
        sp.run("train", cls.job, "--run-dir", run, "trainer.lanes=2", check=0)
        cls.peak = sp.report(run)["resources"]["peak_memory_bytes"]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_random_limits_kill_no_run_and_the_result_depends_on_the_shards_alone(self):
        rng, results, refused = random.Random(5), {}, 0
        for number in range(6):
            limit = int(rng.uniform(0.25, 1.1) * self.peak)
            with self.subTest(number=number, limit=limit), memory_group.MemoryGroup(limit) as group:
                run = self.path / f"run{number}"
                done = sp.run("train", self.job, "--run-dir", run, f"budget.memory={limit}B", within=group)
                self.assertIn(done.returncode, (0, 1), done.stderr)
                if done.returncode == 1:
                    self.assertIn("[MEMORY_TOO_SMALL]", done.stderr)
                    refused += 1
                    continue
                shards = re.search(r"^  shards: *(\d+)", (run / "resolved.yaml").read_text(), re.MULTILINE).group(1)
                results.setdefault(shards, set()).add(sp.report(run)["digest"])
        self.assertGreater(len(results), 0)
        self.assertLess(refused, 6)
        for shards, digests in results.items():
            run = self.path / f"with{shards}"
            sp.run("train", self.job, "--run-dir", run, f"trainer.shards={shards}", check=0)
            self.assertEqual(digests, {sp.report(run)["digest"]}, shards)


if __name__ == "__main__":
    unittest.main()
