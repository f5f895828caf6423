"""Flips one bit in the memory of a training worker, from outside. The run must notice this and go back to its newest
checkpoint, or end if no majority of workers agrees. No wrong result may remain."""
import json
import os
import pathlib
import re
import signal
import struct
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import sinew_process as sp

STEPS = 300
FROZEN = "convolutions.0.weight"
SAVED_EVERY = 50
WORDS = ["trainer.shards=7", f"model.freeze=[{FROZEN}]", f"checkpoint.interval={SAVED_EVERY}st", "checkpoint.keep_best=0"]
SLOW = ["trainer.shards=7", f"model.freeze=[{FROZEN}]", "checkpoint.interval=10st", "checkpoint.keep_best=0",
        "model.channels=[64,128]", "trainer.batch_size=128", "trainer.max_duration=60st"]
PATIENCE = 240  # seconds; on a crowded machine, a run of a few seconds may take this long
LOOK_PAUSE = 0.1  # seconds between two looks at the members
TRIES = 10


def tensor_bytes(path, name):
    """Returns the bytes of a tensor of a safetensors file."""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    begin, end = json.loads(data[8:8 + size])[name]["data_offsets"]
    return data[8 + size + begin:8 + size + end]


def flip_a_bit(pid, wanted):
    """Flips a bit in every copy of these bytes in the memory of the process. Returns the number of copies."""
    found = 0
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        for line in maps:
            area, access, _, _, inode = line.split()[:5]
            if not access.startswith("rw") or inode != "0" or "[v" in line:
                continue
            begin, end = (int(text, 16) for text in area.split("-"))
            try:
                memory.seek(begin)
                content = memory.read(end - begin)
            except OSError:
                continue
            at = content.find(wanted)
            while at >= 0:
                memory.seek(begin + at + 6)  # a byte of the second float; 0x40 is the highest bit of its fraction
                memory.write(bytes([content[at + 6] ^ 0x40]))
                found += 1
                at = content.find(wanted, at + 1)
    return found


