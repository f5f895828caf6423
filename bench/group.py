"""Runs Sinew with several workers, and watches the run's ledger and members from outside."""
import collections
import json
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile
import threading
import time

import contestants
import jobs


class Watch:
    """Polls a file every millisecond and records when it grew. A ledger grows with every committed step."""

    def __init__(self, path):
        self.path, self.grown, self.over = path, collections.deque(maxlen=200_000), False
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.thread.start()

    def look(self):
        size = 0
        while not self.over:
            try:
                now = os.stat(self.path).st_size
            except FileNotFoundError:
                now = 0
            if now > size:
                self.grown.append(time.monotonic())
            size = now  # it is smaller if a new leader cut off a torn line
            time.sleep(0.001)

    def close(self):
        self.over = True
        self.thread.join(10)

    def after(self, moment, count, patience):
        """Returns the first `count` times of growth after `moment`; fewer if `patience` seconds pass before that."""
        end = time.monotonic() + patience
        while True:
            found = [at for at in list(self.grown) if at > moment]
            if len(found) >= count or time.monotonic() > end:
                return found[:count]
            time.sleep(0.005)

    def usual_gap(self, last=200):
        times = list(self.grown)[-last:]
        return statistics.median(b - a for a, b in zip(times, times[1:]))


def seconds_until_computing(watch, killed, usual, patience=60):
    """Returns the seconds from a kill until the group computes again. None: it does not within `patience` seconds.

    The loss of a worker delays the running step, or the next one if the worker had already delivered its part of the
    running step. So one of the next three steps is late by more than half a step. The group computes again when that
    step is committed. The time of a normal step is subtracted.
    """
    steps = watch.after(killed, 3, patience)
    if len(steps) < 3:
        return None
    before = max((at for at in list(watch.grown) if at <= killed), default=killed)
    late = next((at for last, at in zip([before, *steps], steps) if at - last > 1.5 * usual), steps[0])
    return max(0.0, late - killed - usual)


class Group:
    """A run of `sinew train --workers N` on a small job, in a directory of its own. Use it as a context."""

    def __init__(self, folder, name, workers, *overrides, pace=1):
        """pace: the factor by which every shard is slowed down."""
        self.scratch = tempfile.TemporaryDirectory()
        self.run = pathlib.Path(self.scratch.name) / "run"
        words = [contestants.SINEW, "train", jobs.write_job(folder, name), "--run-dir", self.run, "--ledger", "--workers", workers,
                 "trainer.lanes=1", *overrides]
        self.log = open(pathlib.Path(self.scratch.name) / "log", "w+", encoding="utf-8")
        self.process = self.start(words, pace)
        self.joined = []
        self.watch = Watch(self.run / "ledger.jsonl")

    def start(self, words, pace):
        return subprocess.Popen(list(map(str, words)), stdout=self.log, stderr=subprocess.STDOUT,
                                env={**os.environ, "SINEW_PACE": str(pace)})

    def join(self, pace):
        """Starts one more worker by `sinew join`."""
        self.joined.append(self.start([contestants.SINEW, "join", self.run], pace))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pids = [*self.members(), self.coordinator()]
        self.watch.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(30)
                for pid in filter(None, pids):  # the supervisor, which would end them, is gone
                    kill(pid)
        for process in self.joined:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(30)
        self.log.close()
        self.scratch.cleanup()

    def status(self):
        done = subprocess.run([contestants.SINEW, "ps", self.run, "--json"], capture_output=True, text=True, timeout=30)
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def members(self, phase=None):
        """Returns the PIDs of all members, or of the members in one phase."""
        return [m["pid"] for m in self.status().get("members", []) if phase in (None, m["phase"])]

    def coordinator(self):
        try:
            return json.loads((self.run / "coordinator.json").read_text())["pid"]
        except (OSError, ValueError, KeyError):
            return None

    def scale(self, workers):
        subprocess.run([contestants.SINEW, "scale", self.run, str(workers)], check=True, capture_output=True, timeout=60)

    def steps_a_second(self, seconds):
        """Measures the steps a second over `seconds` from now on."""
        begin, lines = time.monotonic(), self.ledger_lines()
        time.sleep(seconds)
        return (self.ledger_lines() - lines) / (time.monotonic() - begin)

    def ledger_lines(self):
        return (self.run / "ledger.jsonl").read_bytes().count(b"\n")

    def wait_for(self, condition, what, seconds=120):
        end = time.monotonic() + seconds
        while not condition():
            if self.process.poll() is not None or time.monotonic() > end:
                self.log.flush()
                said = pathlib.Path(self.log.name).read_text()[-2000:]
                raise RuntimeError(f"waited for {what}; the run ended with {self.process.poll()} or took too long:\n{said}")
            time.sleep(0.01)

    def wait_until_computing(self, workers):
        """Waits until exactly `workers` members compute and have done so for some steps."""
        self.wait_for(lambda: len(self.members("computing")) == workers, f"{workers} workers that compute")
        seen = len(self.watch.grown)
        self.wait_for(lambda: len(self.watch.grown) > seen + 20, "steps")


def kill(pid):
    """Sends SIGKILL. Returns the monotonic time of the kill, or None if there was no such process."""
    try:
        moment = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        return moment
    except ProcessLookupError:
        return None


def alive(pid):
    try:
        return "Z" not in pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
