"""Cuts the leader off from the coordinator, from the other members, or from both, for longer than its lease lasts. No
step may get two digests, and a member without a valid lease must not publish or delete a checkpoint."""
import collections
import ctypes
import errno
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import group as gr
import network as net
import sinew_process as sp

SEEDS = range(1, 13)
SILENT_TOO_LONG = 6  # seconds: longer than the lease and the timeouts of the coordinator and the links

# `published` is true if the rename published a checkpoint, false if it deleted one
Renamed = collections.namedtuple("Renamed", "published step pid")


class Hands(threading.Thread):
    """Records, in order, which process published or deleted which checkpoint of a run. To do so, a process renames a
    checkpoint from or to a hidden name in its own directory below .writers/; the name contains the process's number."""
    MOVED_FROM, MOVED_TO, CREATE, NONBLOCK = 0x40, 0x80, 0x100, 0o4000

    def __init__(self, directory):
        super().__init__(daemon=True)
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor = self.libc.inotify_init1(self.NONBLOCK)
        self.writers, self.seen, self.from_names, self.over = directory.parent / ".writers", [], {}, threading.Event()
        self.writers.mkdir(exist_ok=True)  # before a member writes
        self.watch(directory)
        self.of_writers = self.watch(self.writers)
        for writer in self.writers.iterdir():
            self.watch(writer)
        self.start()

    def watch(self, directory):
        """Watches a directory, unless it is gone: a writer may have ended, and its directory with it."""
        number = self.libc.inotify_add_watch(self.descriptor, os.fsencode(directory), self.MOVED_FROM | self.MOVED_TO | self.CREATE)
        if number < 0 and ctypes.get_errno() != errno.ENOENT:
            raise OSError(ctypes.get_errno(), "inotify")
        return number

    def run(self):
        while not self.over.wait(0.002):
            self.look()
        os.close(self.descriptor)

    def look(self):
        try:
            data = os.read(self.descriptor, 1 << 20)
        except BlockingIOError:
            return
        at = 0
        while at < len(data):
            watch, mask, cookie, length = struct.unpack_from("iIII", data, at)
            name = data[at + 16:at + 16 + length].rstrip(b"\0").decode()
            at += 16 + length
            if mask & self.MOVED_FROM:
                self.from_names[cookie] = name
            elif mask & self.MOVED_TO:
                self.renamed(self.from_names.pop(cookie, ""), name)
            elif mask & self.CREATE and watch == self.of_writers:
                self.watch(self.writers / name)

    def renamed(self, before, after):
        hidden = r"\.%s-step-(\d+)-(\d+)-\d+"
        if match := re.fullmatch(hidden % "saving", before):
            self.seen.append(Renamed(True, int(match[1]), int(match[2])))
        elif match := re.fullmatch(hidden % "removed", after):
            self.seen.append(Renamed(False, int(match[1]), int(match[2])))


class Partition(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        cls.job = sp.write_job(cls.path, gr.ENDLESS)
        cls.calm = gr.Calm(cls.job, cls.path / "calm")
        cls.report = []

    @classmethod
    def tearDownClass(cls):
        print("".join(f"\n  {name:40} without a step for {gap:5.2f} s at most" for name, gap in cls.report))
        cls.folder.cleanup()

    def begin(self, name, **options):
        group = gr.Group(self, self.job, self.path / name, **options)
        hands = Hands(group.directory / "checkpoints")
        self.addCleanup(hands.over.set)
        return group, hands

    def cut(self, group, hands, name, victim, from_coordinator, from_peers):
        """Cuts the victim off until the other members have published without it for a while, then reconnects it."""
        ids = group.until_complete()
        member = group.members[victim]
        pid, said, since = member.process.pid, len(group.log()), time.monotonic()
        ways = ([net.line_of(member.gate)] if from_coordinator else []) + ([net.links_of(ids[victim])] if from_peers else [])
        hold = group.network.add(net.Hold(net.either(*ways)))
        group.until(lambda: re.search(rf"member {ids[victim]} lost", group.log(said)), f"{name}: it is put out")
        marked = len(hands.seen)
        group.until(lambda: sum(one.published for one in hands.seen[marked:]) >= 4, f"{name}: the others publish")
        left = SILENT_TOO_LONG - (time.monotonic() - since)
        group.until_steps(1)
        if left > 0:
            group.until(lambda: time.monotonic() - since > SILENT_TOO_LONG, "long enough")
        group.network.heal(hold)
        group.until_complete()
        self.report.append((name, group.watch.longest_gap(since)))
        self.assert_hands(hands.seen[marked:], pid)

    def assert_hands(self, seen, gone):
        """Checks that the victim publishes and deletes nothing after another process has published a checkpoint."""
        first = next(i for i, one in enumerate(seen) if one.published and one.pid != gone)
        self.assertEqual([one for one in seen[first:] if one.pid == gone], [])

    def end(self, group, hands):
        group.until_complete()
        group.stop()
        hands.over.set()
        hands.join()
        hands_seen = [one.step for one in hands.seen if one.published]
        self.assertEqual(hands_seen, sorted(set(hands_seen)), "published out of order, or twice")
        deleted = [one.step for one in hands.seen if not one.published]
        self.assertEqual(len(deleted), len(set(deleted)))
        steps = sorted(path.name for path in (group.directory / "checkpoints").glob("step-*"))
        self.assertGreater(len(steps), 0)
        sp.run("checkpoint", "verify", group.directory / "checkpoints", check=0)
        self.assertEqual(group.lives_that_failed(), [])
        gr.assert_same_story(self, group.directory, self.calm)

    def leader(self, group):
        ids = group.until_complete()
        return min(ids, key=ids.get)

    def test_the_leader_is_cut_off(self):
        group, hands = self.begin("leader")
        for name, coordinator, peers in (("from the coordinator", True, False), ("from the others", False, True)):
            self.cut(group, hands, "the leader, " + name, self.leader(group), coordinator, peers)
        self.end(group, hands)


@unittest.skipUnless(os.environ.get("SINEW_LONG"), "the long tier")
class LongPartition(Partition):
    test_the_leader_is_cut_off = None

    def test_any_member_is_cut_off_in_any_way(self):
        for seed in SEEDS:
            with self.subTest(seed=seed):
                rng = random.Random(seed)
                group, hands = self.begin(f"any-{seed}", members=rng.choice([2, 3, 4]))
                for _ in range(3):
                    victim = self.leader(group) if rng.random() < 0.5 else rng.randrange(len(group.members))
                    coordinator, peers = rng.choice([(True, False), (False, True), (True, True)])
                    if coordinator and not peers or len(group.members) > 2:
                        self.cut(group, hands, f"{seed}: {victim} {coordinator} {peers}", victim, coordinator, peers)
                self.end(group, hands)
            self.doCleanups()

    def test_all_are_cut_off_from_the_coordinator(self):
        """No member has a lease. Steps may continue or stop, and nothing is published until the coordinator is back."""
        group, hands = self.begin("all")
        group.until_complete()
        since = time.monotonic()
        hold = group.network.add(net.Hold(net.either(*[net.line_of(one.gate) for one in group.members])))
        group.until(lambda: time.monotonic() - since > 3, "the lease is over")
        marked = len(hands.seen)
        group.until(lambda: time.monotonic() - since > SILENT_TOO_LONG, "long enough")
        self.assertEqual(hands.seen[marked:], [])
        group.network.heal(hold)
        group.until_complete()
        self.report.append(("all from the coordinator", group.watch.longest_gap(since)))
        self.end(group, hands)


if __name__ == "__main__":
    unittest.main()
