"""Runs commands with the real program and reads what they leave behind. SINEW names the program."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

SINEW = os.path.abspath(os.environ.get("SINEW", "build/plain/bin/sinew"))
PATIENCE = 60  # a timeout in seconds; a test that passes does not wait for it


def wait_for(condition, what, patience=PATIENCE):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError(f"waited in vain for {what}")


def lines_of(path):
    """Returns the JSON objects of a file. Skips an incomplete last line."""
    path = pathlib.Path(path)
    if not path.exists():
        return []
    found = []
    for line in path.read_text(errors="replace").split("\n"):
        try:
            found.append(json.loads(line))
        except ValueError:
            pass
    return found


def processes_with(tag):
    """Returns the pids of all processes that have the tag in their arguments or their environment."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            facts = b""
            for name in ("cmdline", "environ"):
                with open(f"/proc/{entry}/{name}", "rb") as file:
                    facts += file.read()
            with open(f"/proc/{entry}/stat", "rb") as file:
                state = file.read().rsplit(b") ", 1)[1][:1]
        except OSError:
            continue
        if tag.encode() in facts and state != b"Z":
            found.append(int(entry))
    return found


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def reapers_of(pid):
    """Returns the pids of the outer and the inner reaper of a `sinew` process that runs a command. A pid is None while
    its process does not exist."""
    for outer in children_of(pid):
        try:
            with open(f"/proc/{outer}/comm") as file:
                if file.read().strip() != "sinew-outer":
                    continue
        except OSError:
            continue
        inner = children_of(outer)
        return outer, inner[0] if inner else None
    return None, None


class Commands(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sinew-commands-")
        self.run_directory = os.path.join(self.folder, "run")
        self.started = []

    def tearDown(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdout, process.stderr):
                if stream:
                    stream.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, *words, env=None, **options):
        process = subprocess.Popen([SINEW, *words], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                                   env={**os.environ, **(env or {})}, **options)
        self.started.append(process)
        return process

    def sinew(self, *words, env=None):
        return subprocess.run([SINEW, *words], cwd=self.folder, capture_output=True, text=True, errors="replace", timeout=PATIENCE * 2,
                              env={**os.environ, **(env or {})})

    def script(self, text, name="script.sh"):
        path = pathlib.Path(self.folder) / name
        path.write_text("#!/bin/bash\n" + text)
        path.chmod(0o755)
        return str(path)

    def run_script(self, text, *overrides, env=None):
        return self.sinew("run", *overrides, "--run-dir", self.run_directory, "--", self.script(text), env=env)

    def start_script(self, text, *overrides):
        return self.start("run", *overrides, "--run-dir", self.run_directory, "--", self.script(text))

    def report(self):
        return json.loads((pathlib.Path(self.run_directory) / "report.json").read_text())

    def file(self, name):
        return pathlib.Path(self.run_directory) / name

    def metrics(self):
        return lines_of(self.file("metrics.jsonl"))

    def endings(self):
        """Returns attempt -> its endings in attempts.jsonl. Each attempt should have exactly one."""
        found = {}
        for line in lines_of(self.file("attempts.jsonl")):
            endings = found.setdefault(line["attempt"], [])
            if line["event"] == "end":
                endings.append(line["ending"])
        return found

    def status(self):
        shown = json.loads(self.sinew("runs", "show", self.run_directory, "--format", "json").stdout)
        return shown["status"]

    def wait_for_text(self, name, text):
        return wait_for(lambda: self.file(name).exists() and text in self.file(name).read_text(errors="replace"),
                        f"{text!r} in {name}")

    def end(self, process, with_signal=signal.SIGTERM):
        process.send_signal(with_signal)
        out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out, err
