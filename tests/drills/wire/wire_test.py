"""Breaks links and connections to the coordinator with every fault of network.py. The run continues, reports what
happened, and its ledger equals that of one undisturbed worker."""
import os
import pathlib
import random
import re
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import group as gr
import network as net
import sinew_process as sp

SEEDS = range(1, 21)
LOST = "lost while it joined|during the handshake"  # a member may be lost before or after the group lets it compute

SILENT = r"no sign of life"
CHECKSUM = r"wrong checksum|bytes that are no frame"
ENDED = r"connection (closed|reset) by"

# Name -> (makes the fault for the chosen Ways, i.e. directions of connections; pattern of what the coordinator must
# log). Pattern None: no member may be lost. Pattern "": the log is not checked, so a member may be lost or not.
ON_LINKS = {
    "flip in a header": (lambda ways, rng: net.Flip(ways, "header", rng), CHECKSUM),
    "flip in a payload": (lambda ways, rng: net.Flip(ways, "payload", rng), r"wrong checksum of a payload"),
    "reset in a frame": (lambda ways, rng: net.Break(ways), ENDED),
    "end in a frame": (lambda ways, rng: net.Truncate(ways), ENDED),
    "a frame is missing": (lambda ways, rng: net.Hole(ways), CHECKSUM),
    "a frame comes twice": (lambda ways, rng: net.Repeat(ways, True), CHECKSUM),
    "bytes come twice": (lambda ways, rng: net.Repeat(ways, False, rng), CHECKSUM),
    "one direction dead": (lambda ways, rng: net.Swallow(ways), SILENT),
    "trickle": (lambda ways, rng: net.Trickle(ways), r"only \d+ bytes in"),
    "cable pulled": (lambda ways, rng: net.Hold(ways), SILENT),
    "delay": (lambda ways, rng: net.Delay(ways), None),
}
ON_LINES = {
    "cable pulled": (lambda ways, rng: net.Hold(ways), r"silent for"),
    "silence": (lambda ways, rng: net.Swallow(ways), r"silent for"),
    "trickle": (lambda ways, rng: net.Trickle(ways), r"silent for"),
    "delay": (lambda ways, rng: net.Delay(ways), None),
    "reset": (lambda ways, rng: net.Break(ways), None),
    "end": (lambda ways, rng: net.Truncate(ways), None),
    # The coordinator may log any message or none: a flipped bit in a length field, for example, causes silence.
    "flip": (lambda ways, rng: net.Flip(ways, "http", rng), ""),
}
SHORT_LINKS = ["flip in a payload", "reset in a frame", "a frame is missing", "one direction dead", "trickle"]
SHORT_LINES = ["silence", "flip", "delay"]


