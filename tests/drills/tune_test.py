"""Studies of real trainings: killed anywhere, nothing told is lost, and every trial is the training it says it is."""
import json
import os
import pathlib
import random
import signal
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import sinew_process as sp

STEPS = 60
KILLS = 40 if os.environ.get("SINEW_LONG") else 4
STUDY = """
tune:
  trials: 8
  parallel: 2
  sampler: tpe
  stopper: asha
  monitor: val/loss
  search:
    optimizer.lr: {low: 1e-4, high: 0.1, log: true}
    model.dropout: [0, 0.2]
"""
POPULATION = """
tune:
  trials: 15
  sampler: pbt
  population: 5
  monitor: val/loss
  search:
    optimizer.lr: {low: 1e-4, high: 0.1, log: true}
    model.dropout: {low: 0, high: 0.5}
"""


def events(study):
    """Every line but the head; a torn last one is left out."""
    text = (study / "study.jsonl").read_text()
    return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()[1:]]


class Tune(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        self.job = sp.write_job(self.path, STEPS, STUDY)
        self.study = self.path / "study"

    def ended(self):
        ends = {}
        for event in events(self.study):
            if event["event"] == "end":
                self.assertNotIn(event["id"], ends, "a trial ends once")
                ends[event["id"]] = event
        return ends

    def assert_is_the_training_it_says(self, trial):
        """The same job with the trial's overrides, undisturbed, has the same metrics and the same digest."""
        params = next(e["params"] for e in events(self.study) if e["event"] == "start" and e["id"] == trial)
        words = [f"{key}={value}" for key, value in params.items()]
        calm = self.path / f"calm-{trial}"
        sp.run("train", self.study / "job.yaml", "--run-dir", calm, *words, check=0)
        there = self.study / "trials" / f"{trial:05d}"
        self.assertEqual(sp.report(there)["digest"], sp.report(calm)["digest"])
        told = [e["value"] for e in events(self.study) if e["event"] == "report" and e["id"] == trial]
        lines = [json.loads(line) for line in (calm / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual(told, [line["val/loss"] for line in lines if "val/loss" in line])

    def best(self):
        complete = [(e["values"][0], trial) for trial, e in self.ended().items() if e["state"] == "complete"]
        return min(complete)[1]

    def test_the_best_trial_is_kept_and_is_what_it_says(self):
        done = sp.run("tune", self.job, "--study", self.study, check=0)
        self.assertEqual(sum(e["event"] == "start" for e in events(self.study)), 8)
        best = self.best()
        self.assertIn(f"trial {best} ", done.stdout)
        self.assertTrue((self.study / "trials" / f"{best:05d}" / "model").is_dir())
        for trial in self.ended():
            if trial != best:
                self.assertFalse((self.study / "trials" / f"{trial:05d}" / "model").exists(), "only the best is kept")
        self.assert_is_the_training_it_says(best)
        again = sp.run("tune", self.job, "--study", self.study)
        self.assertNotEqual(again.returncode, 0)
        self.assertIn("is there already", again.stderr)
        more = sp.run("tune", "resume", self.study, "trials=10", check=0)
        self.assertIn("10 trials", more.stdout)
        self.assertEqual(sum(e["event"] == "start" for e in events(self.study)), 10)

    def test_a_study_is_extended_shown_and_begins_another(self):
        words = ["tune.trials=3", "tune.stopper=none", "tune.deterministic=true"]
        sp.run("tune", self.job, *words, "--study", self.study, check=0)
        sp.run("tune", "extend", self.study, "--trials", 2, check=0)
        begun = [e["params"] for e in events(self.study) if e["event"] == "start"]
        self.assertEqual(len(begun), 5)
        page = self.study / "report.html"
        self.assertIn("val/loss", page.read_text())
        page.unlink()
        self.assertIn(str(page), sp.run("tune", "report", self.study, check=0).stdout)
        self.assertTrue(page.exists())
        later = self.path / "later"
        sp.run("tune", self.job, "tune.trials=2", f"tune.warm_start=[{self.study}]", "--study", later, check=0)
        first = next(e for e in events(later) if e["event"] == "start")
        self.assertEqual(first["by"], "earlier")
        self.assertEqual(first["params"], begun[self.best()])
        again = sp.run("tune", "extend", self.study, "--trials", "some")
        self.assertNotEqual(again.returncode, 0)

    def test_of_several_metrics_the_trials_that_no_other_beats_are_kept(self):
        job = self.path / "several.yaml"
        job.write_text(self.job.read_text().replace("stopper: asha", "constraints: [val/loss <= 100]")
                       .replace("monitor: val/loss", "objectives: [val/loss, val/f1, throughput/samples_per_sec]"))
        done = sp.run("tune", job, "--study", self.study, check=0)
        ends = self.ended()
        self.assertEqual(len(ends), 8)
        for end in ends.values():
            self.assertEqual([len(end["values"]), len(end["constraints"])], [3, 1])
            self.assertLess(end["constraints"][0], 0)
        worse = lambda values: (values[0], -values[1], -values[2])
        beats = lambda a, b: a != b and all(x <= y for x, y in zip(worse(a), worse(b)))
        best = {trial for trial, end in ends.items() if not any(beats(other["values"], end["values"]) for other in ends.values())}
        kept = {trial for trial in ends if (self.study / "trials" / f"{trial:05d}" / "model").is_dir()}
        self.assertEqual(kept, best)
        for trial in best:
            self.assertRegex(done.stdout, rf"val/loss \S+, val/f1 \S+, throughput/samples_per_sec \S+  trial {trial} ")
        impossible = sp.run("tune", self.job, "tune.trials=2", "tune.constraints=[val/loss <= -1]", "tune.stopper=none", "--study", self.path / "none", check=0)
        self.assertIn("no trial meets the constraints", impossible.stdout)

    def population(self, name, *words):
        """The study of a population, killed now and then: what it tried and what came of it."""
        job = self.path / f"{name}.yaml"
        job.write_text(self.job.read_text().replace(STUDY, POPULATION))
        study, rng = self.path / name, random.Random(name)
        process = sp.start("tune", job, *words, "--study", study)
        for _ in range(3 if "killed" in name else 0):
            self.assertTrue(sp.wait_for(lambda: (study / "study.jsonl").exists()))
            time.sleep(rng.uniform(0.1, 0.8))
            process.kill()
            process.communicate(timeout=60)
            process = sp.start("tune", "resume", study)
        _, said = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, said)
        told = [(e["event"], e["id"], e.get("params"), e.get("from"), e.get("values")) for e in events(study) if e["event"] in ("start", "end")]
        return study, sorted(told, key=lambda one: one[:2])

    def test_a_population_is_the_same_whatever_the_timing_and_trains_in_parts(self):
        study, calm = self.population("calm", "tune.parallel=1")
        for name, places in (("many", 5), ("killed", 2), ("killed-alone", 1)):
            self.assertEqual(self.population(name, f"tune.parallel={places}")[1], calm, name)
        trials = {one[1]: one for one in calm if one[0] == "start"}
        self.assertEqual([trials[i][3] is None for i in range(15)], [True] * 5 + [False] * 10)
        copies = [i for i in range(5, 15) if trials[i][3] % 5 != i % 5]
        self.assertEqual(len(copies), 2, "one of five after each part")
        # A member that was never changed is the undisturbed training of its options, from the first step to the last.
        whole = next(i for i in range(10, 15) if i not in copies and i - 5 not in copies)
        words = [f"{key}={value}" for key, value in trials[whole][2].items()]
        sp.run("train", study / "job.yaml", "--run-dir", self.path / "whole", *words, check=0)
        self.assertEqual(sp.report(study / f"trials/{whole:05d}")["digest"], sp.report(self.path / "whole")["digest"])
        kept = [path.parent.name for path in study.glob("trials/*/checkpoints")]
        self.assertEqual(len(kept), 1, "the best one's")

    def test_trials_that_wait_go_on_with_the_lanes_they_began_with(self):
        """As on a machine with other cores: what this one would give a trial is not what it began with."""
        process = sp.start("tune", self.job, "tune.trials=2", "tune.stopper=none", "--study", self.study)
        self.assertTrue(sp.wait_for(lambda: len(list(self.study.glob("trials/*/checkpoints/step-*"))) > 1))
        process.kill()
        process.communicate(timeout=60)
        open_trials = {e["id"] for e in events(self.study) if e["event"] == "start"} - self.ended().keys()
        self.assertTrue(open_trials)
        for trial in open_trials:
            kept = self.study / "trials" / f"{trial:05d}" / "job.yaml"
            kept.write_text(kept.read_text().replace("trainer.lanes=1", "trainer.lanes=3"))
        sp.run("tune", "resume", self.study, check=0)
        self.assertEqual({e["state"] for e in self.ended().values()}, {"complete"})

    def test_killed_anywhere_the_study_goes_on(self):
        rng, kills = random.Random(5), 0
        process = sp.start("tune", self.job, "--study", self.study)
        self.assertTrue(sp.wait_for(lambda: (self.study / "study.jsonl").exists()))
        for _ in range(KILLS):
            time.sleep(rng.uniform(0.1, 2.0))
            if process.poll() is not None:
                break
            before = events(self.study)
            sp.kill(process)
            kills += 1
            self.assertEqual(events(self.study)[:len(before)], before, "what stood there stands")
            process = sp.start("tune", "resume", self.study)
        self.assertGreater(kills, 0)
        process.wait(300)
        process.stderr.close()
        self.assertEqual(process.returncode, 0)
        self.assertEqual(sum(e["event"] == "start" for e in events(self.study)), 8)
        self.assert_is_the_training_it_says(self.best())

    def test_several_processes_lead_one_study_and_are_killed(self):
        rng, kills = random.Random(8), 0
        processes = [sp.start("tune", self.job, "--study", self.study)]
        self.assertTrue(sp.wait_for(lambda: (self.study / "study.jsonl").exists()))
        for _ in range(KILLS + 2):
            while len(processes) < 3:
                processes.append(sp.start("tune", "resume", self.study, "--parallel", 1))
            time.sleep(rng.uniform(0.3, 1.5))
            if any(p.poll() is not None for p in processes):
                break
            before = events(self.study)
            sp.kill(processes.pop(rng.randrange(len(processes))))
            kills += 1
            self.assertEqual(events(self.study)[:len(before)], before, "what stood there stands")
        self.assertGreater(kills, 0)
        for process in processes:
            process.wait(300)
            process.stderr.close()
            self.assertEqual(process.returncode, 0)
        self.assertEqual(sum(e["event"] == "start" for e in events(self.study)), 8)
        self.assertGreater(len({e["process"] for e in events(self.study) if "process" in e}), 1)
        self.assertTrue(all(e["state"] != "failed" for e in self.ended().values()), self.ended())
        self.assert_is_the_training_it_says(self.best())

    def test_trials_that_are_killed_go_on_from_their_checkpoints(self):
        rng, killed = random.Random(6), []
        process = sp.start("tune", self.job, "--study", self.study)
        self.assertTrue(sp.wait_for(lambda: (self.study / "study.jsonl").exists()))
        next_kill = time.monotonic()
        while process.poll() is None and len(killed) < KILLS:
            time.sleep(0.01)
            # Of a trial that has evaluated since it died last: a study gives one up that dies three times without.
            told = [e["id"] for e in events(self.study) if e["event"] == "report"]
            if time.monotonic() < next_kill or told[-1:] == killed[-1:]:
                continue
            workers = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and told and self.is_trial(pid, told[-1])]
            if workers:
                os.kill(workers[0], signal.SIGKILL)
                killed.append(told[-1])
                next_kill = time.monotonic() + rng.uniform(0.1, 0.8)
        process.wait(300)
        process.stderr.close()
        self.assertEqual(process.returncode, 0)
        self.assertTrue(all(e["state"] != "failed" for e in self.ended().values()), self.ended())
        self.assertGreater(len(killed), 0)
        logs = [(self.study / "trials" / f"{trial:05d}/log.jsonl").read_text() for trial in set(killed)]
        self.assertTrue(any("resumed at step" in log for log in logs), "nobody went on from a checkpoint")
        self.assert_is_the_training_it_says(self.best())

    def is_trial(self, pid, trial):
        try:
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
        return words[0].endswith(b"sinew-worker") and any(f"{self.study}/trials/{trial:05d}".encode() in word for word in words)

    def test_the_first_signal_saves_and_says_resumable(self):
        process = sp.start("tune", self.job, "--study", self.study)
        self.assertTrue(sp.wait_for(lambda: (self.study / "trials/00000/metrics.jsonl").exists()))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), 75)
        process.stderr.close()
        sp.run("tune", "resume", self.study, check=0)
        self.assertEqual(sum(e["event"] == "start" for e in events(self.study)), 8)


if __name__ == "__main__":
    unittest.main()
