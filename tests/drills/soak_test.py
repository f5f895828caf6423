"""Disturbs one run for minutes under one supervisor: kills, stops and continues workers, and kills coordinators.

Afterwards every step's digest and every line of metrics must equal those of a single undisturbed worker, with exact
counts of samples and epochs. The supervisor must not have many more open files or much more memory than at its
beginning. The long tier takes at least ten minutes and makes at least a thousand kills.
"""
import json
import os
import pathlib
import random
import re
import signal
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import sinew_process as sp

SECONDS, KILLS = (600, 1000) if os.environ.get("SINEW_LONG") else (15, 10)  # the least duration and number of kills
JOINS = 50 if os.environ.get("SINEW_LONG") else 4  # interrupted transfers of the state
PERIOD = 0.3  # minimum seconds between two disturbances
WORKERS = 3
PATIENCE = 240
ENDLESS = "trainer.max_duration=100000000st"
BY_CLOCK = ("time", "throughput/", "time/")  # keys of a line of metrics that depend on a clock


def metrics(directory, last):
    """Returns step -> its metrics up to step `last`, without those that depend on a clock."""
    found = {}
    for text in (directory / "metrics.jsonl").read_text().splitlines():
        line = json.loads(text)
        if line["step"] <= last:
            found.setdefault(line["step"], {}).update({k: v for k, v in line.items() if not k.startswith(BY_CLOCK)})
    return found


def held_by(pid):
    """Returns the number of open files and the resident bytes of a process."""
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    return len(os.listdir(f"/proc/{pid}/fd")), pages * os.sysconf("SC_PAGE_SIZE")


