"""Tests a search whose trials are commands: `sinew tune` on a job file with `command`."""
import os
import random
import signal
import time
import unittest

from runner import PATIENCE, Commands, lines_of, processes_with, wait_for

LAST = 9  # reports of a completed trial
# The loss falls with each step. The script saves each step and continues from there.
SCRIPT = r"""
step=0
[ -n "$SINEW_RESUME_FROM" ] && step=$(cat "$SINEW_RESUME_FROM")
echo "begins after $step"
trap 'asked=yes' TERM
while [ "$step" -lt 9 ]; do
  step=$((step + 1))
  line=$(awk -v x="$SINEW_PARAM_X" -v step="$step" 'BEGIN { printf "{\"step\": %d, \"loss\": %.9f}", step, (x - 0.3) ^ 2 + 1 / step }') || exit 75
  echo $step > "$SINEW_CHECKPOINT_DIR/.new" && mv "$SINEW_CHECKPOINT_DIR/.new" "$SINEW_CHECKPOINT_DIR/step-$step"
  echo "$line"
  [ -n "$asked" ] && exit 75
  sleep 0.05
done
"""
SAVE = 'echo $step > "$SINEW_CHECKPOINT_DIR/.new" && mv "$SINEW_CHECKPOINT_DIR/.new" "$SINEW_CHECKPOINT_DIR/step-$step"'
# This script saves only when it is asked to stop, and takes some time to save. A signal that ends awk does not end it.
SAVES_WHEN_TOLD = SCRIPT.replace(SAVE + "\n", "\n").replace("|| exit 75", "|| { step=$((step - 1)); continue; }").replace(
    "&& exit 75", "&& { sleep 0.2; " + SAVE + "; } && exit 75")
JOB = """
name: hill
command: [bash, {script}, {tag}]
params: {{x: 0, note: a}}
grace: 10s
tune:
  trials: 8
  parallel: 2
  sampler: random
  monitor: train/loss
  search:
    params.x: {{low: 0.0, high: 1.0}}
    params.note: [a, b]
  {more}
"""


