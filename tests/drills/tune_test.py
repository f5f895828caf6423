"""Tests studies of real trainings, with kills at any moment: no reported value is lost, and every trial equals a
training with its options."""
import collections
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import sinew_process as sp

STEPS = 60
LONG = bool(os.environ.get("SINEW_LONG"))
KILLS, MIXED_KILLS = (40, 500) if LONG else (4, 12)
STUDY = """
tune:
  trials: 8
  parallel: 2
  sampler: tpe
  pruner: asha
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
    """Returns all lines of study.jsonl but the header. Skips an incomplete last line."""
    text = (study / "study.jsonl").read_text()
    return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()[1:]]


class Study(unittest.TestCase):
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

    def assert_is_the_training_it_says(self, trial, *overrides):
        """Checks that an undisturbed training of the job with the trial's options gives the same metrics and digest."""
        params = next(e["params"] for e in events(self.study) if e["event"] == "start" and e["id"] == trial)
        words = [*overrides, *(f"{key}={value}" for key, value in params.items())]
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

    def trainings(self):
        """Returns (process id, trial) of each training process."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            except OSError:
                continue
            trial = re.search(rf"{re.escape(str(self.study))}/trials/(\d+)", " ".join(words))
            if words[0].endswith("sinew-worker") and trial:
                found.append((int(pid), int(trial[1])))
        return found


class Tune(Study):
    def test_the_best_trial_is_kept_and_equals_its_training(self):
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
        self.assertIn("[STUDY_EXISTS]", again.stderr)
        more = sp.run("tune", "resume", self.study, "--trials", 10, check=0)
        self.assertIn("10 trials", more.stdout)
        self.assertEqual(sum(e["event"] == "start" for e in events(self.study)), 10)

    def test_a_study_is_extended_and_shown_and_starts_another(self):
        words = ["tune.trials=3", "tune.pruner=none", "tune.deterministic=true"]
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

    def test_with_several_metrics_the_pareto_front_is_kept(self):
        job = self.path / "several.yaml"
        job.write_text(self.job.read_text().replace("pruner: asha", "constraints: [val/loss <= 100]")
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
        impossible = sp.run("tune", self.job, "tune.trials=2", "tune.constraints=[val/loss <= -1]", "tune.pruner=none", "--study", self.path / "none", check=0)
        self.assertIn("no trial meets the constraints", impossible.stdout)

    def test_every_trial_meets_the_constraints_between_parameters(self):
        job = self.path / "between.yaml"
        job.write_text(self.job.read_text().replace("search:", "parameter_constraints: [optimizer.lr * 10 + model.dropout <= 0.3]\n  search:"))
        sp.run("tune", job, "tune.trials=6", "--study", self.study, check=0)
        begun = [e["params"] for e in events(self.study) if e["event"] == "start"]
        self.assertEqual(len(begun), 6)
        for params in begun:
            self.assertLessEqual(params["optimizer.lr"] * 10 + float(params["model.dropout"]), 0.3)
        none = sp.run("tune", job, "tune.parameter_constraints=[optimizer.lr > 1]", "--study", self.path / "none")
        self.assertIn("'optimizer.lr > 1' [TUNE_CONSTRAINTS_TOO_TIGHT]", none.stderr)
        self.assertFalse((self.path / "none").exists())

    def test_a_study_ends_when_its_cost_is_spent_whichever_process_leads(self):
        process = sp.start("tune", self.job, "tune.trials=100000", "tune.price=3600", "tune.cost=6", "tune.pruner=none", "--study", self.study)
        self.assertTrue(sp.wait_for(lambda: any(e["event"] == "report" for e in events(self.study)) if (self.study / "study.jsonl").exists() else False))
        process.kill()
        process.communicate(timeout=60)
        before = self.trained()
        self.assertGreater(before, 0)
        done = sp.run("tune", "resume", self.study, check=0)
        spent = float(re.search(r"it took \S+ hours of training and cost (\S+)", done.stdout)[1])
        self.assertGreaterEqual(spent, 6)
        self.assertLess(sum(e["seconds"] for e in events(self.study) if e["event"] == "end"), 6 + 2 * 20, "what ran then ended")
        self.assertIn(f"tune.cost is spent; to continue with more: sinew tune resume {self.study} --cost 12", done.stdout)
        begun, again = len(self.ended()), sp.run("tune", "resume", self.study, "--trials", 200000, check=0)
        self.assertEqual(len(self.ended()), begun, "nothing begins any more")
        self.assertIn(f"cost {spent:.2f}", again.stdout)
        more = sp.start("tune", "resume", self.study, "--cost", spent + 3)
        self.assertTrue(sp.wait_for(lambda: len(self.trials_begun()) > begun))
        more.send_signal(signal.SIGTERM)
        self.assertEqual(more.wait(60), 75)
        more.stderr.close()
        self.assertTrue(any(e["event"] == "leave" and e["seconds"] > 0 for e in events(self.study)))
        self.assertIn("[STUDY_NO_COST_LIMIT]", sp.run("tune", "resume", self.left_alone(), "--cost", 3).stderr)

    def test_trials_begun_before_the_cost_was_spent_finish(self):
        process = sp.start("tune", self.job, "tune.trials=100000", "tune.price=3600", "tune.cost=4", "tune.pruner=none", "--study", self.study)
        # The study may end before the kill. Then no trial is under way, and the rest of the test still holds.
        self.assertTrue(sp.wait_for(lambda: (self.study / "study.jsonl").exists() and self.ended()
                                    and (self.trained() > 4 or process.poll() is not None), 120))
        process.kill()
        process.communicate(timeout=60)
        waiting = self.trials_begun() - self.ended().keys()
        sp.run("tune", "resume", self.study, check=0)
        self.assertEqual(self.ended().keys(), self.trials_begun(), f"{waiting} were under way")

    def trials_begun(self):
        return {e["id"] for e in events(self.study) if e["event"] == "start"}

    def trained(self):
        """Returns the seconds that all trials took together."""
        seconds = {}
        for event in events(self.study):
            seconds[event.get("id")] = max(seconds.get(event.get("id"), 0), event.get("seconds", 0))
        return sum(seconds.values())

    def left_alone(self):
        study = self.path / "without"
        sp.run("tune", self.job, "tune.trials=1", "--study", study, check=0)
        return study

    def population(self, name, *words):
        """Runs the study of a population, with kills if the name contains "killed". Returns its trials and their
        results."""
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

    def test_a_population_is_the_same_at_any_timing_and_trains_in_parts(self):
        study, calm = self.population("calm", "tune.parallel=1")
        for name, places in (("many", 5), ("killed", 2), ("killed-alone", 1)):
            self.assertEqual(self.population(name, f"tune.parallel={places}")[1], calm, name)
        trials = {one[1]: one for one in calm if one[0] == "start"}
        self.assertEqual([trials[i][3] is None for i in range(15)], [True] * 5 + [False] * 10)
        copies = [i for i in range(5, 15) if trials[i][3] % 5 != i % 5]
        self.assertEqual(len(copies), 2, "one of five after each part")
        # A member of the population whose options never changed ends with the same digest as one uninterrupted training
        # with those options.
        whole = next(i for i in range(10, 15) if i not in copies and i - 5 not in copies)
        words = [f"{key}={value}" for key, value in trials[whole][2].items()]
        sp.run("train", study / "job.yaml", "--run-dir", self.path / "whole", *words, check=0)
        self.assertEqual(sp.report(study / f"trials/{whole:05d}")["digest"], sp.report(self.path / "whole")["digest"])
        kept = [path.parent.name for path in study.glob("trials/*/checkpoints")]
        self.assertEqual(len(kept), 1, "the best one's")

    def test_paused_trials_continue_with_their_first_number_of_lanes(self):
        """Simulates a move of the study to a machine with another number of cores. A trial must continue with the
        number of lanes that it began with."""
        process = sp.start("tune", self.job, "tune.trials=2", "tune.pruner=none", "--study", self.study)
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

    def test_a_study_killed_anywhere_continues(self):
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

    def test_several_leaders_of_one_study_and_their_trainings_are_killed(self):
        """Checks that no reported value is lost, nothing happens twice, and no training process remains."""
        rng, parents, trainings, resting = random.Random(8), 0, 0, {}
        processes = [sp.start("tune", self.job, "tune.trials=100000", "--study", self.study)]
        self.assertTrue(sp.wait_for(lambda: (self.study / "study.jsonl").exists()))
        while parents + trainings < MIXED_KILLS:
            while len(processes) < 3:
                processes.append(sp.start("tune", "resume", self.study, "--parallel", 1))
            time.sleep(rng.uniform(0.1, 0.9))
            self.assertTrue(all(p.poll() is None for p in processes), "none has ended by itself")
            before = events(self.study)
            # A study marks a trial as failed if it dies three times without a report in between.
            reports = collections.Counter(e["id"] for e in before if e["event"] == "report")
            running = [(pid, trial) for pid, trial in self.trainings() if reports[trial] > resting.get(trial, 0)]
            if running and rng.random() < 0.6:
                pid, trial = rng.choice(running)
                resting[trial] = reports[trial]
                os.kill(pid, signal.SIGKILL)
                trainings += 1
            else:
                sp.kill(processes.pop(rng.randrange(len(processes))))
                parents += 1
            self.assertEqual(events(self.study)[:len(before)], before, "what stood there stands")
        for process in processes:
            sp.kill(process)
        begun = sum(e["event"] == "start" for e in events(self.study))
        sp.run("tune", "resume", self.study, "--trials", begun, check=0)
        ends = self.ended()
        starts = [e["id"] for e in events(self.study) if e["event"] == "start"]
        self.assertEqual(sorted(starts), list(range(begun)), "each begins once")
        last = {e["id"]: e["event"] for e in events(self.study) if e["event"] in ("start", "take", "resume", "pause", "end")}
        self.assertEqual({trial for trial, event in last.items() if event not in ("pause", "end")}, set(), "none is left running")
        self.assertTrue(all(e["state"] != "failed" for e in ends.values()), ends)
        self.assertGreater(len({e["process"] for e in events(self.study) if "process" in e}), 1)
        print(f"{parents} processes and {trainings} trainings killed, {begun} trials", file=sys.stderr)
        for trial in {self.best(), *rng.sample(sorted(t for t in resting if ends[t]["state"] == "complete") or [self.best()], 1)}:
            self.assert_is_the_training_it_says(trial)

    def test_killed_trials_continue_from_their_checkpoints(self):
        rng, killed = random.Random(6), []
        process = sp.start("tune", self.job, "--study", self.study)
        self.assertTrue(sp.wait_for(lambda: (self.study / "study.jsonl").exists()))
        next_kill = time.monotonic()
        while process.poll() is None and len(killed) < KILLS:
            time.sleep(0.01)
            # Kills a trial only after it has reported again, because a study marks a trial as failed if it dies three
            # times without a report in between.
            told = [e["id"] for e in events(self.study) if e["event"] == "report"]
            if time.monotonic() < next_kill or told[-1:] == killed[-1:]:
                continue
            workers = [pid for pid, trial in self.trainings() if told and trial == told[-1]]
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

    def test_the_first_signal_saves_and_exits_as_resumable(self):
        process = sp.start("tune", self.job, "--study", self.study)
        self.assertTrue(sp.wait_for(lambda: (self.study / "trials/00000/metrics.jsonl").exists()))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), 75)
        process.stderr.close()
        sp.run("tune", "resume", self.study, check=0)
        self.assertEqual(sum(e["event"] == "start" for e in events(self.study)), 8)


@unittest.skipUnless(LONG, "the long tier")
class LongTune(Study):
    """Must not run beside other tests, because it uses every core of the machine."""

    def running(self):
        return len({trial for _, trial in self.trainings()})

    def test_a_study_yields_to_other_programs_and_comes_back(self):
        places = len(os.sched_getaffinity(0))
        self.assertGreater(places, 1, "a machine of one core has one place")
        long = ("trainer.max_duration=40000st", "trainer.eval_interval=2000st", "checkpoint.interval=2000st")
        process = sp.start("tune", self.job, "tune.parallel=auto", "tune.pruner=none", f"tune.trials={places}", *long,
                           "--study", self.study)
        self.assertTrue(sp.wait_for(lambda: self.running() == places), "as many as there are cores")
        burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(places)]
        try:
            self.assertTrue(sp.wait_for(lambda: 0 < self.running() < places, 120), "others need the cores")
        finally:
            for burner in burners:
                burner.kill()
                burner.wait()
        self.assertTrue(sp.wait_for(lambda: self.running() == places, 120), "the cores are free again")
        process.wait(1200)
        process.stderr.close()
        self.assertEqual(process.returncode, 0)
        self.assertEqual([e["state"] for e in self.ended().values()], ["complete"] * places)
        self.assertEqual(sum(e["event"] == "start" for e in events(self.study)), places)
        logs = [(self.study / "trials" / f"{trial:05d}/log.jsonl").read_text() for trial in range(places)]
        resumed = [trial for trial, log in enumerate(logs) if "resumed at step" in log]
        self.assertTrue(resumed, "nobody went on from a checkpoint")
        self.assert_is_the_training_it_says(resumed[0], *long)


if __name__ == "__main__":
    unittest.main()
