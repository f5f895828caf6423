"""A training worker computes one wrong gradient. The workers find it by computing shards twice, and no wrong result remains."""
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import sinew_process as sp

STEPS = 120
SAVED_EVERY = 25
WRONG_AT = 60
WORDS = ["trainer.shards=7", f"checkpoint.interval={SAVED_EVERY}st", "checkpoint.keep_best=0"]
PATIENCE = 240  # seconds; a run of a few seconds may take this long on a crowded machine
HEX = "[0-9a-f]{32}"


class Audit(sp.Drill):
    steps = STEPS
    calm_words = WORDS

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.calm = (cls.path / "calm/ledger.jsonl").read_text()

    def train(self, name, *words, flip=None, audit=1, code=0):
        """Trains the job; `flip` is (step, member, what). Returns what it said, and the run directory."""
        directory = self.path / name
        env = {"SINEW_FLIP": "{}:{}:{}".format(*flip)} if flip else {}
        done = sp.run("train", self.job, *WORDS, f"cluster.audit={audit}", "--run-dir", directory, "--ledger", *words, timeout=PATIENCE,
                      env=env, check=code)
        return done.stdout + done.stderr, directory

    def events(self, directory, kind):
        lines = (directory / "log.jsonl").read_text().splitlines()
        return [event["text"] for event in map(json.loads, lines) if event["event"] == kind]

    def assert_same_story(self, directory):
        self.assertEqual((directory / "ledger.jsonl").read_text(), self.calm)
        self.assertEqual(sp.report(directory)["digest"], sp.report(self.path / "calm")["digest"])
        steps = [json.loads(line)["step"] for line in (directory / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual(steps, sorted(steps))

    def test_without_an_audit_a_wrong_gradient_stays(self):
        _, directory = self.train("unseen", "--workers", 3, flip=(WRONG_AT, 2, "shard"), audit=0)
        ledger, calm = (directory / "ledger.jsonl").read_text().splitlines(), self.calm.splitlines()
        self.assertEqual(ledger[:WRONG_AT], calm[:WRONG_AT])
        self.assertNotEqual(ledger[WRONG_AT], calm[WRONG_AT])
        self.assertEqual(len(ledger), len(calm))

    def test_an_audit_of_right_gradients_changes_nothing(self):
        for workers, audit in ((3, 1), (2, 0.3), (1, 1)):
            _, directory = self.train(f"right-{workers}", "--workers", workers, audit=audit)
            self.assert_same_story(directory)

    def test_one_of_three_is_named_and_fenced_and_the_step_is_made_again(self):
        for liar, what in ((3, "shard"), (2, "audit")):
            with self.subTest(liar=liar, what=what):
                _, directory = self.train(f"three-{liar}-{what}", "--workers", 3, flip=(WRONG_AT, liar, what))
                self.assert_same_story(directory)
                [told] = self.events(directory, "audit_failed")
                named = (rf"member {liar} \(\S+\) computed a wrong result of shard \d of step {WRONG_AT}: {HEX}, "
                         rf"and member \d \S+ and member \d \S+ computed {HEX}")
                self.assertRegex(told, named)
                self.assertIn("Test the memory and the processor", told)
                log = (directory / "coordinator.log").read_text()
                self.assertRegex(log, rf"member \d reports: {named}")
                self.assertNotIn("ends the group", log)
                self.assertEqual(self.events(directory, "resume"), [])

    def test_all_go_back_if_earlier_results_may_be_wrong_or_the_leader_is(self):
        for liar, what, audit in ((3, "shard", 0.99), (1, "shard", 1), (1, "audit", 1)):  # 1 leads
            with self.subTest(liar=liar, what=what, audit=audit):
                _, directory = self.train(f"back-{liar}-{what}", "--workers", 3, flip=(WRONG_AT, liar, what), audit=audit)
                self.assert_same_story(directory)
                [told] = self.events(directory, "members_differ")
                self.assertRegex(told, rf"member {liar} \(\S+\) computed a wrong result of shard \d of step {WRONG_AT}: ")
                self.assertRegex((directory / "coordinator.log").read_text(), f"ends the group: member {liar} .*all members begin again")

    def test_what_a_leader_with_a_wrong_state_wrote_is_written_again(self):
        """The leader's wrong state gives a wrong line of the ledger before it gives a wrong gradient."""
        _, directory = self.train("leader", "--workers", 3, flip=(WRONG_AT, 1, "sums:30"))
        self.assert_same_story(directory)

    def test_two_end_the_run_and_a_resume_goes_on(self):
        said, directory = self.train("two", "--workers", 2, flip=(WRONG_AT, 2, "shard"), code=1)
        self.assertRegex(said, rf"shard \d of step {WRONG_AT} has result {HEX} on member \d \S+ and {HEX} on member \d .*"
                               r"\[GROUP_MEMBERS_DIVERGED\]")
        self.assertIn("try: ", said)
        self.assertEqual(sp.report(directory)["status"], "failed")
        self.assertEqual((directory / "ledger.jsonl").read_text().splitlines(), self.calm.splitlines()[:WRONG_AT])
        sp.run("resume", directory, "--workers", 2, "--ledger", timeout=PATIENCE, check=0)
        self.assert_same_story(directory)

    def test_one_worker_computes_twice_and_goes_back(self):
        for name, words, member in (("alone", [], 0), ("one", ["--workers", 1], 1)):
            for what, which in (("shard", "first"), ("audit", "second")):
                with self.subTest(name=name, what=what):
                    _, directory = self.train(f"{name}-{what}", *words, flip=(WRONG_AT, member, what))
                    self.assert_same_story(directory)
                    [told] = self.events(directory, "memory_changed")
                    self.assertRegex(told, rf"this worker computed step {WRONG_AT}, shard \d .* twice, with results {HEX} and {HEX}; "
                                           rf"a third time it got {HEX}, so the {which} result was wrong")
                    [resumed] = self.events(directory, "resume")  # a slow disk may have skipped the newest checkpoint
                    self.assertRegex(resumed, rf"resumed at step ({SAVED_EVERY}|{2 * SAVED_EVERY}) ")

    def test_a_drill_that_does_not_read_is_refused(self):
        for wrong in ("1:2", "1:2:gradient", "x:2:shard"):
            done = sp.run("train", self.job, "--run-dir", self.path / "wrong", env={"SINEW_FLIP": wrong})
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("[WORKER_BAD_ENVIRONMENT]", done.stderr)
            self.assertIn("  try: unset SINEW_FLIP", done.stderr)
            (self.path / "wrong" / "job.yaml").unlink()


if __name__ == "__main__":
    unittest.main()
