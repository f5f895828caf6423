"""Suspends the process that writes a run, lets another process take over, and continues the first one. Nothing that the
first one then writes may be seen: the ledger and the metrics must be those of an undisturbed run."""
import json
import os
import pathlib
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import sinew_process as sp

LONG = bool(os.environ.get("SINEW_LONG"))
PATIENCE = 300  # seconds
STOPS = 20 if LONG else 3
STEPS = 100 + 100 * STOPS
ENOUGH = 15  # steps; they take longer than a lease lasts


class Fence(sp.Drill):
    steps = STEPS

    def start(self, name, *words, **variables):
        return sp.launch(self, self.path / f"{name}.log", *words, group=True, **variables)

    def said(self, name):
        return (self.path / f"{name}.log").read_text()

    def lines_of(self, directory, name):
        return [json.loads(line) for line in (directory / name).read_text().splitlines()]

    def assert_same_story(self, directory):
        calm = self.path / "calm"
        self.assertEqual(sp.report(directory)["digest"], sp.report(calm)["digest"])
        self.assertEqual((directory / "ledger.jsonl").read_bytes(), (calm / "ledger.jsonl").read_bytes())
        names = lambda line: (line["step"], *sorted(key for key in line if not key.startswith("throughput/")))
        metrics = [names(line) for line in self.lines_of(directory, "metrics.jsonl")]
        self.assertEqual(len(metrics), len(set(metrics)), "a line of the metrics is there twice")
        self.assertEqual(sorted(metrics), sorted(names(line) for line in self.lines_of(calm, "metrics.jsonl")))
        self.assertEqual(len(list((directory / ".writers").iterdir())), 1)

    def wait_until(self, condition, process, name):
        self.assertTrue(sp.wait_for(lambda: process.poll() is not None or condition(), PATIENCE), self.said(name))
        self.assertIsNone(process.poll(), "it ended too early:\n" + self.said(name))

    def leader_of(self, directory):
        """Returns the process id of the leader and its id in the group."""
        status = sp.status(directory)
        (leader,) = [member for member in status["members"] if member["id"] == status["leader"]]
        return leader["pid"], leader["id"]

    def test_a_leader_that_was_stopped_changes_nothing_when_it_goes_on(self):
        directory = self.path / "group"
        process = self.start("group", "train", self.job, "--run-dir", directory, "--ledger", "--workers", 2, SINEW_PACE="20")
        for _ in range(STOPS):
            self.wait_until(lambda: len(sp.computing(directory)) == 2, process, "group")
            pid, number = self.leader_of(directory)
            os.kill(pid, signal.SIGSTOP)
            step = sp.step_of(directory)
            self.wait_until(lambda: sp.step_of(directory) >= step + ENOUGH, process, "group")
            self.assertFalse((directory / ".writers" / str(number)).exists(), "its successor has removed its directory")
            os.kill(pid, signal.SIGCONT)
        process.wait(PATIENCE)
        self.assertEqual(process.returncode, 0, self.said("group"))
        self.assert_same_story(directory)

    def test_a_worker_alone_that_was_stopped_changes_nothing_when_it_goes_on(self):
        directory = self.path / "alone"
        first = self.start("first", "train", self.job, "--run-dir", directory, "--ledger")
        self.wait_until(lambda: list(directory.glob("checkpoints/step-*")), first, "first")
        os.kill(first.pid, signal.SIGSTOP)
        # A process that holds the lock excludes another one, even while it is suspended. A user thinks that it is dead,
        # and removes the lock file.
        self.assertEqual(sp.run("resume", directory, "--ledger").returncode, 1)
        (directory / ".lock").unlink()
        step = sp.step_of(directory)
        second = self.start("second", "resume", directory, "--ledger")
        self.wait_until(lambda: sp.step_of(directory) > step + ENOUGH, second, "second")
        os.kill(first.pid, signal.SIGCONT)
        first.wait(PATIENCE)
        second.wait(PATIENCE)
        self.assertEqual(first.returncode, 1, self.said("first"))
        self.assertRegex(self.said("first"), r"\[(RUN_DIRECTORY_LOST|CHECKPOINT_MAY_NOT_WRITE)\]")
        self.assertEqual(second.returncode, 0, self.said("second"))
        self.assert_same_story(directory)

    def test_what_killed_writers_left_is_collected(self):
        directory = self.path / "killed"
        process = self.start("killed", "train", self.job, "--run-dir", directory, "--ledger")
        self.wait_until(lambda: list(directory.glob("checkpoints/step-*")), process, "killed")
        os.kill(process.pid, signal.SIGKILL)
        process.wait(60)
        (left,) = (directory / ".writers").iterdir()
        (left / ".saving-step-00000099").mkdir()
        (left / ".saving-step-00000099" / "model.safetensors").write_text("half")
        sp.run("resume", directory, "--ledger", check=0)
        (now,) = (directory / ".writers").iterdir()
        self.assertEqual(int(now.name), int(left.name) + 1)
        self.assertEqual(list(now.iterdir()), [])
        self.assert_same_story(directory)


if __name__ == "__main__":
    unittest.main()
