"""Trains random jobs under random limits of memory (a control group and budget.memory), with auto shards and lanes.

usage: fits.py [COUNT] [SEARCHED] [SEED]     prints every run; `compare.py fits` keeps the figures in docs/benchmarks.md
A run is ended by the kernel if it needs more than its limit. For some limits, the chosen shards are trained with every
number of lanes under the same limit as well; the best that ends by itself is what the chosen one is compared with. Shards
are part of the result, and memory alone chooses them.
"""
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

import contestants
from figures import figure

sys.path.insert(0, str(contestants.ROOT / "tests/drills"))
import memory_group

FULL, QUICK = (100, 30), (12, 4)
MIB = 1 << 20
STEPS = 10
FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
AROUND = ("lanes", "startup", "evaluation", "checkpoint", "finish", "test")  # what is no stage of a step


def job_of(rng, folder):
    """Writes a random job, whose steps need some hundred MiB. Returns its path and its batch size."""
    batch = rng.choice([256, 512])
    model = rng.choice(["{name: cnn, channels: [%d, 8]}" % rng.choice([64, 96, 128]),
                        "{name: resnet18, width: %d, stem: cifar}" % rng.choice([4, 6]),
                        "{name: mlp, hidden: [%d, %d]}" % (rng.choice([1024, 2048]), rng.choice([512, 1024]))])
    path = pathlib.Path(folder) / "job.yaml"
    path.write_text(f"""name: fits
model: {model}
data:
  format: idx
  train: {{images: {FASHION}/t10k-images-idx3-ubyte.gz, labels: {FASHION}/t10k-labels-idx1-ubyte.gz}}
  split: {{val: 0.2}}
trainer: {{max_duration: {STEPS}st, batch_size: {batch}, eval_interval: 1dur}}
optimizer: {{name: adamw, lr: 1e-4}}
checkpoint: {{interval: 0.5dur, keep_best: 0}}
logging: {{tensorboard: false}}
""")
    return path, batch


def trained(job, run, group, *words):
    """Trains within the group. Returns how it ended, and its report: done, refused, or killed."""
    done = subprocess.run([str(contestants.SINEW), "train", str(job), "--run-dir", str(run), *words], capture_output=True, text=True,
                          timeout=900, preexec_fn=group.enter if group else None)
    report = run / "report.json"
    if done.returncode == 0:
        return "done", json.loads(report.read_text())
    return ("refused" if "[MEMORY_TOO_SMALL]" in done.stderr else "killed"), {"error": done.stderr[-400:]}


def rate(report):
    """Samples a second of the steps, without the start, evaluations and the end."""
    time = report["time"]
    seconds = sum(value for stage, value in time.items() if stage not in AROUND) / time["lanes"]
    return report["samples"] / max(1e-9, seconds)


def searched(job, shards, limit, folder):
    """Returns the highest rate of all numbers of lanes that end by themselves under the limit, and that number."""
    best = (0.0, None)
    for lanes in range(1, contestants.LANES + 1):
        with memory_group.MemoryGroup(limit) as group, tempfile.TemporaryDirectory(dir=folder) as run:
            how, report = trained(job, pathlib.Path(run) / "run", group, f"trainer.lanes={lanes}", f"trainer.shards={shards}")
        if how == "done":
            best = max(best, (rate(report), lanes))
    return best


def one(number, seed, search):
    rng = random.Random(f"{seed}/{number}")
    with tempfile.TemporaryDirectory() as folder:
        job, batch = job_of(rng, folder)
        how, report = trained(job, pathlib.Path(folder) / "free", None)
        if how != "done":
            raise RuntimeError(f"a training without a limit was {how}: {report}")
        peak = report["resources"]["peak_memory_bytes"]
        limit = int(peak * rng.uniform(0.35, 1.05))
        run = pathlib.Path(folder) / "run"
        with memory_group.MemoryGroup(limit) as group:
            how, report = trained(job, run, group, f"budget.memory={limit}B")
        found = {"number": number, "model": job.read_text().split("\n")[1], "batch": batch, "limit_mib": limit // MIB,
                 "peak_mib": peak // MIB, "how": how, "error": report.get("error", "")}
        if how == "done":
            found["rate"] = rate(report)
            found["lanes"], found["shards"] = report["time"]["lanes"], (run / "resolved.yaml").read_text().split("shards: ")[1].split()[0]
            if search:
                found["best"], found["best_at"] = searched(job, found["shards"], limit, folder)
        return found


def measure(count, search, seed):
    for number in range(count):
        found = one(number, seed, number % max(1, count // max(1, search)) == 0 and number // max(1, count // max(1, search)) < search)
        print(json.dumps(found), file=sys.stderr, flush=True)
        yield found


def fits(folder, quick):
    del folder
    count, search = QUICK if quick else FULL
    runs = list(measure(count, search, 1))
    done = [run for run in runs if run["how"] == "done"]
    compared = [run.get("rate", 0) / run["best"] for run in runs if run.get("best")]
    return [figure(f"random limits that killed a run, of {count}", sum(run["how"] == "killed" for run in runs), 0, low=True,
                   detail=f"{len(done)} trained to their end, {sum(run['how'] == 'refused' for run in runs)} were refused at once"),
            figure("throughput over the best lanes that fit, median", statistics.median(compared or [0]), 0.9,
                   detail=f"{len(compared)} limits with all lanes tried; lowest {min(compared or [0]):.2f}")]


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    for _ in measure(*(numbers + [*QUICK, 1][len(numbers):])):
        pass
