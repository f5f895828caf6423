"""Kills commands and the processes above them at random instants. Afterwards, no process may be left, and each attempt
has exactly one written end.

`SINEW_LONG=1` makes 1,000 kills; otherwise the test makes as many as the core tier has time for.
"""
import json
import os
import random
import signal
import subprocess
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from runner import PATIENCE, SINEW, Commands, children_of, lines_of, processes_with, wait_for, reapers_of

KILLS = 1000 if os.environ.get("SINEW_LONG") else 60
SIDE_BY_SIDE = 3
SEED = int(os.environ.get("SINEW_DRILL_SEED", "1"))

# Every process has the tag in its arguments, even one that leaves its session, its parents or its environment.
VICTIM = r"""
tag=$1
hold() { exec -a "$tag-$1" sleep 1000; }
(hold child) &
setsid bash -c 'trap "" TERM HUP INT; exec -a "$0" sleep 1000' "$tag-session" &
(bash -c '(exec -a "$0" sleep 1000 </dev/null >/dev/null 2>&1 &)' "$tag-orphan")
[ "$2" = cleared ] && env -i setsid /bin/bash -c 'exec -a "$0" sleep 1000' "$tag-cleared" </dev/null >/dev/null 2>&1 &
i=0
while :; do i=$((i+1)); echo "{\"step\": $i, \"loss\": 0.5}"; sleep 0.02; [ $i = 40 ] && break; done
exit $(($SINEW_ATTEMPT % 3))
"""

# Name of a kill -> the processes that it kills. After "all three", nothing ends the other processes until the next
# `sinew stop`.
TARGETS = {
    "sinew": ("sinew",),
    "inner reaper": ("inner",),
    "outer reaper": ("outer",),
    "sinew and inner reaper": ("sinew", "inner"),
    "sinew and outer reaper": ("sinew", "outer"),
    "both reapers": ("inner", "outer"),
    "all three": ("sinew", "inner", "outer"),
    "a rank": ("rank",),
    "a rank and its inner reaper": ("rank", "inner"),
    "a rank and sinew": ("rank", "sinew"),
    "asked": (),
}


class Kills(Commands):
    def story(self, number):
        """Makes one run and one kill. Returns a message for each thing that is wrong afterwards."""
        dice = random.Random(f"{SEED}-{number}")
        name = list(TARGETS)[number % len(TARGETS)]
        tag = f"drill-{os.getpid()}-{number}-{dice.randrange(10**9)}"
        directory = os.path.join(self.folder, f"run-{number}")
        cleared = "cleared" if name != "all three" else "kept"
        process = subprocess.Popen(
            [SINEW, "run", "retries.crash=2", "retries.exit=1", "retries.backoff=0.05s", "grace=0.3s", "resources.nproc=2",
             "--run-dir", directory, "--", "bash", self.victim, tag, cleared],
            cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(dice.random() ** 2 * 0.8)
        self.kill(process, name, dice)
        killed = "sinew" in TARGETS[name]
        wrong = []
        try:
            code = process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
            wrong.append(f"it never ended; {processes_with(tag)} are there")
        if name == "all three":  # the next `sinew stop` ends the processes that are left
            subprocess.run([SINEW, "stop", directory], cwd=self.folder, capture_output=True, timeout=PATIENCE)
        try:
            wait_for(lambda: not processes_with(tag), "the end of all", 20)
        except AssertionError:
            left = processes_with(tag)
            wrong.append(f"{len(left)} left: " + ", ".join(self.command_line(pid) for pid in left))
            for pid in left:
                os.kill(pid, signal.SIGKILL)
        wrong += self.look(directory, killed and code == -signal.SIGKILL, code)
        return [f"story {number} ({name}): {what}" for what in wrong]

    @staticmethod
    def command_line(pid):
        try:
            with open(f"/proc/{pid}/cmdline") as file:
                return file.read().replace("\0", " ")
        except OSError:
            return "gone"

    def kill(self, process, name, dice):
        if name == "asked":
            process.send_signal(dice.choice([signal.SIGTERM, signal.SIGINT]))
            return
        outer, inner = reapers_of(process.pid)
        ranks = children_of(inner) if inner else []
        pids = {"sinew": process.pid, "outer": outer, "inner": inner, "rank": dice.choice(ranks) if ranks else None}
        chosen = [pids[target] for target in TARGETS[name]]
        dice.shuffle(chosen)
        for pid in chosen:
            try:
                if pid:
                    os.kill(pid, signal.SIGKILL)
                    self.struck.append(name)
            except ProcessLookupError:
                pass

    def look(self, directory, killed, code):
        """Checks the run's files, and its status before and after `sinew stop`. Returns a message for each problem."""
        wrong = []
        report = os.path.join(directory, "report.json")
        if not os.path.exists(os.path.join(directory, "job.yaml")):
            return wrong if killed or code < 0 else ["no run directory"]
        if not killed and code >= 0 and not os.path.exists(report):
            wrong.append(f"no report after exit code {code}")
        if os.path.exists(os.path.join(directory, "resolved.yaml")):
            wait_for(lambda: self.status_of(directory) != "running", "the lock to be free", 20)
            status = self.status_of(directory)
            if (status == "interrupted") == os.path.exists(report):
                wrong.append(f"it is {status}, and its report is {'' if os.path.exists(report) else 'not '}there")
            subprocess.run([SINEW, "stop", directory], cwd=self.folder, capture_output=True, timeout=PATIENCE)
            if self.status_of(directory) != status:
                wrong.append(f"it was {status} and became {self.status_of(directory)}")
        begun, ended = [], []
        for line in lines_of(os.path.join(directory, "attempts.jsonl")):
            (begun if line["event"] == "begin" else ended).append(line["attempt"])
        if sorted(begun) != list(range(1, len(begun) + 1)) or sorted(ended) != sorted(begun):
            wrong.append(f"attempts {begun} have ends {ended}")
        ends = [line for line in lines_of(os.path.join(directory, "log.jsonl")) if line["event"] == "run-end"]
        if len(ends) > 1:
            wrong.append(f"{len(ends)} ends in the log")
        return wrong

    def status_of(self, directory):
        shown = subprocess.run([SINEW, "runs", "show", directory, "--format", "json"], cwd=self.folder, capture_output=True,
                               timeout=PATIENCE)
        return json.loads(shown.stdout)["status"]

    def test_nothing_is_left_and_every_end_is_written_once(self):
        self.victim, self.struck = self.script(VICTIM, "victim.sh"), []
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            wrong = [what for found in pool.map(self.story, range(KILLS)) for what in found]
        self.assertEqual("\n".join(wrong), "")
        self.assertEqual({name for name in TARGETS if TARGETS[name]} - set(self.struck), set(), "were never met")


if __name__ == "__main__":
    unittest.main()
