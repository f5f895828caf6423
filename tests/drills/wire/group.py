"""Starts a group of real workers and a coordinator. Every connection goes through a Network (network.py) that the drill
controls."""
import ctypes
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import sinew_process as sp
from network import Network

PATIENCE = 240  # seconds; a timeout for a crowded machine
AGAIN, STOPPED = 76, 75
SHARDS = "trainer.shards=7"
ENDLESS = 1_000_000
WORKER = sp.SINEW.with_name("sinew-worker")


LIBC = ctypes.CDLL(None)


def die_with_parent():
    LIBC.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: no process outlives the drill, however it ends


class Watch(threading.Thread):
    """Stores the times at which the ledger grew."""

    def __init__(self, directory):
        super().__init__(daemon=True)
        self.path = pathlib.Path(directory) / "ledger.jsonl"
        self.times, self.step, self.over = [], 0, threading.Event()
        self.start()

    def run(self):
        while not self.over.wait(0.01):
            step = self.newest()
            if step > self.step:
                self.step = step
                self.times.append(time.monotonic())

    def newest(self):
        try:
            with open(self.path, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - 400))
                text = file.read()
        except OSError:
            return 0
        steps = re.findall(rb'"step":\s*(\d+)[^\n]*\n', text)
        return int(steps[-1]) if steps else 0

    def longest_gap(self, since):
        """Returns the longest time without a step from `since` until now."""
        times = [since] + [at for at in list(self.times) if at >= since] + [time.monotonic()]
        return max(later - earlier for earlier, later in zip(times, times[1:]))


class Member:
    def __init__(self, number, gate, file, last_codes):
        self.number, self.gate, self.file, self.last_codes = number, gate, file, last_codes
        self.process, self.log, self.starts, self.over = None, None, 0, False