class Diverge(sp.Drill):
    steps = STEPS
    calm_words = WORDS

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.calm = (cls.path / "calm/ledger.jsonl").read_text()
        cls.weights = tensor_bytes(cls.path / "calm/checkpoints/last/model.safetensors", FROZEN)

    def start(self, name, *words, pace=1, job=WORDS):
        directory = self.path / name
        process = sp.launch(self, self.path / f"{name}.log", "train", self.job, *job, "--run-dir", directory, "--ledger", *words,
                            SINEW_PACE=str(pace))
        return process, directory

    def said(self, directory):
        return (self.path / f"{directory.name}.log").read_text()

    def reach(self, process, directory, step):
        self.assertTrue(sp.wait_for(lambda: process.poll() is not None or sp.step_of(directory) >= step, PATIENCE), self.said(directory))
        self.assertIsNone(process.poll(), self.said(directory))

    def grows(self, directory, workers):
        self.assertTrue(sp.wait_for(lambda: len(sp.computing(directory)) == workers, PATIENCE, LOOK_PAUSE), self.said(directory))

    def end(self, process, directory, code):
        process.wait(PATIENCE)
        self.assertEqual(process.returncode, code, self.said(directory)[-4000:])

    def events(self, directory):
        return [json.loads(line) for line in (directory / "log.jsonl").read_text().splitlines()]

    def assert_same_story(self, directory):
        self.assertEqual((directory / "ledger.jsonl").read_text(), self.calm)
        self.assertEqual(sp.report(directory)["digest"], sp.report(self.path / "calm")["digest"])
        steps = [json.loads(line)["step"] for line in (directory / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual(steps, sorted(steps))

    def has_noticed(self, process, directory):
        try:
            text = (directory / "log.jsonl").read_text()
        except OSError:
            text = ""
        return process.poll() is not None or '"members_differ"' in text or '"memory_changed"' in text

    def flip_a_member(self, process, directory, workers, place):
        """Flips a bit in the memory of a member, and waits until the run has noticed it. `place` counts the members,
        the leader first. Returns the member's id.

        On a crowded machine a member may be fenced at this moment. Then the bit has no effect, because its process gets
        the state of the others. So another member is taken. self.flipped counts the members that were taken."""
        self.flipped = 0
        for _ in range(TRIES):
            self.grows(directory, workers)
            self.assertIsNone(process.poll(), self.said(directory))
            members = sorted((member["id"], member["pid"]) for member in (sp.status(directory) or {}).get("members", [])
                             if member["phase"] == "computing")
            if len(members) != workers:
                continue
            member, pid = members[place]
            try:
                found = flip_a_bit(pid, self.weights)
            except OSError:  # the process has ended
                continue
            self.flipped += 1

            def is_gone():
                status = sp.status(directory)
                return status is not None and member not in [one["id"] for one in status["members"]]
            noticed = lambda: self.has_noticed(process, directory)
            self.assertTrue(sp.wait_for(lambda: noticed() or is_gone(), PATIENCE, LOOK_PAUSE), self.said(directory))
            if noticed():  # the run says so before it fences the member
                self.assertGreater(found, 0)
                return member
        self.fail(f"{TRIES} members were fenced before the run noticed the bit:\n" + self.said(directory))

    def flip_stopped(self, process, directory, weights):
        """Flips a bit while the process is suspended. The process must not be writing a checkpoint then, because the
        copy that it writes has the same bytes."""
        while process.poll() is None:
            pid = self.worker_of(process)
            os.kill(pid, signal.SIGSTOP)
            idle = (directory / "checkpoints/last").is_symlink() and not list(directory.glob(".writers/*/.saving-*"))
            if idle:
                self.assertGreater(flip_a_bit(pid, weights), 0)
            os.kill(pid, signal.SIGCONT)
            if idle:
                return
            time.sleep(0.002)
        self.fail("it ended, and wrote a checkpoint at every look")

    def test_one_of_three_is_named_and_all_go_back(self):
        for place in (0, 2):  # the leader, then another
            process, directory = self.start(f"three-{place}", "--workers", 3, pace=10)
            self.grows(directory, 3)
            self.reach(process, directory, 20)
            victim = self.flip_a_member(process, directory, 3, place)
            self.end(process, directory, 0)
            self.assert_same_story(directory)
            [told] = [event["text"] for event in self.events(directory) if event["event"] == "members_differ"]
            self.assertRegex(told, rf"has digest [0-9a-f]{{32}} on member {victim} \(.*\) and [0-9a-f]{{32}} on member ")
            self.assertRegex((directory / "coordinator.log").read_text(), "ends the group: .*all members begin again")

    def test_two_end_the_run_and_a_resume_goes_on(self):
        process, directory = self.start("two", "--workers", 2, pace=8)
        self.grows(directory, 2)
        self.reach(process, directory, 20)
        self.flip_a_member(process, directory, 2, 1)
        self.end(process, directory, 1)
        self.assertRegex(self.said(directory), r"[0-9a-f]{32} on member \d+ .*[0-9a-f]{32} on member \d+ .*\[GROUP_MEMBERS_DIVERGED\]")
        self.assertIn("try: ", self.said(directory))
        self.assertEqual(sp.report(directory)["status"], "failed")
        sp.run("resume", directory, "--workers", 2, "--ledger", timeout=PATIENCE, check=0)
        self.assert_same_story(directory)

    def test_the_only_worker_of_a_group_goes_back(self):
        process, directory = self.start("one", "--workers", 1, pace=5)
        self.reach(process, directory, SAVED_EVERY)
        self.flip_a_member(process, directory, 1, 0)
        self.end(process, directory, 0)
        self.assert_same_story(directory)
        changed = [event for event in self.events(directory) if event["event"] == "memory_changed"]
        self.assertIn(len(changed), range(1, self.flipped + 1), changed)

    def test_one_process_goes_back(self):
        sp.run("train", self.job, *SLOW, "--run-dir", self.path / "slow", "--ledger", check=0)
        weights = tensor_bytes(self.path / "slow/checkpoints/last/model.safetensors", FROZEN)
        process, directory = self.start("alone", job=SLOW)
        self.flip_stopped(process, directory, weights)
        self.end(process, directory, 0)
        self.assertEqual((directory / "ledger.jsonl").read_text(), (self.path / "slow/ledger.jsonl").read_text())
        self.assertEqual([event["event"] for event in self.events(directory)].count("memory_changed"), 1)

    def worker_of(self, process):
        """Returns the process that trains: this one, or a child of it. It has the most memory."""
        def memory(pid):
            try:
                return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])
            except (OSError, TypeError):  # it has ended
                return 0
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        return max([process.pid, *map(int, children)], key=memory)


if __name__ == "__main__":
    unittest.main()
