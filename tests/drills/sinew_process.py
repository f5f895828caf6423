"""Starts, watches and kills real `sinew train` processes."""
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SINEW = pathlib.Path(os.environ.get("SINEW_BIN", ROOT / "build/release/bin")) / "sinew"

# A process that a shell starts in the background ignores SIGINT, and its children inherit this. Without the next line,
# a SIGINT that a test sends would have no effect.
signal.signal(signal.SIGINT, signal.default_int_handler)


def task_version():
    """The version of the documents that sinew passes to sinew-worker."""
    return int(re.search(r"kVersion = (\d+);", (ROOT / "src/task/task.h").read_text())[1])


def write_idx(folder, name, count, seed):
    """Writes a small image data set in IDX format, with labels that a model can learn. The same seed always gives the
    same bytes."""
    folder = pathlib.Path(folder)
    state = seed * 2654435761 % 2**32 + 1
    images, labels = bytearray(), bytearray()
    for _ in range(count):
        state = (1664525 * state + 1013904223) % 2**32
        label = (state >> 16) % 5
        labels.append(label)
        for place in range(64):
            state = (1664525 * state + 1013904223) % 2**32
            bright = 120 if place % 5 == label else 0
            images.append(min(255, bright + (state >> 24) % 90))
    (folder / f"{name}-images").write_bytes(struct.pack(">IIII", 0x803, count, 8, 8) + images)
    (folder / f"{name}-labels").write_bytes(struct.pack(">II", 0x801, count) + labels)


def write_job(folder, steps, extra=""):
    """Writes a data set as write_idx does, and a job that trains on it. Its steps are short, and it has every kind of
    state."""
    folder = pathlib.Path(folder)
    write_idx(folder, "train", 333, 1)
    (folder / "job.yaml").write_text(f"""
name: drill
model: {{name: cnn, channels: [4, 8], norm: batch, dropout: 0.2}}
data:
  format: idx
  train: {{images: {folder}/train-images, labels: {folder}/train-labels}}
  split: {{val: 0.1}}
  augment: {{flip: 0.5, noise: 0.02}}
trainer: {{max_duration: {steps}st, batch_size: 32, eval_interval: 20st, ema_decay: 0.99, grad_clip_norm: 1.0, precision: fp32}}
optimizer: {{name: adamw, lr: 3e-3, weight_decay: 0.01}}
scheduler: {{name: cosine, warmup: 10st}}
checkpoint: {{interval: 5st, keep: 2}}
logging: {{interval: 10st}}
{extra}""")
    return folder / "job.yaml"


def command(*words):
    return [str(SINEW), *map(str, words)]


def run(*words, timeout=300, env=None, check=None, within=None):
    """Runs sinew to its end, with a timeout. `check` is the expected exit code; `within` is a MemoryGroup."""
    done = subprocess.run(command(*words), capture_output=True, text=True, timeout=timeout, env={**os.environ, **(env or {})},
                          preexec_fn=within.enter if within else None)
    if check is not None and done.returncode != check:
        raise AssertionError(f"sinew {' '.join(map(str, words))} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done


def start(*words, ignored=()):
    """Starts sinew in the background. It ignores the signals `ignored`, as nohup does with SIGHUP."""
    def ignore():
        for sig in ignored:
            signal.signal(sig, signal.SIG_IGN)
    return subprocess.Popen(command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=ignore)


def kill(process, sig=signal.SIGKILL):
    process.send_signal(sig)
    process.wait(60)
    process.stderr.close()


def digests(run_directory):
    """Returns step -> digest of a ledger. Skips an incomplete last line."""
    found = {}
    for line in (pathlib.Path(run_directory) / "ledger.jsonl").read_text().splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        found[record["step"]] = record["digest"]
    return found


def status(run_directory):
    """Returns the output of `sinew ps` about a run, or None if it fails."""
    done = run("ps", run_directory, "--json", timeout=60)
    return json.loads(done.stdout) if done.returncode == 0 else None


def step_of(run_directory):
    """Returns the newest step in the ledger, or 0 if there is no ledger yet."""
    try:
        with open(pathlib.Path(run_directory) / "ledger.jsonl", "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
            lines = file.read().split(b"\n")[:-1]  # text after the last newline is an incomplete line
    except FileNotFoundError:
        return 0
    return json.loads(lines[-1])["step"] if lines else 0


def computing(run_directory):
    """Returns the process ids of the members that compute."""
    return [member["pid"] for member in (status(run_directory) or {}).get("members", []) if member["phase"] == "computing"]


def report(run_directory):
    return json.loads((pathlib.Path(run_directory) / "report.json").read_text())


def wait_for(condition, seconds=60, pause=0.005):
    """`pause`: seconds between two looks. Choose a longer one if a look starts a process, as computing() does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(pause)
    return False


def launch(test, log, *words, group=False, **variables):
    """Starts `sinew WORDS`, which appends its output to the file `log`. At the end of the test it is killed if it still
    lives; with `group`, together with the processes of its group."""
    with open(log, "ab") as output:
        process = subprocess.Popen(command(*words), stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **variables},
                                   start_new_session=group)
    kill = (lambda: os.killpg(process.pid, signal.SIGKILL)) if group else process.kill
    test.addCleanup(lambda: (process.poll() is None and kill(), process.wait(60)))
    return process


class Drill(unittest.TestCase):
    """Runs a job in a folder of its own, `path`, and compares with the run `calm`, which is never disturbed."""
    steps = 100
    calm_words = ()  # words of the calm run's command, besides the job

    @classmethod
    def make_job(cls):
        return write_job(cls.path, cls.steps)

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.path = pathlib.Path(folder.name)
        cls.job = cls.make_job()
        run("train", cls.job, *cls.calm_words, "--run-dir", cls.path / "calm", "--ledger", check=0)