class Soak(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        # Removes the schedule, which depends on the number of steps: this run ends only after enough disturbances.
        self.job = sp.write_job(self.path, 1)
        text = self.job.read_text().replace("scheduler: {name: cosine, warmup: 10st}\n", "").replace("interval: 5st", "interval: 50st")
        self.job.write_text(text)

    def start(self, name, *words):
        directory = self.path / name
        process = sp.launch(self, self.path / f"{name}.log", "train", self.job, ENDLESS, "trainer.shards=7", "--run-dir", directory,
                            "--ledger", *words)
        return process, directory

    def stop(self, process, name):
        """Sends one SIGINT. The run must save a checkpoint and exit with the code for "resumable"."""
        process.send_signal(signal.SIGINT)
        said = lambda: (self.path / f"{name}.log").read_text()[-4000:]
        self.assertEqual(process.wait(PATIENCE), 75, said())

    def disturb(self, process, directory, rng):
        """Kills and stops workers and kills coordinators until SECONDS and KILLS are reached. Waits for a new step
        before each disturbance."""
        kills, stopped, at_first, step = 0, [], None, 0
        begin = time.monotonic()
        while kills < KILLS or time.monotonic() - begin < SECONDS:
            said = (self.path / "soak.log").read_text()[-4000:]
            self.assertIsNone(process.poll(), said)
            self.assertLess(time.monotonic() - begin, SECONDS + 4 * KILLS + PATIENCE, f"{kills} kills\n{said}")
            for since, pid in [entry for entry in stopped if time.monotonic() - entry[0] > 2]:
                stopped.remove((since, pid))
                self.send(pid, signal.SIGCONT)
            time.sleep(PERIOD)
            members = sp.computing(directory)
            if len(members) < 2 or (now := sp.step_of(directory)) <= step:
                continue
            step, chance = now, rng.random()
            if chance < 0.05:
                kills += self.send(json.loads((directory / "coordinator.json").read_text())["pid"], signal.SIGKILL)
            elif chance < 0.1 and not stopped:
                stopped.append((time.monotonic(), rng.choice(members)))
                self.send(stopped[-1][1], signal.SIGSTOP)
            else:
                kills += self.send(rng.choice(members), signal.SIGKILL)
            if at_first is None and kills >= KILLS // 5:
                at_first = held_by(process.pid)
        for _, pid in stopped:
            self.send(pid, signal.SIGCONT)
        files, resident = held_by(process.pid)
        self.assertLessEqual(files, at_first[0] + 12)  # the supervisor has some files open for a worker that it starts
        self.assertLess(resident, at_first[1] + (32 << 20))
        return kills

    def send(self, pid, sig):
        try:
            os.kill(pid, sig)
            return 1
        except ProcessLookupError:
            return 0

    def compare_with_calm(self, directory):
        """Compares every step of the disturbed run, and its metrics, with those of one worker. Returns the number of
        steps."""
        last = sp.report(directory)["steps"]
        process, calm = self.start("calm", "workers.max=1")
        self.assertTrue(sp.wait_for(lambda: process.poll() is not None or sp.step_of(calm) >= last, SECONDS + PATIENCE))
        self.stop(process, "calm")
        expected = sp.digests(calm)
        for text in (directory / "ledger.jsonl").read_text().splitlines():  # includes both lines if a step has two
            line = json.loads(text)
            self.assertEqual(line["digest"], expected[line["step"]], f"step {line['step']}")
        self.assertEqual(sorted(sp.digests(directory)), list(range(min(expected), last + 1)))
        self.assertEqual(metrics(directory, last), metrics(calm, last))
        return last

    def test_a_run_survives_minutes_of_disturbance(self):
        process, directory = self.start("soak", "--workers", WORKERS)
        self.assertTrue(sp.wait_for(lambda: sp.step_of(directory) > 20, PATIENCE))
        begin = time.monotonic()
        kills = self.disturb(process, directory, random.Random(11))
        seconds = time.monotonic() - begin
        self.stop(process, "soak")
        steps = self.compare_with_calm(directory)
        print(f"{kills} kills in {seconds:.0f} s, {steps} steps the same to the last bit", file=sys.stderr)

    def test_workers_killed_while_one_joins(self):
        """Kills the joiner, or a member that may send it the state (50 MB), at a random instant of the transfer."""
        text = self.job.read_text()
        self.job.write_text(re.sub("model: .*", "model: {name: mlp, hidden: [3000, 1000]}", text))
        process, directory = self.start("soak", "--workers", WORKERS)
        all_there = sp.wait_for(lambda: process.poll() is not None or len(sp.computing(directory)) == WORKERS, PATIENCE)
        self.assertTrue(all_there and process.poll() is None, (self.path / "soak.log").read_text()[-4000:])
        rng, killed, gone = random.Random(13), {"joining": 0, "computing": 0}, set()

        def kill(pid):
            gone.add(pid)  # the status still lists the killed worker for a moment
            return self.send(pid, signal.SIGKILL)

        kill(rng.choice(sp.computing(directory)))
        end = time.monotonic() + PATIENCE + 20 * JOINS
        while sum(killed.values()) < JOINS:
            self.assertIsNone(process.poll(), (self.path / "soak.log").read_text()[-4000:])
            self.assertLess(time.monotonic(), end, f"{killed}\n{(self.path / 'soak.log').read_text()[-4000:]}")
            members = (sp.status(directory) or {}).get("members", [])
            phases = {member["pid"]: member["phase"] for member in members if member["pid"] not in gone}
            able = [pid for pid, phase in phases.items() if phase == "computing"]
            joiners = [pid for pid, phase in phases.items() if phase == "joining"]
            if len(able) < 2:
                continue  # this is the last member with the state: do not kill it
            if not joiners and len(able) == WORKERS:
                kill(rng.choice(able))  # then a new worker joins
            if joiners:
                time.sleep(rng.uniform(0, 0.2))
                which = "joining" if sum(killed.values()) % 2 else "computing"
                killed[which] += kill(rng.choice(joiners if which == "joining" else able))
        self.stop(process, "soak")
        steps = self.compare_with_calm(directory)
        print(f"{killed} killed during transfers, {steps} steps the same to the last bit", file=sys.stderr)


if __name__ == "__main__":
    unittest.main()