class Study(Commands):
    def setUp(self):
        super().setUp()
        self.tag = f"study-{os.getpid()}-{time.monotonic_ns()}"
        self.study = self.file("study")

    def job(self, more="pruner: none", script=SCRIPT):
        self.file("trial.sh").parent.mkdir(parents=True, exist_ok=True)
        self.file("trial.sh").write_text(script)
        self.file("job.yaml").write_text(JOB.format(script=self.file("trial.sh"), tag=self.tag, more=more))
        return str(self.file("job.yaml"))

    def events(self, kind):
        return [line for line in lines_of(self.study / "study.jsonl")[1:] if line["event"] == kind]

    def assert_told_what_they_were(self, killed=False):
        """Checks that the reports of each trial are the values that the script prints for the trial's parameter, each
        once and in order. The last output of a killed command may be missing."""
        points = {event["id"]: event["params"]["params.x"] for event in self.events("start")}
        told = {}
        for event in self.events("report"):
            told.setdefault(event["id"], []).append(event["value"])
        for trial, values in told.items():
            steps = [round(1 / (value - (points[trial] - 0.3) ** 2)) for value in values]
            for step, value in zip(steps, values):
                self.assertAlmostEqual(value, (points[trial] - 0.3) ** 2 + 1 / step, places=6, msg=f"trial {trial} step {step}")
            self.assertEqual(steps, sorted(set(steps)), f"trial {trial}")
            if not killed:
                self.assertEqual(steps, list(range(1, len(steps) + 1)), f"trial {trial}")
        for event in self.events("end"):
            if event["state"] == "complete":
                self.assertEqual(event["values"], told[event["id"]][-1:])
                self.assertTrue(killed or len(told[event["id"]]) == LAST)

    def test_every_trial_runs_the_command_with_its_parameters(self):
        done = self.sinew("tune", self.job(), "--study", str(self.study))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        ends = self.events("end")
        self.assertEqual([event["state"] for event in ends], ["complete"] * 8)
        self.assert_told_what_they_were()
        best = min(ends, key=lambda event: event["values"])["id"]
        self.assertIn(f"trial {best} ", done.stdout)
        self.assertTrue((self.study / "report.html").exists())
        self.assertEqual(processes_with(self.tag), [])

    def test_a_paused_trial_continues_from_its_checkpoint(self):
        done = self.sinew("tune", self.job(f"evaluations: {LAST}\n  pruner: asha"), "--study", str(self.study))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assert_told_what_they_were()
        self.assertTrue(self.events("pause"))
        self.assertFalse([event for event in self.events("end") if event["state"] == "failed"])
        resumed = {event["id"] for event in self.events("resume")}
        self.assertTrue(resumed)
        for trial in resumed:
            output = (self.study / f"trials/{trial:05d}/output/stdout.log").read_text()
            begun = [int(line.split()[-1]) for line in output.splitlines() if line.startswith("begins after")]
            self.assertEqual(begun[0], 0)
            self.assertTrue(all(step > 0 for step in begun[1:]), begun)

    def test_a_command_that_saves_nothing_can_be_paused(self):
        job = self.job(f"evaluations: {LAST}\n  pruner: asha")
        self.file("trial.sh").write_text(SCRIPT.replace("trap 'asked=yes' TERM\n", "").replace("echo $step >", "true >"))
        done = self.sinew("tune", job, "--study", str(self.study))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assert_told_what_they_were()
        self.assertFalse([event for event in self.events("end") if event["state"] == "failed"])

    def test_a_study_killed_anywhere_continues_and_leaves_nothing_behind(self):
        rng = random.Random(3)
        process = self.start("tune", self.job(), "--study", str(self.study))
        wait_for(lambda: (self.study / "study.jsonl").exists(), "a study")
        for _ in range(4):
            time.sleep(rng.uniform(0.05, 0.5))
            process.send_signal(signal.SIGKILL)
            process.wait(PATIENCE)
            wait_for(lambda: not processes_with(self.tag), "the trials' ends")
            process = self.start("tune", "resume", str(self.study))
        process.communicate(timeout=PATIENCE * 3)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(sorted(event["id"] for event in self.events("end")), list(range(8)))
        self.assertEqual({event["state"] for event in self.events("end")}, {"complete"})
        self.assert_told_what_they_were(killed=True)
        self.assertEqual(processes_with(self.tag), [])

    def population(self, script=SCRIPT):
        """Returns the job of a population. Its members train slowly, so that they do few steps after the end of their
        part."""
        script = script.replace("sleep 0.05", "sleep 0.15")
        return self.job(f"evaluations: {LAST}\n  population: 4", script), ["tune.sampler=pbt", "tune.trials=12"]

    def measured_last(self, starts, trial):
        while not (lines := lines_of(self.study / f"trials/{trial:05d}/metrics.jsonl")):
            trial = starts[trial]["from"]
        return [lines[-1]["train/loss"]]

    def assert_trained_in_parts(self, killed=False):
        """Checks that each part continues from the saved step of the part that it names, with its own parameters, and
        that its value is its last report."""
        starts = {event["id"]: event for event in self.events("start")}
        ends = {event["id"]: event for event in self.events("end")}
        self.assertEqual(sorted(starts), list(range(12)))
        self.assertEqual({end["state"] for end in ends.values()}, {"complete"})
        reports, steps, copied = {}, {}, 0
        for event in self.events("report"):
            reports.setdefault(event["id"], []).append(event["value"])
        for trial, start in starts.items():
            source, x = start.get("from"), start["params"]["params.x"]
            told = reports.get(trial, [])
            steps[trial] = [round(1 / (value - (x - 0.3) ** 2)) for value in told]
            self.assertEqual(ends[trial]["values"], told[-1:] or self.measured_last(starts, source), "with nothing left to train it is what it goes on from")
            self.assertEqual(steps[trial], sorted(set(steps[trial])))
            if not killed:
                self.assertEqual(len(told), len(range(steps[trial][0], steps[trial][-1] + 1)) if told else 0)
                self.assertLessEqual(len(told), LAST // 3 if trial < 8 else LAST)
            self.assertEqual(source is None, trial < 4)
            if source is None:
                self.assertTrue(killed or steps[trial] == list(range(1, LAST // 3 + 1)))
                continue
            self.assertEqual(source // 4, trial // 4 - 1)
            self.assertTrue(not told or not steps[source] or steps[trial][0] > steps[source][-1], "what was trained is not trained again")
            copied += source % 4 != trial % 4
            if source % 4 == trial % 4:
                self.assertEqual(x, starts[source]["params"]["params.x"])
        self.assertEqual(copied, 2, "of four one, after each part")
        for part in range(2):
            self.assertTrue(any(steps[trial] for trial in range(4 * part, 4 * part + 4)), f"nobody trained in part {part}")
        kept = [path.parent.name for path in self.study.glob("trials/*/checkpoints")]
        self.assertEqual(len(kept), 1, "the best one's")

    def test_a_population_continues_from_the_checkpoints_of_its_members(self):
        path, words = self.population()
        done = self.sinew("tune", path, *words, "--study", str(self.study))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assert_trained_in_parts()

    def killed_population(self, rng, script=SCRIPT):
        """Runs a population and kills the study each time after a few more reports."""
        path, words = self.population(script)
        process = self.start("tune", path, *words, "--study", str(self.study))
        for reports in (2, 5, 9, 14):
            wait_for(lambda: self.study.joinpath("study.jsonl").exists() and len(self.events("report")) >= reports, "reports")
            time.sleep(rng.uniform(0, 0.15))
            process.send_signal(signal.SIGKILL)
            process.wait(PATIENCE)
            wait_for(lambda: not processes_with(self.tag), "the trials' ends")
            process = self.start("tune", "resume", str(self.study))
        said = process.communicate(timeout=PATIENCE * 3)
        self.assertEqual(process.returncode, 0, said)

    def test_a_killed_population_continues(self):
        self.killed_population(random.Random(8))
        self.assert_trained_in_parts(killed=True)

    def test_a_killed_population_that_saves_on_request_continues(self):
        self.killed_population(random.Random(9), SAVES_WHEN_TOLD)
        ends = {event["id"]: event for event in self.events("end")}
        self.assertEqual({end["state"] for end in ends.values()}, {"complete"})
        starts = {event["id"]: event for event in self.events("start")}
        for trial, start in starts.items():  # each part begins where the previous one saved, after all its steps
            output = (self.study / f"trials/{trial:05d}/output/stdout.log").read_text()
            begun = [int(line.split()[-1]) for line in output.splitlines() if line.startswith("begins after")]
            self.assertTrue(all(step >= LAST // 3 * (trial // 4) for step in begun), f"trial {trial} began after {begun}")

    def test_a_member_that_stops_saving_fails(self):
        path, words = self.population(SCRIPT.replace("&& mv ", '&& [ "$step" -lt 4 ] && mv '))
        done = self.sinew("tune", path, *words, "--study", str(self.study))
        states = {event["id"]: event["state"] for event in self.events("end")}
        self.assertEqual([states[trial] for trial in range(4)], ["complete"] * 4)
        reported = {event["id"] for event in self.events("report")}
        for trial in range(4, 8):
            began = (self.study / f"trials/{trial:05d}/output/stdout.log").read_text()
            if trial in reported and "begins after 3" in began:
                self.assertEqual(states[trial], "failed", done.stdout)
        self.assertIn("it left no complete checkpoint in SINEW_CHECKPOINT_DIR", done.stdout)

    def test_an_error_names_a_population_that_saves_nothing(self):
        path, words = self.population(SCRIPT.replace("echo $step >", "true >"))
        done = self.sinew("tune", path, *words, "--study", str(self.study))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("it left no complete checkpoint in SINEW_CHECKPOINT_DIR", done.stdout)
        states = {event["id"]: event["state"] for event in self.events("end")}
        self.assertEqual([states[trial] for trial in range(12)], ["failed"] * 8 + ["complete"] * 4, "the last part needs none")

    def test_the_first_signal_lets_trials_save(self):
        process = self.start("tune", self.job(), "--study", str(self.study))
        wait_for(lambda: len(lines_of(self.study / "study.jsonl")) > 6 if (self.study / "study.jsonl").exists() else False, "reports")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 75)
        done = self.sinew("tune", "resume", str(self.study))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual([event["state"] for event in self.events("end")], ["complete"] * 8)
        self.assert_told_what_they_were()

    def test_a_search_must_name_its_metric(self):
        path = self.job()
        self.file("job.yaml").write_text(self.file("job.yaml").read_text().replace("  monitor: train/loss\n", ""))
        done = self.sinew("tune", path, "--study", str(self.study))
        self.assertEqual(done.returncode, 2)
        self.assertIn("[TUNE_NO_METRIC]", done.stderr)
        self.assertFalse(self.study.exists())

    def test_unequal_parts_are_refused_before_the_study_begins(self):
        path, words = self.population()
        done = self.sinew("tune", path, *words, "tune.evaluations=10", "--study", str(self.study))
        self.assertEqual(done.returncode, 2)
        self.assertIn("[TUNE_UNEVEN_GENERATIONS]", done.stderr)
        self.assertFalse(self.study.exists())


if __name__ == "__main__":
    unittest.main()
