"""Runs contestants (Sinew or a peer). Rates are samples a second, after a warm-up of 30 % of the time."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import jobs

ROOT = pathlib.Path(__file__).resolve().parents[1]
BIN = pathlib.Path(os.environ.get("SINEW_BIN", ROOT / "build/release/bin"))
SINEW = BIN / "sinew"
PYTHON = os.environ.get("SINEW_PYTHON", sys.executable)
LANES = 2
PATIENCE = 180  # the time limit of a contestant is its seconds plus these, for starting and stopping


def rate_of(metrics, seconds):
    """Returns the samples a second in the last 70 % of the `seconds` of a run, from its metrics.jsonl."""
    records = [json.loads(line) for line in pathlib.Path(metrics).read_text().splitlines()]
    records = [record for record in records if "train/loss" in record]
    last = records[-1]
    first = next(r for r in records if r["time"] > last["time"] - 0.7 * seconds)
    if last["time"] - first["time"] < 0.3 * seconds:
        raise RuntimeError(f"{metrics}: lines of {last['time'] - first['time']:.1f} s only; run for longer")
    return (last["samples"] - first["samples"]) / (last["time"] - first["time"])


def train(*words, seconds, expect=3):
    """Runs `sinew train` to its end. expect: the required exit code; 3 means that the time limit ended the run."""
    done = subprocess.run([SINEW, "train", *map(str, words)], capture_output=True, text=True, timeout=seconds + PATIENCE)
    if done.returncode != expect:
        raise RuntimeError(f"sinew train ended with {done.returncode}, not {expect}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def sinew_rate(folder, name, seconds, precision="fp32", lanes=LANES, workers=None):
    """Returns Sinew's rate on a job. workers: the size of the group; None: a single process without a group."""
    words = [jobs.write_job(folder, name, precision), f"budget.time={seconds}s", f"trainer.lanes={lanes}"]
    words += ["--workers", workers] if workers else []
    with tempfile.TemporaryDirectory() as scratch:
        run = pathlib.Path(scratch) / "run"
        train(*words, "--run-dir", run, seconds=seconds)
        return rate_of(run / "metrics.jsonl", seconds)


def resolved(folder, name, *keys, precision="fp32"):
    """Returns the values that Sinew chooses for these options. Reads them from resolved.yaml of a run of one step."""
    path = jobs.write_job(folder, name, precision)
    with tempfile.TemporaryDirectory() as scratch:
        run = pathlib.Path(scratch) / "run"
        train(path, "trainer.max_duration=1st", "--run-dir", run, seconds=60, expect=0)
        text = (run / "resolved.yaml").read_text()
    return [re.search(rf"^\s+{key}: (\S+)", text, re.MULTILINE).group(1) for key in keys]


def bare_rate(name, shards, seconds):
    job = jobs.JOBS[name]
    return number([BIN / "bare_loop", job.kind, job.batch, shards, LANES, seconds], seconds)


def peer_rate(folder, name, way, seconds):
    job = jobs.JOBS[name]
    return number([PYTHON, ROOT / "bench/peers.py", job.kind, job.batch, way, seconds, folder], seconds)


def number(words, seconds):
    """Runs a program and returns the last number that it prints."""
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=seconds + PATIENCE)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])
