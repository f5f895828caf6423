"""Kills, suspends and joins workers at any moment. The ledger must equal that of one undisturbed worker."""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import sinew_process as sp

LONG = bool(os.environ.get("SINEW_LONG"))
STEPS = 300
SHARDS = "trainer.shards=7"
PATIENCE = 240  # seconds; on a crowded machine, a run of a few seconds may take this long


class Elastic(sp.Drill):
    steps = STEPS
    calm_words = [SHARDS]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.calm = sp.digests(cls.path / "calm")

    def start(self, name, workers, *words, pace=None):
        directory = self.path / name
        process = sp.launch(self, self.path / f"{name}.log", "train", self.job, SHARDS, "--run-dir", directory, "--ledger",
                            "--workers", workers, *words, **({"SINEW_PACE": str(pace)} if pace else {}))
        return process, directory

    def said(self, directory):
        return (self.path / f"{directory.name}.log").read_text()

    def end(self, process, directory, code=0):
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.fail(f"did not end:\n{self.said(directory)}\n{sp.status(directory)}")
        self.assertEqual(process.returncode, code, self.said(directory))

    def assert_same_story(self, directory):
        self.assertEqual(sp.report(directory)["digest"], sp.report(self.path / "calm")["digest"])
        lines = [json.loads(line) for line in (directory / "ledger.jsonl").read_text().splitlines()]
        for line in lines:  # includes both lines if a step has two
            self.assertEqual(line["digest"], self.calm[line["step"]], f"step {line['step']}")
        self.assertEqual(sorted({line["step"] for line in lines}), sorted(self.calm))

    def reach(self, process, directory, step):
        self.assertTrue(sp.wait_for(lambda: process.poll() is not None or sp.step_of(directory) >= step, PATIENCE),
                        f"step {step} was not reached:\n{self.said(directory)}")

    def workers_of(self, directory):
        return [member["pid"] for member in (sp.status(directory) or {}).get("members", [])]

    def grows(self, process, directory, least, most=99):
        """Waits until `least` to `most` members compute. Fails if the run ends before."""
        there = lambda: least <= len(sp.computing(directory)) <= most
        self.assertTrue(sp.wait_for(lambda: process.poll() is not None or there(), PATIENCE), self.said(directory))
        self.assertIsNone(process.poll(), f"it ended before {least} computed")

    def test_any_number_of_workers_equals_one_worker(self):
        for workers in (1, 3, 8):
            process, directory = self.start(f"calm-{workers}", workers, pace=workers + 3)
            self.grows(process, directory, (workers + 1) // 2)
            self.end(process, directory)
            self.assert_same_story(directory)

    def test_workers_killed_at_random_instants(self):
        rng = random.Random(5)
        process, directory = self.start("killed", 3, pace=3)
        kills = 0
        for step in sorted(rng.sample(range(5, STEPS - 40), 6)):
            self.reach(process, directory, step)
            for pid in rng.sample(self.workers_of(directory), 1) if process.poll() is None and self.workers_of(directory) else []:
                try:
                    os.kill(pid, signal.SIGKILL)
                    kills += 1
                except ProcessLookupError:
                    pass
        self.end(process, directory)
        self.assertGreaterEqual(kills, 4)
        self.assert_same_story(directory)

    def test_tls_changes_nothing(self):
        process, directory = self.start("tls", 3, "--tls", pace=3)
        self.reach(process, directory, 20)
        coordinator = json.loads((directory / "coordinator.json").read_text())
        self.assertTrue(coordinator["url"].startswith("https://"), coordinator["url"])
        victim = self.workers_of(directory)[-1]
        os.kill(victim, signal.SIGKILL)
        os.kill(coordinator["pid"], signal.SIGKILL)
        self.end(process, directory)
        self.assert_same_story(directory)

    def test_processes_of_a_launcher_equal_one_worker(self):
        directory = self.path / "launched"
        processes = []
        for rank in range(3):
            told = {"RANK": str(rank), "WORLD_SIZE": "3", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "3"}
            with open(self.path / "launched.log", "ab") as log:
                processes.append(subprocess.Popen(
                    sp.command("train", self.job, SHARDS, "--run-dir", directory, "--ledger", "--launcher", "env", "--resume"),
                    stdout=log, stderr=subprocess.STDOUT, env={**os.environ, "SINEW_PACE": "3", **told}))
            self.addCleanup(lambda process=processes[-1]: (process.poll() is None and process.kill(), process.wait(60)))
        self.reach(processes[0], directory, 20)
        os.kill(self.workers_of(directory)[-1], signal.SIGKILL)
        for process in processes:
            self.end(process, directory)
        self.assert_same_story(directory)

    def test_the_coordinator_dies_with_a_worker(self):
        process, directory = self.start("headless", 3, pace=3)
        self.reach(process, directory, 20)
        coordinator = json.loads((directory / "coordinator.json").read_text())["pid"]
        victim = self.workers_of(directory)[-1]
        os.kill(coordinator, signal.SIGKILL)
        os.kill(victim, signal.SIGKILL)
        self.end(process, directory)
        self.assert_same_story(directory)

    def test_the_best_model_survives_whoever_dies_before_it_is_saved(self):
        """The exported model is that of the best step, which only one worker saves."""
        best = ["early_stopping={monitor: val/loss, patience: 1000}", "trainer.eval_interval=10st", "checkpoint.interval=1000st"]
        model = lambda directory: (directory / "model/model.safetensors").read_bytes()
        sp.run("train", self.job, SHARDS, *best, "--run-dir", self.path / "best", "--ledger", check=0)
        process, directory = self.start("best-killed", 3, *best, pace=3)
        log, killed, seen = directory / "log.jsonl", [], 0
        while process.poll() is None and len(killed) < 6:
            lines = [line for line in log.read_text().splitlines() if "(best)" in line] if log.exists() else []
            if len(lines) == seen:
                continue
            seen = len(lines)
            now = sp.status(directory)
            if not now or len(now["members"]) < 3:  # the killed ones are not back
                continue
            leader = next(member["pid"] for member in now["members"] if member["id"] == now["leader"])
            victim = json.loads((directory / "coordinator.json").read_text())["pid"] if len(killed) % 2 else leader
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)
        self.end(process, directory)
        self.assertGreaterEqual(len(killed), 2)
        self.assertEqual(sp.report(directory)["best"], sp.report(self.path / "best")["best"])
        self.assertEqual(model(directory), model(self.path / "best"))
        self.assertNotIn("best_not_restored", log.read_text())
        self.assertEqual(sp.digests(directory), sp.digests(self.path / "best"))

    def test_a_stopped_worker_is_removed_and_comes_back(self):
        process, directory = self.start("stopped", 3, pace=6)
        self.grows(process, directory, 3)
        victim = self.workers_of(directory)[0]  # the leader
        os.kill(victim, signal.SIGSTOP)
        at = sp.step_of(directory)
        self.reach(process, directory, at + 15)
        self.assertIsNone(process.poll(), "it ended while the leader was stopped")
        self.assertNotIn(victim, sp.computing(directory))
        os.kill(victim, signal.SIGCONT)
        self.grows(process, directory, 3)
        self.end(process, directory)
        self.assert_same_story(directory)

    def test_scaled_while_it_runs(self):
        process, directory = self.start("scaled", 1, pace=6)
        self.reach(process, directory, 10)
        sp.run("scale", directory, 3, check=0, timeout=60)
        self.grows(process, directory, 3)
        sp.run("scale", directory, 2, check=0, timeout=60)
        self.grows(process, directory, 2, 2)
        self.end(process, directory)
        self.assert_same_story(directory)

    def test_all_dead_then_resumed_by_another_number(self):
        process, directory = self.start("dead", 3, pace=3)
        self.reach(process, directory, 60)
        children = self.workers_of(directory) + [json.loads((directory / "coordinator.json").read_text())["pid"]]
        for pid in [process.pid, *children]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        process.wait(60)
        process, directory = self.start("dead", 2, "--resume")
        self.end(process, directory)
        self.assert_same_story(directory)

    def test_stopped_by_a_signal_then_resumed_alone(self):
        process, directory = self.start("paused", 3, pace=3)
        self.reach(process, directory, 30)
        process.send_signal(signal.SIGINT)
        self.end(process, directory, 75)
        self.assertEqual(sp.report(directory)["status"], "stopped")
        sp.run("train", self.job, SHARDS, "--run-dir", directory, "--resume", "--ledger", check=0)
        self.assert_same_story(directory)

    def test_a_later_end_gives_one_model_for_any_workers(self):
        later = f"trainer.max_duration={STEPS + 60}st"
        for name in ("later-alone", "later-three"):
            shutil.copytree(self.path / "calm", self.path / name, symlinks=True)
        alone, three = self.path / "later-alone", self.path / "later-three"
        sp.run("resume", alone, later, "--ledger", check=0)
        process = sp.launch(self, self.path / "later-three.log", "resume", three, later, "--workers", 3, "--ledger",
                            SINEW_PACE="3")
        self.reach(process, three, STEPS + 10)
        for pid in [*self.workers_of(three)[:1], process.pid]:  # a worker dies, and then all of them
            os.kill(pid, signal.SIGKILL)
        process.wait(60)
        self.assertTrue(sp.wait_for(lambda: sp.run("resume", three, "--workers", 2, "--ledger").returncode == 0, 120, 1))
        self.assertEqual(sp.digests(three), sp.digests(alone))
        self.assertEqual(max(sp.digests(three)), STEPS + 60)
        self.assertEqual(sp.report(three)["digest"], sp.report(alone)["digest"])
        control = json.loads((alone / "checkpoints/last/state.json").read_text())["control"]
        self.assertEqual([(entry["step"], entry["value"]) for entry in control if entry["kind"] == "max_duration"],
                         [(STEPS, STEPS + 60)])
        self.assertEqual(sp.run("repro", alone).returncode, 1)
        # What cannot be trained changes nothing.
        before = {path: path.read_text() for path in (alone / "resolved.yaml", alone / "ends.jsonl", alone / "report.json")}
        refused = sp.run("resume", alone, "objective=val/nonsense >= 1")
        self.assertEqual(refused.returncode, 1, refused.stdout)
        self.assertIn("the run was not changed", refused.stderr)
        self.assertEqual({path: path.read_text() for path in before}, before)
        refused = sp.run("resume", alone, "optimizer.lr=0.5")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("keeps its optimizer.lr", refused.stderr)

    def test_a_group_that_loses_its_directory_stops(self):
        process, directory = self.start("moved", 2, pace=3)
        self.reach(process, directory, 20)
        directory.rename(self.path / "elsewhere")
        directory.mkdir()
        (directory / "own").write_text("of somebody else")
        self.end(process, directory, 1)
        self.assertIn("RUN_DIRECTORY_LOST", self.said(directory))
        self.assertEqual(sorted(p.name for p in directory.iterdir() if not p.name.startswith("coordinator.")), ["own"])
        sp.run("resume", self.path / "elsewhere", "--ledger", check=0)
        self.assert_same_story(self.path / "elsewhere")

    def test_a_group_does_not_take_the_checkpoints_of_another_job(self):
        process, directory = self.start("foreign", 2, pace=3)
        self.reach(process, directory, 20)
        process.send_signal(signal.SIGINT)
        self.end(process, directory, 75)
        for name in ("resolved.yaml", "job.yaml", "report.json"):
            (directory / name).unlink()
        process, directory = self.start("foreign", 2, "optimizer.lr=1e-3")
        self.end(process, directory, 1)
        self.assertIn("optimizer.lr was 0.003, is 0.001", self.said(directory))


if __name__ == "__main__":
    unittest.main()
