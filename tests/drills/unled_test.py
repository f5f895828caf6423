"""Kills the machine of the coordinator: its supervisor, its coordinator and its workers at once. A worker that joined from
elsewhere and has the run directory is elected coordinator and goes on alone. One that joined by a URL saves its state
before it ends."""
import json
import os
import pathlib
import signal
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import sinew_process as sp

PATIENCE = 300  # seconds; workers wait a minute for a coordinator
STEPS = 4000
REACHED = 60  # steps


class Unled(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        self.job = sp.write_job(self.path, STEPS)
        # The only checkpoint of the group is one that a drill asks for.
        self.job.write_text(self.job.read_text().replace("interval: 5st, keep: 2", "interval: 100000st, keep: 2, keep_best: 0"))
        self.run_directory = self.path / "group"

    def start(self, name, *words, **variables):
        return sp.launch(self, self.path / f"{name}.log", *words, group=True, **{"SINEW_PACE": "20", **variables})

    def said(self, name):
        return (self.path / f"{name}.log").read_text()

    def begin(self, join):
        """Starts a run, lets a worker join it, and kills the run's own processes some steps after both compute. Returns
        the process of the worker, and a step that it has reached."""
        computing = lambda: len(sp.computing(self.run_directory))
        train = self.start("train", "train", self.job, "--run-dir", self.run_directory, "--ledger", "--workers", 1)
        self.assertTrue(sp.wait_for(lambda: computing() == 1, PATIENCE), self.said("train"))
        machine = [train.pid, json.loads((self.run_directory / "coordinator.json").read_text())["pid"],
                   *sp.computing(self.run_directory)]
        joined = self.start("join", "join", *join())
        self.assertTrue(sp.wait_for(lambda: train.poll() is not None or computing() == 2, PATIENCE), self.said("join"))
        step = sp.step_of(self.run_directory) + REACHED
        self.assertTrue(sp.wait_for(lambda: train.poll() is not None or sp.step_of(self.run_directory) >= step, PATIENCE))
        self.assertIsNone(train.poll(), "it ended before the drill:\n" + self.said("train"))
        self.workers = [pid for pid in sp.computing(self.run_directory) if pid not in machine]
        for pid in machine:
            os.kill(pid, signal.SIGKILL)
        train.wait(60)
        return joined, step

    def saved(self, directory):
        return sorted(int(path.name[5:]) for path in (directory / "checkpoints").glob("step-*") if path.is_dir())

    def test_a_worker_with_the_run_directory_leads_and_nothing_is_lost(self):
        joined, reached = self.begin(lambda: [self.run_directory])
        leads = lambda: json.loads((self.run_directory / "coordinator.json").read_text())["pid"] in self.workers
        self.assertTrue(sp.wait_for(leads, PATIENCE), self.said("join"))
        enough = sp.step_of(self.run_directory) + REACHED
        self.assertTrue(sp.wait_for(lambda: sp.step_of(self.run_directory) >= enough, PATIENCE), self.said("join"))
        self.assertEqual(sp.run("stop", self.run_directory).returncode, 0)
        self.assertEqual(joined.wait(60), 75, self.said("join"))
        (step,) = self.saved(self.run_directory)
        self.assertGreaterEqual(step, max(reached, enough))
        self.assertEqual(sorted(sp.digests(self.run_directory)), list(range(1, step + 1)))
        self.check_resume(self.run_directory, step)

    def check_resume(self, directory, step):
        """Resumes for a while, and compares with a run that was never disturbed."""
        resumed = self.start("resume", "resume", directory, "--ledger", SINEW_PACE="1")
        enough = step + REACHED
        self.assertTrue(sp.wait_for(lambda: resumed.poll() is not None or sp.step_of(directory) >= enough, PATIENCE), self.said("resume"))
        os.killpg(resumed.pid, signal.SIGTERM)
        self.assertEqual(resumed.wait(60), 75, self.said("resume"))
        self.assertRegex(self.said("resume"), f"resumed at step {step} ")
        calm = self.start("calm", "train", self.job, "--run-dir", self.path / "calm", "--ledger", SINEW_PACE="1")
        last = max(sp.digests(directory))
        self.assertTrue(sp.wait_for(lambda: calm.poll() is not None or sp.step_of(self.path / "calm") >= last, PATIENCE))
        os.killpg(calm.pid, signal.SIGKILL)
        expected = sp.digests(self.path / "calm")
        found = sp.digests(directory)
        self.assertEqual(sorted(found), list(range(min(found), last + 1)))
        self.assertEqual(found, {step: expected[step] for step in found})
        return found

    def test_a_worker_that_joined_by_a_url_saves_in_its_own_directory(self):
        own, secret = self.path / "own", self.path / "secret"

        def by_url():
            info = json.loads((self.run_directory / "coordinator.json").read_text())
            secret.write_text(info["secret"])
            return [info["url"], "--secret-file", secret, self.job, own]

        _, reached = self.begin(by_url)
        self.assertTrue(sp.wait_for(lambda: self.saved(own), PATIENCE), self.said("join"))
        self.assertGreaterEqual(self.saved(own)[0], reached)
        self.assertEqual(self.saved(self.run_directory), [])


if __name__ == "__main__":
    unittest.main()
