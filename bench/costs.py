"""Measures what starting costs, and what checkpoints and logging cost the training that goes on meanwhile."""
import json
import pathlib
import resource
import statistics
import subprocess
import tempfile
import time

import contestants
import jobs
from figures import figure


def cpu_seconds(run):
    """Calls `run`. Returns the CPU time of the processes that `run` starts and waits for, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cpu_ms(*words):
    """Returns the least CPU time of a command in five runs, in milliseconds."""
    command = [contestants.SINEW, *words]
    return 1e3 * min(cpu_seconds(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True, timeout=60)) for _ in range(5))


def first_step_seconds(job):
    """Returns the least time from `sinew train` to the first line of metrics in three runs."""
    least = 1e9
    for _ in range(3):
        with tempfile.TemporaryDirectory() as scratch:
            run = pathlib.Path(scratch) / "run"
            began = time.time()
            contestants.train(job, "--run-dir", run, "trainer.max_duration=1st", "logging.interval=1st", seconds=60, expect=0)
            first = json.loads((run / "metrics.jsonl").read_text().splitlines()[0])
            least = min(least, first["time"] - began)
    return least


def startup(folder, quick):
    job = jobs.write_job(folder, "mlp")
    return [figure("first step after `sinew train` (Fashion-MNIST from .gz), s", first_step_seconds(job), 1.0, low=True),
            figure("CPU time of `sinew --help`, ms", cpu_ms("--help"), 20, low=True),
            figure("CPU time of `sinew validate`, ms", cpu_ms("validate", str(job)), 20, low=True)]


def heavy_run(folder, seconds, interval):
    """Runs a training. Returns its steps a second, the steps whose checkpoints became durable while it ran, and its
    number of steps."""
    with tempfile.TemporaryDirectory() as scratch:
        run, durable = pathlib.Path(scratch) / "run", set()
        words = [contestants.SINEW, "train", jobs.write_job(folder, "heavy"), "--run-dir", run, f"budget.time={seconds}s",
                 f"trainer.lanes={contestants.LANES}", f"checkpoint.interval={interval}"]
        process = subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + seconds + contestants.PATIENCE
        try:
            while process.poll() is None:
                if time.monotonic() > deadline:
                    raise RuntimeError("sinew train did not end in time")
                # A checkpoint gets its final name, step-NUMBER, only when it is complete and durable.
                durable |= {int(path.name[5:]) for path in (run / "checkpoints").glob("step-" + "[0-9]" * 8)}
                time.sleep(0.1)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(60)
        if process.returncode != 3:
            raise RuntimeError(f"sinew train ended with {process.returncode}")
        rate = contestants.rate_of(run / "metrics.jsonl", seconds) / jobs.JOBS["heavy"].batch
        return rate, durable, json.loads((run / "report.json").read_text())["steps"]


def checkpoint(folder, quick):
    rounds, seconds = (3, 15) if quick else (5, 30)
    ratios, parts, milliseconds = [], [], []
    for turn in range(rounds):
        runs = {}
        for interval in ("never", "10st") if turn % 2 == 0 else ("10st", "never"):
            runs[interval] = heavy_run(folder, seconds, interval)
        rate, durable, steps = runs["10st"]
        due = set(range(10, steps - 9, 10))  # the last checkpoint may not have had enough time
        ratios.append(rate / runs["never"][0])
        parts.append(len(due & durable) / max(1, len(due)))
        milliseconds.append(1e3 / runs["never"][0])
    detail = f"{jobs.JOBS['heavy'].title}: steps of {statistics.median(milliseconds):.0f} ms, 49 MB; {rounds} rounds of {seconds} s"
    return [figure("step rate with a checkpoint every 10 steps against never", statistics.median(ratios), 0.98, detail=detail),
            figure("part of those checkpoints that became durable", min(parts), 1.0,
                   detail="least of the rounds; seen whole under their names while the run went on")]


def run_seconds(job, *words):
    """Returns the CPU time of a whole run."""
    with tempfile.TemporaryDirectory() as scratch:
        return cpu_seconds(lambda: contestants.train(job, *words, "--run-dir", pathlib.Path(scratch) / "run", seconds=120, expect=0))


def logging(folder, quick):
    """Measures the CPU time of a logged line, as the difference between a run that logs every step and one that logs
    once."""
    steps, rounds = 3000, 3 if quick else 7
    job = jobs.write_job(folder, "mlp64")
    often = lambda: run_seconds(job, f"trainer.max_duration={steps}st", "logging.interval=1st")
    once = lambda: run_seconds(job, f"trainer.max_duration={steps}st", f"logging.interval={steps}st")
    pairs = [(often(), once()) if turn % 2 == 0 else (once(), often())[::-1] for turn in range(rounds)]
    line_ms = sorted(1e3 * (a - b) / (steps - 1) for a, b in pairs)[rounds // 2]
    step_ms = sorted(1e3 * b / steps for _, b in pairs)[rounds // 2]
    cost = lambda steps_a_line: 100 * line_ms / (steps_a_line * step_ms)
    by_default = 2e3 * contestants.LANES / step_ms  # a line every 2 seconds
    detail = f"{1e3 * line_ms:.0f} µs a line, {1e3 * step_ms:.0f} µs a step; median of {rounds}"
    return [figure("logging every 2 s, as by default, of a run's CPU time, %", cost(by_default), 0.5, low=True, detail=f"{jobs.JOBS['mlp64'].title}: {detail}"),
            figure("logging every 50 steps, of a run's CPU time, %", cost(50), 0.5, low=True)]


def accounting(folder, quick):
    """Measures what it costs that a run accounts for its time and for the machine: the lanes enter stages in each step, the
    layers of one shard are counted, and the leader publishes what it has spent."""
    steps, rounds = 3000, 3 if quick else 7
    job = jobs.write_job(folder, "mlp64")
    step_us = sorted(1e6 * run_seconds(job, f"trainer.max_duration={steps}st") / steps for _ in range(rounds))[rounds // 2]
    with tempfile.TemporaryDirectory() as scratch:
        printed = subprocess.run([contestants.BIN / "accounting_loop", scratch], capture_output=True, text=True, check=True, timeout=60).stdout
    enter_ns, publish_us, count_us = map(float, printed.split())
    # train/engine.cpp: four stages in each shard; on each lane two around the shards, one after the sum, two in the optimizer
    # and ten of the step thread. It is a bound: for those ten, all lanes together read the clock once.
    entries = 4 * 8 + 15 * contestants.LANES
    parts = [entries * enter_ns / 1e3 / step_us,
             publish_us / (5e6 * contestants.LANES),  # loop/run_show.cpp: every 5 seconds
             count_us / (steps * step_us)]  # once in a run, here of 3000 steps
    return [figure("accounting of a run's time, use of the machine and layers, of its CPU time, %", 100 * sum(parts), 0.5, low=True,
                   detail=f"{jobs.JOBS['mlp64'].title}: {entries} entries of {enter_ns:.0f} ns in a step of {step_us:.0f} µs; "
                          f"{publish_us:.0f} µs every 5 s to publish; {count_us:.0f} µs once to count the layers")]
