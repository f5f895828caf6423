"""Kills the supervisor of a run, with its coordinator, so that nobody starts them again. The workers stay alive and
elect a coordinator, and the run ends by itself like one that was never disturbed."""
import ctypes
import json
import os
import pathlib
import signal
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import sinew_process as sp

PATIENCE = 300  # seconds; an election begins after 20 s
LONG = 1500     # seconds; for a whole run on a crowded machine
STEPS = 800
STEP_SECONDS = 0.25  # for one worker alone; a run of three workers then lasts longer than two elections
LOOK_PAUSE = 0.2     # seconds between two looks at the members, each of which starts a process
SHARDS = "trainer.shards=6"


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Elect(sp.Drill):
    steps = STEPS
    calm_words = [SHARDS]

    @classmethod
    def make_job(cls):
        job = super().make_job()
        job.write_text(job.read_text().replace("interval: 5st, keep: 2", "interval: 200st, keep: 2"))
        return job

    @classmethod
    def setUpClass(cls):
        # When the supervisor dies, this process becomes the parent of the coordinator. If that were a process of another
        # session, the coordinator's process group would be an orphan, and the kernel would send SIGHUP and SIGCONT to a
        # stopped coordinator.
        PR_SET_CHILD_SUBREAPER = 36
        assert ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
        began = time.monotonic()
        super().setUpClass()
        cls.pace = max(1, STEP_SECONDS * STEPS / (time.monotonic() - began))
        cls.calm = sp.digests(cls.path / "calm")

    def setUp(self):
        self.run_directory = self.path / self.id().rsplit(".", 1)[1]
        self.pids = set()
        self.addCleanup(self.end_all)

    def end_all(self):
        for pid in self.pids:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)

    def start(self, name, *words, pace=None):
        return sp.launch(self, self.path / f"{self.run_directory.name}-{name}.log", *words,
                         SINEW_PACE=str(pace or self.pace))

    def said(self, name="train"):
        log = self.run_directory / "coordinator.log"
        return ((self.path / f"{self.run_directory.name}-{name}.log").read_text()[-3000:]
                + (log.read_text()[-3000:] if log.exists() else ""))

    def file(self):
        return json.loads((self.run_directory / "coordinator.json").read_text())

    def computing(self, count):
        def found():
            pids = sp.computing(self.run_directory)
            self.pids.update(pids)
            return len(pids) == count and pids
        found_pids = []
        self.assertTrue(sp.wait_for(lambda: found_pids.extend(found() or []) or found_pids, PATIENCE, LOOK_PAUSE), self.said())
        return found_pids

    def begin(self):
        """Returns the supervisor, its coordinator's pid, and the pids of three workers that have made some steps."""
        train = self.start("train", "train", self.job, SHARDS, "--run-dir", self.run_directory, "--ledger", "--workers", 3)
        workers = self.computing(3)
        self.assertTrue(sp.wait_for(lambda: sp.step_of(self.run_directory) >= 20, PATIENCE), self.said())
        coordinator = self.file()["pid"]
        self.pids.add(coordinator)
        return train, coordinator, workers

    def kill_supervisor(self, train):
        train.kill()
        train.wait(60)

    def wait_for_election(self, among, above):
        def elected():
            file = self.file()
            return file["incarnation"] > above and file["pid"] in among
        self.assertTrue(sp.wait_for(elected, PATIENCE), self.said())
        return self.file()

    def assert_ends_well(self):
        self.assertTrue(sp.wait_for(lambda: self.file().get("exit_code") is not None, LONG), self.said())
        self.assertEqual(self.file()["exit_code"], 0, self.said())
        self.assertTrue(sp.wait_for(lambda: not any(alive(pid) for pid in self.pids), PATIENCE), self.said())
        report = sp.report(self.run_directory)
        self.assertEqual((report["status"], report["exit_code"], report["steps"]), ("done", 0, STEPS))
        self.assertEqual(report["digest"], sp.report(self.path / "calm")["digest"])
        lines = [json.loads(line) for line in (self.run_directory / "ledger.jsonl").read_text().splitlines()]
        self.assertEqual([line["step"] for line in lines], list(range(1, STEPS + 1)))
        self.assertEqual({line["step"]: line["digest"] for line in lines}, self.calm)

    def test_a_worker_leads_when_the_supervisor_is_dead_and_the_run_can_be_stopped_and_resumed(self):
        train, coordinator, workers = self.begin()
        before = self.file()["incarnation"]
        self.kill_supervisor(train)
        self.assertTrue(sp.wait_for(lambda: not alive(coordinator)), "the coordinator ends with its supervisor")
        self.assertTrue(all(alive(pid) for pid in workers), self.said())
        file = self.wait_for_election(workers, before)
        self.computing(3)
        refused = sp.run("resume", self.run_directory, "--workers", 1)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn(f"in use by pid {file['pid']}", refused.stderr)
        done = sp.run("stop", self.run_directory)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.file()["exit_code"], 75, self.said())
        self.assertTrue(sp.wait_for(lambda: not any(alive(pid) for pid in self.pids), PATIENCE), self.said())
        last = max(sp.digests(self.run_directory))
        resumed = self.start("resume", "resume", self.run_directory, "--ledger", "--workers", 1, pace=max(1, self.pace / 5))
        self.computing(1)
        self.assertTrue(sp.wait_for(lambda: sp.step_of(self.run_directory) > last + 20, PATIENCE), self.said("resume"))
        resumed.send_signal(signal.SIGTERM)
        self.assertEqual(resumed.wait(120), 75, self.said("resume"))
        found = sp.digests(self.run_directory)
        self.assertEqual(found, {step: self.calm[step] for step in found})

    def test_a_stopped_coordinator_that_comes_back_steps_down_and_the_elected_one_may_die(self):
        train, coordinator, workers = self.begin()
        before = self.file()["incarnation"]
        os.kill(coordinator, signal.SIGSTOP)
        self.kill_supervisor(train)
        first = self.wait_for_election(workers, before)
        self.computing(3)
        os.kill(coordinator, signal.SIGCONT)
        self.assertTrue(sp.wait_for(lambda: not alive(coordinator), PATIENCE), self.said())
        self.assertEqual(self.file()["pid"], first["pid"])
        os.kill(first["pid"], signal.SIGKILL)
        left = [pid for pid in workers if pid != first["pid"]]
        self.wait_for_election(left, first["incarnation"])
        self.computing(2)
        # The newcomer is fast, so it gets most of the work, and the rest of the run takes seconds.
        joined = self.start("join", "join", self.run_directory, pace=1)
        self.computing(3)
        self.assert_ends_well()
        self.assertEqual(joined.wait(60), 0)
        self.assertEqual(sp.run("resume", self.run_directory, "--workers", 1).returncode, 0, "nothing is left to do")


if __name__ == "__main__":
    unittest.main()