class Wire(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        cls.job = sp.write_job(cls.path, gr.ENDLESS)
        cls.calm = gr.Calm(cls.job, cls.path / "calm")
        cls.report = []

    @classmethod
    def tearDownClass(cls):
        print("".join(f"\n  {name:34} without a step for {gap:5.2f} s at most{held}" for name, gap, held in cls.report))
        cls.folder.cleanup()

    def note(self, name, group, since, held=""):
        self.report.append((name, group.watch.longest_gap(since), held))

    def end(self, group):
        """Waits until all members compute, stops the run, and checks its ledger."""
        group.until_complete()
        group.stop()
        self.assertEqual(group.lives_that_failed(), [])
        gr.assert_same_story(self, group.directory, self.calm)

    def disturb(self, group, name, make, words, ways_of, rng):
        """Puts one fault on the ways that ways_of(ids) returns, waits for its effect, and removes it."""
        ids = group.until_complete()
        chosen, concerned = ways_of(ids)
        said, since = len(group.log()), time.monotonic()
        fault = group.network.add(make(chosen, rng))
        if not words:
            group.until(lambda: fault.touched > 0, f"{name}: bytes are touched")
            group.until_steps(10)
            if words is None:
                self.assertEqual(re.findall(r"view \d+: .*lost.*", group.log(said)), [], name)
        else:
            members = "|".join(str(one) for one in concerned)
            told = re.compile(rf"member ({members}) .*({words})")
            group.until(lambda: told.search(group.log(said)), f"{name}: it is said who went and that '{words}'")
            self.assertGreater(fault.touched, 0)
        group.network.heal()
        group.until_steps(3)
        self.note(name, group, since)

    def pair(self, ids, rng):
        a, b = rng.sample(sorted(ids.values()), 2)
        return net.between(a, b, rng.choice([True, False])), (a, b)

    def line(self, group, ids, rng):
        number = rng.choice(sorted(ids))
        return net.line_of(group.members[number].gate), (ids[number],)

    def test_links(self):
        rng = random.Random(1)
        group = gr.Group(self, self.job, self.path / "links")
        for name in SHORT_LINKS:
            make, words = ON_LINKS[name]
            self.disturb(group, "link: " + name, make, words, lambda ids: self.pair(ids, rng), rng)
        self.end(group)

    def test_lines_to_the_coordinator_and_handshakes(self):
        rng = random.Random(2)
        group = gr.Group(self, self.job, self.path / "lines")
        for name in SHORT_LINES:
            make, words = ON_LINES[name]
            self.disturb(group, "line: " + name, make, words, lambda ids: self.line(group, ids, rng), rng)
        # Changes the nonce in the hello, so that the proof does not match the nonce.
        self.disturb_a_handshake(group, 60, "did not prove")
        self.end(group)

    def disturb_a_handshake(self, group, place, words):
        """Breaks the handshake of a restarted worker. The group removes this worker, and admits its next process."""
        group.until_complete()
        said, since = len(group.log()), time.monotonic()
        fresh = lambda way: way.up and way.track is not None and way.track.part == "handshake"
        fault = group.network.add(net.Flip(fresh, "handshake", random.Random(3), place))
        group.kill(1)
        group.until(lambda: fault.touched > 0 and re.search(words, group.log(said)), f"a handshake fails: {words}")
        group.network.heal()
        group.until_complete()
        self.note(f"handshake, byte {place}", group, since)


@unittest.skipUnless(os.environ.get("SINEW_LONG"), "the long tier")
class LongWire(Wire):
    test_links = test_lines_to_the_coordinator_and_handshakes = None

    def test_every_fault_of_a_link(self):
        for seed in SEEDS[:5]:
            rng = random.Random(seed)
            group = gr.Group(self, self.job, self.path / f"links-{seed}")
            for name in rng.sample(sorted(ON_LINKS), len(ON_LINKS)):
                make, words = ON_LINKS[name]
                self.disturb(group, f"{seed}: link: {name}", make, words, lambda ids: self.pair(ids, rng), rng)
            self.end(group)
            self.doCleanups()

    def test_every_fault_of_a_line(self):
        for seed in SEEDS[:5]:
            rng = random.Random(seed)
            group = gr.Group(self, self.job, self.path / f"lines-{seed}")
            for name in rng.sample(sorted(ON_LINES), len(ON_LINES)):
                make, words = ON_LINES[name]
                self.disturb(group, f"{seed}: line: {name}", make, words, lambda ids: self.line(group, ids, rng), rng)
            self.end(group)
            self.doCleanups()

    def test_flips_at_every_part_of_a_handshake(self):
        group = gr.Group(self, self.job, self.path / "shakes")
        # The end that reads the changed byte logs which part is wrong. But the other end may report a lost connection
        # first, and the listener does not know yet which member connects.
        any_of_them = f"{LOST}|speaks version|another job|did not prove|not the one that was meant"
        for place, words in ((0, LOST), (4, any_of_them), (10, any_of_them),
                             (18, any_of_them), (30, any_of_them), (60, "did not prove"),
                             (100, "did not prove"), (150, "did not prove")):
            self.disturb_a_handshake(group, place, words)
        self.end(group)

    def test_mixtures_until_the_run_ends_by_itself(self):
        for seed in SEEDS:
            with self.subTest(seed=seed):
                self.mixture(seed)
            self.doCleanups()

    def mixture(self, seed):
        """Adds and removes faults of any kind anywhere, up to three at a time, without waiting for their effect."""
        rng = random.Random(seed)
        folder = self.path / f"mixture-{seed}"
        folder.mkdir()
        job = sp.write_job(folder, 400)
        group = gr.Group(self, job, folder / "run", members=rng.choice([2, 3, 4]), pace=rng.choice([1, 2]))
        faults, since, count = [], time.monotonic(), 0
        kinds = list(ON_LINKS.values()) + list(ON_LINES.values())
        next_change = 0.0
        def over():
            nonlocal next_change, count
            if time.monotonic() >= next_change:
                next_change = time.monotonic() + rng.uniform(0.2, 2.5)
                if len(faults) >= 3 or (faults and rng.random() < 0.5):
                    group.network.heal(faults.pop(rng.randrange(len(faults))))
                else:
                    make, _ = rng.choice(kinds)
                    number = rng.randrange(len(group.members))
                    one = group.members[number].gate
                    ways = rng.choice([net.line_of(one), lambda way, host=one.host: way.gate.address[0] == host,
                                       lambda way: way.ids is not None and way.up])
                    faults.append(group.network.add(make(ways, rng)))
                    count += 1
            if group.watch.step >= 390:  # a member cut off in the last steps would delay the others
                group.network.heal()
            return group.coordinator.poll() is not None
        group.until(over, "the run ends by itself", 900)
        group.network.heal()
        group.end(0, everybody=False)
        self.note(f"mixture {seed}: {count} faults", group, since)
        calm = gr.Calm(job, folder / "calm")
        gr.assert_same_story(self, group.directory, calm)
        self.assertEqual(sp.report(group.directory)["status"], "done")


if __name__ == "__main__":
    unittest.main()
