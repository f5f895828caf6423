"""Tests three things. If a shard kills every worker that computes it, the run ends and the error names the shard. Kills
from outside accuse no shard. A worker that hangs is killed."""
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import sinew_process as sp

STEPS = 120
DEADLY = 57  # steps before the deadly one; the newest checkpoint is that of step 55
SHARD = 3
MOST_DEATHS = 3
PATIENCE = 240  # seconds; on a crowded machine, a run of a few seconds may take this long
KILLS = 12
NAMED = rf"step {DEADLY}, shard {SHARD} \(samples \d+ to \d+ in the order of epoch \d+\)"


class Poison(sp.Drill):
    steps = STEPS
    shards = "trainer.shards=7"
    calm_words = [shards]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.calm = sp.digests(cls.path / "calm")

    def words(self, name, workers, *more):
        return ["train", self.job, self.shards, "--run-dir", self.path / name, "--ledger", "--workers", workers, *more]

    def poisoned(self, how, workers, *more):
        """Runs a job with a deadly shard to its end. Returns its directory and its stderr."""
        # The supervisor learns the usual time of a step from the steps before the hanging one. SINEW_PACE slows those
        # steps down, so that the supervisor sees several of them in its polls.
        done = sp.run(*self.words(how, workers, *more), timeout=PATIENCE, check=1,
                      env={"SINEW_POISON": f"{DEADLY}:{SHARD}:{how}", "SINEW_PACE": "20" if how == "hang" else "2"})
        return self.path / how, done.stderr

    def assert_goes_on_without_it(self, directory):
        checkpoint = max(directory.glob("checkpoints/step-*"))
        self.assertLessEqual(int(checkpoint.name[5:]), DEADLY)
        sp.run("checkpoint", "verify", checkpoint, check=0)
        sp.run("resume", directory, "--workers", 2, "--ledger", timeout=PATIENCE, check=0)
        self.assert_same_story(directory)

    def assert_same_story(self, directory):
        self.assertEqual(sp.report(directory)["digest"], sp.report(self.path / "calm")["digest"])
        self.assertEqual(sp.digests(directory), self.calm)

    def assert_named(self, said, ways):
        self.assertRegex(said, NAMED + rf" killed {MOST_DEATHS} workers in turn \({ways}\): the run is stopped")
        self.assertIn("  try: look at those samples", said)

    def started(self, directory):
        return (directory / "coordinator.log").read_text().count("supervisor: started worker")

    def test_a_shard_that_crashes_its_worker(self):
        directory, said = self.poisoned("segv", 3)
        self.assert_named(said, "SIGSEGV, SIGSEGV, SIGSEGV")
        self.assertEqual(said.count("was killed by SIGSEGV"), MOST_DEATHS)
        self.assertIn(self.started(directory), range(4, 3 + MOST_DEATHS + 1))
        self.assert_goes_on_without_it(directory)

    def test_a_worker_of_several_lanes(self):
        directory, said = self.poisoned("abort", 3, "trainer.lanes=3")
        self.assertRegex(said, NAMED + r".* killed 3 workers in turn \(SIGABRT, SIGABRT, SIGABRT\)")
        self.assert_goes_on_without_it(directory)

    def test_a_shard_that_takes_all_memory(self):
        directory, said = self.poisoned("oom", 3)
        self.assert_named(said, ", ".join(["SIGKILL: perhaps out of memory"] * MOST_DEATHS))
        self.assert_goes_on_without_it(directory)

    def test_a_shard_with_an_error_is_tried_by_others_and_named(self):
        directory, said = self.poisoned("error", 5, "trainer.lanes=2")
        self.assertRegex(said, NAMED)
        self.assertIn("[TRAIN_SHARD_FAILED]", said)
        self.assertIn(said.count("ended with an error"), range(2, MOST_DEATHS + 1), said)
        self.assert_goes_on_without_it(directory)

    def test_an_error_of_the_only_worker_is_in_its_report(self):
        directory = self.path / "alone"
        sp.run(*self.words("alone", 1), timeout=PATIENCE, check=1, env={"SINEW_POISON": f"{DEADLY}:{SHARD}:error"})
        self.assertEqual(sp.report(directory)["status"], "failed")
        self.assertRegex(sp.report(directory)["error"], NAMED + ": SINEW_POISON makes this shard fail")

    def test_a_shard_that_never_ends(self):
        directory, said = self.poisoned("hang", 3, "--hang-after", "3s")
        self.assertRegex(said, r"nothing has moved for \d+ s after step \d+: worker \d+ \(pid \d+\) is at " + NAMED)
        self.assertEqual(len(re.findall("is stopped: it has been at " + NAMED, said)), MOST_DEATHS, said)
        self.assert_named(said, "no end, no end, no end")
        self.assert_goes_on_without_it(directory)

    def start_endless(self, name, workers, *more, env=None):
        """Starts a run that makes steps until it is stopped. Its output is in NAME.log."""
        words = self.words(name, workers, "trainer.max_duration=100000st", *more)
        with open(self.path / f"{name}.log", "wb") as log:
            process = subprocess.Popen(sp.command(*words), stdout=log, stderr=log, env={**os.environ, **(env or {})})
        self.addCleanup(lambda: (process.poll() is None and process.kill(), process.wait(60)))
        return process, self.path / name

    def said(self, directory):
        return directory.with_suffix(".log").read_text()

    def assert_makes_steps(self, process, directory):
        at = sp.step_of(directory)
        self.assertTrue(sp.wait_for(lambda: process.poll() is not None or sp.step_of(directory) > at + 5, PATIENCE))
        self.assertIsNone(process.poll(), self.said(directory))

    def assert_stops(self, process, directory):
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(PATIENCE), 75, self.said(directory))

    def test_kills_from_outside_accuse_no_shard(self):
        rng = random.Random(3)
        process, directory = self.start_endless("outside", 3, env={"SINEW_PACE": "3"})
        killed = 0
        end = time.monotonic() + PATIENCE
        while killed < KILLS and process.poll() is None and time.monotonic() < end:
            time.sleep(rng.uniform(0.1, 0.8))
            pids = [member["pid"] for member in (sp.status(directory) or {}).get("members", [])]
            if not pids:
                continue
            try:
                os.kill(rng.choice(pids), signal.SIGKILL)
                killed += 1
            except ProcessLookupError:
                pass
        self.assertEqual(killed, KILLS, self.said(directory))
        self.assert_makes_steps(process, directory)
        self.assert_stops(process, directory)
        self.assertNotIn("in turn", self.said(directory))

    def test_a_stopped_single_worker_is_left_alone(self):
        process, directory = self.start_endless("debugged", 1, "--hang-after", "3s")
        self.assert_makes_steps(process, directory)
        victim = sp.status(directory)["members"][0]["pid"]
        os.kill(victim, signal.SIGSTOP)
        time.sleep(6)
        os.kill(victim, signal.SIGCONT)
        self.assert_makes_steps(process, directory)
        self.assert_stops(process, directory)
        self.assertNotIn("is stopped", self.said(directory))

    def test_wrong_poison_options_are_refused(self):
        for wrong in ("5", "5:1", "5:1:love", "a:b:segv"):
            done = sp.run("train", self.job, "--run-dir", self.path / "wrong", env={"SINEW_POISON": wrong})
            self.assertEqual(done.returncode, 1)
            self.assertIn("[WORKER_BAD_ENVIRONMENT]", done.stderr)
            self.assertIn("  try: unset SINEW_POISON", done.stderr)
            (self.path / "wrong" / "job.yaml").unlink()


if __name__ == "__main__":
    unittest.main()
