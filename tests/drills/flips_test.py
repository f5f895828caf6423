"""Flips one random bit in the memory of one of three workers, many times. Each time the workers must notice it in time and
name this worker, and the run must end with the results of an undisturbed one. The long tier makes 200 such runs of each kind."""
import json
import os
import pathlib
import random
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import sinew_process as sp

STEPS, FIRST, LAST = 70, 25, 60  # a bit is flipped in one of the steps FIRST to LAST
RUNS = 200 if os.environ.get("SINEW_LONG") else 5
SEED = int(os.environ.get("SINEW_DRILL_SEED", "1"))
WORDS = ["trainer.shards=7", "workers.min=3", "workers.max=3", "model.channels=[16,32]", "checkpoint.interval=20st", "checkpoint.keep_best=0"]
STATE = ["parameters", "optimizer", "averages", "buffers", "sums"]
GRADIENTS = ["shard", "audit"]
PATIENCE = 240  # seconds; a run of a few seconds may take this long on a crowded machine


class Flips(sp.Drill):
    steps = STEPS
    calm_words = [*WORDS, "--workers", 3]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.calm = (cls.path / "calm/ledger.jsonl").read_text()

    def events(self, directory, *kinds):
        lines = (directory / "log.jsonl").read_text().splitlines()
        return [event["text"] for event in map(json.loads, lines) if event["event"] in kinds]

    def flip(self, chance, what, audit):
        """Trains with one flipped bit. Returns what was flipped, and the sentences that name a wrong member. A gradient is
        not flipped if the member computes no shard in that step."""
        step, member, bit = chance.randrange(FIRST, LAST), chance.randrange(1, 4), chance.getrandbits(48)
        where = f"{step}:{member}:{what}:{bit}"
        directory = self.path / where.replace(":", "-")
        done = sp.run("train", self.job, *WORDS, f"cluster.audit={audit}", "--workers", 3, "--run-dir", directory, "--ledger",
                      timeout=PATIENCE, env={"SINEW_FLIP": where})
        self.assertEqual(done.returncode, 0, f"{where}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        self.assertEqual(sp.report(directory)["digest"], sp.report(self.path / "calm")["digest"], where)
        flipped = "SINEW_FLIP has flipped a bit" in done.stdout + done.stderr
        return step, member, where, directory, flipped, self.events(directory, "members_differ", "audit_failed")

    def wrong_steps(self, directory):
        """The steps whose digest in the ledger is not that of the undisturbed run."""
        ledger = (directory / "ledger.jsonl").read_text()
        calm = self.calm.splitlines()
        self.assertEqual(len(ledger.splitlines()), len(calm))
        return [step for step, (line, other) in enumerate(zip(ledger.splitlines(), calm), 1) if line != other]

    def test_a_bit_of_the_state_is_found_in_time_and_its_member_is_named(self):
        """The lowest bit of an average or a sum may disappear by rounding before its part of the state is compared. Then nothing
        is wrong with the state any more; only the leader's ledger has the digests of the steps in between."""
        chance, gone = random.Random(SEED), 0
        for run in range(RUNS):
            what = STATE[run % len(STATE)]
            with self.subTest(run=run, what=what):
                step, member, where, directory, flipped, told = self.flip(chance, what, run % 2)
                self.assertTrue(flipped, where)
                within = int(re.search(r"the whole state within (\d+) steps", self.events(directory, "comparison")[0])[1])
                self.assertGreater(within, 1)
                wrong = self.wrong_steps(directory)
                if what in ("averages", "sums") and not told:
                    gone += 1
                    self.assertTrue(all(step < one < step + within for one in wrong), f"{where}: {wrong}")
                    continue
                self.assertEqual(wrong, [], where)
                self.assertEqual(len(told), 1, f"{where}: {told}")
                self.assertRegex(told[0], rf"member {member} \(", where)
                found = int(re.search(r"step (\d+)", told[0])[1])
                self.assertTrue(step <= found <= step + within, f"{where}: {told[0]}")
        print(f"{gone} of {RUNS} bits disappeared by rounding", file=sys.stderr)
        self.assertLessEqual(gone, max(1, RUNS // 10))

    def test_a_bit_of_a_gradient_is_found_if_every_shard_is_audited(self):
        chance, flips = random.Random(SEED + 1), 0
        for run in range(RUNS):
            what = GRADIENTS[run % len(GRADIENTS)]
            with self.subTest(run=run, what=what):
                step, member, where, directory, flipped, told = self.flip(chance, what, 1)
                self.assertEqual(self.wrong_steps(directory), [], where)
                self.assertEqual(len(told), 1 if flipped else 0, f"{where}: {told}")
                if not flipped:
                    continue
                flips += 1
                self.assertRegex(told[0], rf"member {member} \(\S+\) computed a wrong result of shard \d of step {step}: ", where)
        self.assertGreater(flips, RUNS // 2)


if __name__ == "__main__":
    unittest.main()
