"""Runs the commands of a page of docs/ in a folder of its own, as a reader would.

A block ```console has commands (lines that begin with `$ `), each followed by its output. A block after a paragraph with
the words "Save these lines as `NAME`" is a file. Other blocks are not run.

In the output of a page, `...` stands for anything, also for whole lines. Numbers, digests and the names of runs may differ:
only the words around them are compared. A command must succeed, unless its output on the page has a failed check or an
error code; then it must fail.
"""
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"[Ss]ave these lines as `([\w.-]+)`")
FAILS = re.compile(r"^  FAIL |\[[A-Z]+_[A-Z_]+\]$", re.MULTILINE)
MARK = "=== end of command"
PATIENCE = 1500


class Command:
    def __init__(self, text):
        self.text, self.shown, self.output, self.code = text, [], "", None


def steps_of(text):
    """Returns the steps of a page in their order: (name, content) for a file, a Command for a command."""
    steps = []
    for block in BLOCK.finditer(text):
        language, content = block.groups()
        named = FILE.search(text[:block.start()].rstrip().rsplit("\n\n", 1)[-1])
        if language == "console":
            for line in content.splitlines():
                if line.startswith("$ "):
                    steps.append(Command(line[2:]))
                else:
                    steps[-1].shown.append(line)
        elif named:
            steps.append((named.group(1), content))
    return steps


def plain(line):
    """Returns the line without all that differs from machine to machine."""
    line = re.sub(r"\d{8}T\d{6}Z-[0-9a-f]{4}|<utc>-<id>", "RUN", line)
    line = re.sub(r"\b[0-9a-f]{12,}\b", "DIGEST", line)
    line = re.sub(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?", "0", line.replace("(best)", ""))
    return re.sub(r" (?=[\])])", "", " ".join(line.split()))


def differences(command):
    """Returns what the page says about the command and what did not come true."""
    found = []
    fails = FAILS.search("\n".join(command.shown)) is not None
    if (command.code != 0) != fails:
        found.append(f"exit code {command.code}")
    lines = [plain(line) for line in command.output.splitlines()]
    for shown in command.shown:
        pattern = ".*".join(re.escape(plain(part)) for part in shown.split("..."))
        if not any(re.fullmatch(pattern, line) for line in lines):
            found.append(f"the page says: {shown}")
    return [f"$ {command.text}\n{what}\n{command.output[-4000:]}" for what in found]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run(steps, folder, sinew):
    """Runs the steps in the folder, all commands in one shell, and sets output and code of each command."""
    port = str(free_port())
    script = []
    for step in steps:
        if isinstance(step, Command):
            text = step.text.replace("sinew server ", f"sinew server --port {port} ").replace("4711", port)
            script += [text, f'printf "\\n{MARK} %s\\n" "$?"']
        else:
            name, content = step
            (folder / name).write_text(content.replace("4711", port), encoding="utf-8")
    environment = {**os.environ, "PATH": os.pathsep.join([os.path.dirname(sinew), os.path.dirname(sys.executable), os.environ["PATH"]])}
    process = subprocess.Popen(["bash", "-c", "\n".join(script)], cwd=folder, env=environment, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=PATIENCE)
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)  # a server that a page did not stop
        except ProcessLookupError:
            pass
    ends = re.split(rf"\n?^{MARK} (\d+)$\n?", output, flags=re.MULTILINE)
    commands = [step for step in steps if isinstance(step, Command)]
    for command, shown, code in zip(commands, ends[0::2], ends[1::2]):
        command.output, command.code = shown, int(code)
    return commands