class Group:
    """Runs the processes of a group. `tend`, which `until` calls, starts dead members again."""

    def __init__(self, case, job, directory, members=3, pace=1):
        self.case, self.job, self.directory, self.pace = case, job, pathlib.Path(directory), pace
        self.ends = []  # (member number, exit code, last output) of every worker process that ended
        self.tending = True
        (self.directory / "checkpoints").mkdir(parents=True)
        self.network = Network()
        case.addCleanup(self.network.close)
        self.coordinator = None
        case.addCleanup(self.kill_all)
        self.members = []
        self.start_coordinator(members)
        self.watch = Watch(self.directory)
        case.addCleanup(self.watch.over.set)
        for number in range(members):
            self.add_member(number)

    # ---- processes

    def start_coordinator(self, members):
        with open(self.directory / "coordinator.err", "ab") as log:
            self.coordinator = subprocess.Popen(
                sp.command("coordinator", self.directory, "--workers", members, "--job", "drill"),
                stdout=log, stderr=log, preexec_fn=die_with_parent)
        def listens():
            try:
                self.line = json.loads((self.directory / "coordinator.json").read_text())
            except (OSError, ValueError):
                return False
            return self.line["pid"] == self.coordinator.pid
        self.case.assertTrue(sp.wait_for(listens, PATIENCE), "the coordinator does not listen")
        host, port = self.line["url"].removeprefix("http://").split(":")
        self.where = (host, int(port))

    def add_member(self, number, secret=None, last_codes=(0, STOPPED)):
        """`last_codes` are the exit codes after which no other process replaces the member's."""
        host = f"127.0.{number + 1}.1"
        gate = self.network.gate(("127.0.0.1", 0), self.where, False, host)
        file = self.directory / f"line-{number}.json"
        file.write_text(json.dumps({**self.line, "url": f"http://127.0.0.1:{gate.address[1]}",
                                    "secret": secret or self.line["secret"]}))
        member = Member(number, gate, file, last_codes)
        member.log = self.directory / f"worker-{number}.log"
        self.members.append(member)
        self.start(member, host)

    def start(self, member, host=None):
        member.starts += 1
        environment = {**os.environ, "MKL_CBWR": "AUTO", "SINEW_PACE": str(self.pace)}
        task = self.directory / f"task-{member.number}.json"
        task.write_text(json.dumps({
            "version": sp.task_version(), "task": "train", "job": str(self.job), "job_text": "", "overrides": [SHARDS],
            "run_directory": str(self.directory), "resume": True, "ledger": True, "json_log": False, "decide": False,
            "activity_board": "", "group": {
                "coordinator_file": str(member.file), "link_listen": "127.0.0.1",
                "link_advertise": host or member.gate.host, "hang_seconds": 60, "local_workers": 3,
                "outlives_parent": False}}))
        with open(member.log, "ab") as log:
            member.process = subprocess.Popen(
                [str(WORKER), str(task), str(self.directory)],
                stdout=log, stderr=log, env=environment, preexec_fn=die_with_parent)

    def tend(self):
        for member in self.members:
            code = member.process.poll()
            if code is None or member.over or not self.tending:
                continue
            self.ends.append((member.number, code, member.log.read_text()[-300:]))
            member.over = code in member.last_codes
            if member.over:
                continue
            self.case.assertLess(member.starts, 60, f"worker {member.number} dies again and again:\n{self.said()}")
            self.start(member)

    def kill(self, number):
        """Kills a member's process and waits until it is dead. `tend` starts another process in its place."""
        self.members[number].process.kill()
        self.members[number].process.wait(60)

    def kill_all(self):
        for process in [member.process for member in self.members] + [self.coordinator]:
            if process is not None and process.poll() is None:
                process.kill()
            if process is not None:
                process.wait(60)

    # ---- observing the group

    def until(self, condition, what, seconds=PATIENCE):
        end = time.monotonic() + seconds
        while not condition():
            self.tend()
            if time.monotonic() > end:
                self.case.fail(f"{what}: not within {seconds} s\n{self.said()}")
            time.sleep(0.02)

    def call(self, method, path, body=None, token=None):
        """Returns (status, JSON) of the coordinator's response. Connects to the coordinator directly, not through a
        gate."""
        request = urllib.request.Request(self.line["url"] + path, method=method, data=body and json.dumps(body).encode(),
                                         headers={"Authorization": f"Bearer {token or self.line['secret']}"})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"{}")

    def status(self):
        try:
            return self.call("GET", "/v2/status")[1]
        except (OSError, ValueError):
            return {}

    def computing(self):
        """Returns a dict: member number -> id, of the members that compute in the newest view."""
        status = self.status()
        newest = status.get("view", {}).get("generation")
        number = {member.process.pid: member.number for member in self.members if member.process.poll() is None}
        return {number[one["pid"]]: one["id"] for one in status.get("members", [])
                if one["phase"] == "computing" and one["view"] == newest and one["pid"] in number}

    def until_complete(self):
        """Waits until all members compute and the group makes steps. Returns member number -> id."""
        ids = {}
        def complete():
            nonlocal ids
            ids = self.computing()
            return len(ids) == len(self.members)
        self.until(complete, "everybody computes")
        self.until_steps(3)
        return ids

    def until_steps(self, count):
        goal = self.watch.step + count
        self.until(lambda: self.watch.step >= goal, f"step {goal}")

    def log(self, since=0):
        return (self.directory / "coordinator.log").read_text()[since:]

    def said(self):
        tails = [f"--- worker {m.number} (start {m.starts}, exit {m.process.poll()}):\n{m.log.read_text()[-600:]}"
                 for m in self.members]
        return f"step {self.watch.step}\n{self.log()[-3000:]}\n" + "\n".join(tails)

    # ---- the end

    def stop(self):
        """Stops the run as a user does. All members must end with the exit code of a stopped run."""
        self.network.heal()
        self.until_steps(1)
        sp.run("control", self.directory, "stop", check=0, timeout=60)
        self.end(STOPPED)

    def end(self, code, everybody=True):
        """Waits until the run and all members end with this code. With everybody=False, checks only the run, because a
        member that was about to join need not end."""
        self.until(lambda: self.coordinator.poll() is not None, "the coordinator ends")
        self.tending = False
        self.case.assertEqual(self.coordinator.returncode, code, self.said())
        if everybody:
            self.until(lambda: all(member.process.poll() is not None for member in self.members), "everybody ends")
            self.case.assertEqual([member.process.returncode for member in self.members], [code] * len(self.members),
                                  self.said())

    def lives_that_failed(self):
        """Returns the ends of those worker processes that were not removed, not killed by the drill and not asked to
        end."""
        return [end for end in self.ends if end[1] not in (0, AGAIN, STOPPED, -signal.SIGKILL)]


class Calm:
    """The same job on one undisturbed worker. It trains only as far as the tests need."""

    def __init__(self, job, directory):
        self.job, self.directory = job, pathlib.Path(directory)

    def digests(self, step):
        known = sp.digests(self.directory) if (self.directory / "ledger.jsonl").exists() else {}
        if max(known, default=0) >= step:
            return known
        words = sp.command("train", self.job, SHARDS, "--run-dir", self.directory, "--ledger", "--resume")
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent)
        try:
            reached = lambda: process.poll() is not None or max(self.so_far(), default=0) >= step
            if not sp.wait_for(reached, PATIENCE):
                raise AssertionError(f"the undisturbed run did not reach step {step}")
            process.send_signal(signal.SIGINT)
            process.wait(60)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait(60)
        return sp.digests(self.directory)

    def so_far(self):
        try:
            return sp.digests(self.directory)
        except OSError:
            return {}


def assert_same_story(case, directory, calm):
    """Checks that every line of the ledger equals that of the undisturbed run, even if a step has two lines, and that
    no step is missing."""
    lines = [json.loads(line) for line in (pathlib.Path(directory) / "ledger.jsonl").read_text().splitlines()]
    last = max(line["step"] for line in lines)
    expected = calm.digests(last)
    for line in lines:
        case.assertEqual(line["digest"], expected[line["step"]], f"step {line['step']}")
    case.assertEqual(sorted({line["step"] for line in lines}), list(range(1, last + 1)))
