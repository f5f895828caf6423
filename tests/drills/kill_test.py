"""Kills a run at any instant. After a resume, the model must equal that of the undisturbed run to the bit."""
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import sinew_process as sp

STEPS = 120
KILLS = 50 if os.environ.get("SINEW_LONG") else 10


def newest(directory):
    """Returns the step of the newest checkpoint, or 0 if there is none."""
    return max((int(path.name[5:]) for path in directory.glob("checkpoints/step-" + "[0-9]" * 8)), default=0)


class Kill(sp.Drill):
    steps = STEPS

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.calm = sp.digests(cls.path / "calm")
        cls.seconds = sp.report(cls.path / "calm")["seconds"]

    def assert_same_story(self, run_directory):
        self.assertEqual(sp.report(run_directory)["digest"], sp.report(self.path / "calm")["digest"])
        self.assertEqual(sp.digests(run_directory), {s: d for s, d in self.calm.items()})

    def test_undisturbed_runs_agree_whatever_the_lanes(self):
        self.assertEqual(len(self.calm), STEPS)
        for lanes, threads in ((1, "1"), (2, "2"), (4, "2")):
            directory = self.path / f"lanes-{lanes}"
            sp.run("train", self.job, f"trainer.lanes={lanes}", "--run-dir", directory, "--ledger", check=0, env={"OMP_NUM_THREADS": threads})
            self.assertEqual(sp.digests(directory), self.calm)

    def test_a_job_from_a_pipe_is_read_once(self):
        for name, workers in (("piped", []), ("piped-2", ["--workers", "2"])):
            words = sp.command("train", "-", "--run-dir", self.path / name, "--ledger", *workers)
            done = subprocess.run(words, input=self.job.read_text(), capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assert_same_story(self.path / name)
            self.assertEqual((self.path / name / "job.yaml").read_text(), self.job.read_text())

    def test_another_seed_gives_another_model(self):
        sp.run("train", self.job, "trainer.seed=1", "--run-dir", self.path / "seed", "--ledger", check=0)
        self.assertNotEqual(sp.digests(self.path / "seed")[STEPS], self.calm[STEPS])

    def test_sigkill_at_random_instants(self):
        rng, cut = random.Random(7), 0
        for trial in range(KILLS):
            directory = self.path / f"killed-{trial}"
            process = sp.start("train", self.job, "--run-dir", directory, "--ledger")
            if trial % 5 == 0:  # the kill comes while the run starts
                time.sleep(rng.uniform(0, 1))
            else:  # the kill comes between the first checkpoint and the end, sometimes while a checkpoint is written
                self.assertTrue(sp.wait_for(lambda: process.poll() is not None or newest(directory) > 0))
                time.sleep(rng.uniform(0, 0.9) * self.seconds)
            ended = process.poll() is not None
            sp.kill(process)
            durable = newest(directory)
            cut += not ended and 0 < durable < STEPS
            done = sp.run("train", self.job, "--run-dir", directory, "--resume", "--ledger", check=0)
            self.assert_same_story(directory)
            resumed = [int(line.split("resumed at step ")[1].split()[0]) for line in done.stdout.splitlines() if "resumed at step" in line]
            # Only the steps after the newest durable checkpoint are repeated. `durable` is 0 if there was none.
            self.assertEqual(resumed[0] if resumed else 0, durable)
        self.assertGreater(cut, KILLS // 4, "too few were killed between their first checkpoint and their end")

    def test_a_run_killed_again_and_again(self):
        rng = random.Random(11)
        directory = self.path / "often"
        seen = []
        for _ in range(6):
            process = sp.start("train", self.job, "--run-dir", directory, "--resume", "--ledger")
            before = newest(directory)
            self.assertTrue(sp.wait_for(lambda: process.poll() is not None or newest(directory) > before))
            time.sleep(rng.uniform(0, 0.1) * self.seconds)
            sp.kill(process)
            seen.append(newest(directory))
        self.assertGreater(len(set(seen) - {STEPS}), 1, seen)
        sp.run("train", self.job, "--run-dir", directory, "--resume", "--ledger", check=0)
        self.assert_same_story(directory)

    def test_the_first_signal_saves_and_exits_as_resumable(self):
        stopped = 0
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            directory = self.path / f"signal-{sig.name}"
            process = sp.start("train", self.job, "--run-dir", directory, "--ledger")
            self.assertTrue(sp.wait_for(lambda: (directory / "checkpoints").exists() or process.poll() is not None))
            sp.kill(process, sig)
            self.assertIn(process.returncode, (75, 0))
            if process.returncode == 75:
                stopped += 1
                stopped_at = sp.report(directory)["steps"]
                self.assertTrue((directory / "checkpoints" / f"step-{stopped_at:08d}").is_dir())
                self.assertEqual(sp.report(directory)["status"], "stopped")
                self.assertIn(f"to go on: sinew resume {directory}", (directory / "log.jsonl").read_text())
            sp.run("resume", directory, "--ledger", check=0)
            self.assert_same_story(directory)
        self.assertGreater(stopped, 0, "all had ended before the signal")

    def start_long(self, name, ignored=()):
        """Starts a run that does not end by itself, and waits for its first checkpoint."""
        directory = self.path / name
        process = sp.start("train", self.job, "--run-dir", directory, "--ledger", "trainer.max_duration=100000st", ignored=ignored)
        self.assertTrue(sp.wait_for(lambda: newest(directory) > 0))
        return directory, process

    def test_sighup_saves_and_never_counts_as_the_second_signal(self):
        directory, process = self.start_long("hangup")
        for sig in (signal.SIGHUP, signal.SIGHUP, signal.SIGTERM):  # as when a terminal closes and the session ends
            process.send_signal(sig)
        sp.kill(process, signal.SIGHUP)
        self.assertEqual(process.returncode, 75)
        self.assertEqual(newest(directory), sp.report(directory)["steps"])

    def test_a_limit_of_the_file_size_is_a_full_disk(self):
        """`ulimit -f` sends SIGXFSZ, which would kill the worker in the middle of a write."""
        for workers in ([], ["--workers", "1"]):
            directory = self.path / f"limited-{len(workers)}"
            done = subprocess.run(["bash", "-c", 'ulimit -f 2; exec "$@"', "limited",
                                   *sp.command("train", self.job, "--run-dir", directory, *workers)],
                                  capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("File too large", done.stdout + done.stderr)

    def test_sigusr1_never_kills(self):
        for workers in ([], ["--workers", "2"]):
            directory = self.path / f"usr1-{len(workers)}"
            process = sp.start("train", self.job, "--run-dir", directory, "--ledger", *workers)
            while not directory.exists():  # a program that is still being loaded cannot ignore a signal
                time.sleep(0.001)
            for _ in range(40):
                time.sleep(0.02)
                process.send_signal(signal.SIGUSR1)
                for pid in sp.computing(directory) if workers else []:
                    os.kill(pid, signal.SIGUSR1)
            self.assertEqual(process.wait(300), 0, process.stderr.read())
            process.stderr.close()
            self.assert_same_story(directory)

    def test_signals_that_the_parent_ignored_stay_ignored(self):
        directory, process = self.start_long("nohup", ignored=(signal.SIGINT, signal.SIGHUP))
        for sig in (signal.SIGINT, signal.SIGHUP, signal.SIGINT):
            process.send_signal(sig)
        reached = sp.step_of(directory) + 20
        self.assertTrue(sp.wait_for(lambda: sp.step_of(directory) >= reached or process.poll() is not None))
        self.assertIsNone(process.poll(), "a signal that nohup ignores ended the run")
        sp.kill(process, signal.SIGTERM)
        self.assertEqual(process.returncode, 75)

    def test_a_second_run_on_one_directory_is_refused(self):
        directory = self.path / "twice"
        process = sp.start("train", self.job, "--run-dir", directory, "trainer.max_duration=100000st")
        self.assertTrue(sp.wait_for(lambda: (directory / "resolved.yaml").exists()))
        refused = sp.run("resume", directory)
        self.assertEqual(refused.returncode, 1)
        self.assertIn(str(process.pid), refused.stderr)
        self.assertEqual(sp.run("train", self.job, "--run-dir", directory).returncode, 2)
        sp.kill(process)

    def test_a_budget_ends_the_run_with_its_own_exit_code(self):
        directory = self.path / "budget"
        done = sp.run("train", self.job, "trainer.max_duration=100000st", "budget.time=1s", "--run-dir", directory)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(sp.report(directory)["status"], "budget")
        self.assertTrue((directory / "model" / "model.safetensors").exists())

    def test_changed_data_is_noticed_at_resume(self):
        directory = self.path / "data"
        process = sp.start("train", self.job, "--run-dir", directory, "trainer.max_duration=100000st")
        self.assertTrue(sp.wait_for(lambda: list(directory.glob("checkpoints/step-*"))))
        sp.kill(process)
        labels = self.path / "train-labels"
        before = labels.read_bytes()
        labels.write_bytes(before[:-1] + bytes([(before[-1] + 1) % 5]))
        try:
            done = sp.run("resume", directory)
            self.assertEqual(done.returncode, 1)
            self.assertIn("[TRAIN_DATA_CHANGED]", done.stderr)
        finally:
            labels.write_bytes(before)

    def test_one_changed_digit_in_resolved_yaml_is_noticed_at_resume(self):
        directory = self.path / "digit"
        process = sp.start("train", self.job, "--run-dir", directory, "--ledger")
        self.assertTrue(sp.wait_for(lambda: list(directory.glob("checkpoints/step-*")) or process.poll() is not None))
        sp.kill(process)
        resolved = directory / "resolved.yaml"
        before = resolved.read_text()
        self.assertIn("dropout: 0.2\n", before)
        resolved.write_text(before.replace("dropout: 0.2\n", "dropout: 0.3\n"))
        for words in (("resume", directory), ("resume", directory, "--workers", 2)):
            done = sp.run(*words)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("model.dropout was 0.2, is 0.3", done.stderr + done.stdout)
        resolved.write_text(before)
        sp.run("resume", directory, "--ledger", check=0)
        self.assert_same_story(directory)

    def test_a_run_that_lost_its_lock_leaves_the_directory_to_the_next_one(self):
        directory = self.path / "unlocked"
        process = sp.start("train", self.job, "--run-dir", directory, "trainer.max_duration=100000st")
        self.assertTrue(sp.wait_for(lambda: list(directory.glob("checkpoints/step-*")) or process.poll() is not None))
        (directory / ".lock").unlink()
        process.wait(60)
        said = process.stderr.read()
        process.stderr.close()
        self.assertEqual(process.returncode, 1, said)
        self.assertIn("[RUN_DIRECTORY_LOST]", said)
        self.assertFalse((directory / "report.json").exists())
        next_one = sp.start("resume", directory, "--ledger")
        self.assertTrue(sp.wait_for(lambda: sp.step_of(directory) > 0 or next_one.poll() is not None))
        sp.kill(next_one, signal.SIGTERM)
        self.assertEqual(next_one.returncode, 75)

    def test_resume_names_a_damaged_newest_checkpoint_and_uses_the_older(self):
        directory = self.path / "damaged"
        process = sp.start("train", self.job, "--run-dir", directory, "--ledger")
        self.assertTrue(sp.wait_for(lambda: len(list(directory.glob("checkpoints/step-*"))) >= 2 or process.poll() is not None))
        sp.kill(process)
        newest = max(directory.glob("checkpoints/step-*"))
        file = newest / "optimizer.safetensors"
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
        done = sp.run("resume", directory, "--ledger", check=0)
        self.assertIn(newest.name, done.stdout + done.stderr)
        self.assert_same_story(directory)


if __name__ == "__main__":
    unittest.main()
