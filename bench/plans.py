"""Plans random jobs of all built-in models with `sinew plan`, then trains them, and compares time and memory with the plan.

usage: plans.py [COUNT] [SEED]     prints every job; `compare.py plans` keeps the figures in docs/benchmarks.md
A plan is printed before its training begins. A forecast after 50 steps is a line of progress of that training.
"""
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import contestants
import jobs
from figures import figure

FULL, QUICK = 60, 12
FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
IMAGES = f"""format: idx
  train: {{images: {FASHION}/train-images-idx3-ubyte.gz, labels: {FASHION}/train-labels-idx1-ubyte.gz}}
  test: {{images: {FASHION}/t10k-images-idx3-ubyte.gz, labels: {FASHION}/t10k-labels-idx1-ubyte.gz}}
  split: {{val: 0.1}}"""
TABLE = """format: csv
  train: {folder}/table.csv
  task: classification
  columns: {target: y}
  split: {val: 0.1, test: 0.1}"""
TEXT = """format: text
  train: {folder}/text.txt
  text: {window: %d}
  split: {val: 0.1}"""
MODELS = [("linear", IMAGES, "{name: linear}"), ("svm", IMAGES, "{name: svm}"),
          ("mlp", IMAGES, "{name: mlp, hidden: [%(wide)d]}"), ("cnn", IMAGES, "{name: cnn, channels: [%(thin)d, %(thin)d]}"),
          ("resnet18", IMAGES, "{name: resnet18, width: 4, stem: cifar}"), ("mlp", TABLE, "{name: mlp, hidden: [%(wide)d, 64]}"),
          ("tabular", TABLE, "{name: tabular, hidden: [64, 64]}"), ("lstm", TEXT, "{name: lstm, embedding: 32, hidden_size: %(wide)d}")]


def job_of(rng, number, folder):
    """Writes a random job that trains for about half a minute at most. Returns its path and the name of its model."""
    name, data, model = MODELS[number % len(MODELS)]
    data = data.replace("{folder}", str(folder))
    if data.startswith("format: text"):
        data %= rng.choice([16, 32])
    steps = rng.choice([150, 300, 600, 1200]) if name in ("resnet18", "lstm") else rng.choice([600, 2000, 6000])
    text = f"""name: plan
model: {model % {"wide": rng.choice([32, 128, 512]), "thin": rng.choice([4, 8, 16])}}
data:
  {data}
trainer: {{max_duration: {steps}st, batch_size: {rng.choice([32, 64, 256])}, eval_interval: {rng.choice(["0.25dur", "0.5dur"])}}}
optimizer: {{name: {rng.choice(["sgd", "adamw"])}, lr: 1e-4}}
checkpoint: {{interval: {rng.choice(["never", "0.5dur"])}}}
"""
    path = pathlib.Path(folder) / f"job{number}.yaml"
    path.write_text(text)
    return path, name


def trained(job, run):
    """Trains the job. Returns its report, and the first forecast after 50 steps: at, low and high, in seconds."""
    words = [str(contestants.SINEW), "train", str(job), "--run-dir", str(run), "--log-format", "json"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    began, forecast = time.monotonic(), None
    for line in process.stdout:
        record = json.loads(line)
        if forecast is None and record.get("step", 0) >= 50 and "eta_low_seconds" in record:
            forecast = (time.monotonic() - began, record["eta_low_seconds"], record["eta_high_seconds"])
    if process.wait() != 0:
        raise RuntimeError(f"sinew train {job} ended with {process.returncode}")
    return json.loads((run / "report.json").read_text()), time.monotonic() - began, forecast


def one(number, seed, folder):
    rng = random.Random(f"{seed}/{number}")
    job, model = job_of(rng, number, folder)
    done = subprocess.run([str(contestants.SINEW), "plan", str(job), "--json"], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f"sinew plan {job} ended with {done.returncode}: {done.stderr}")
    plan = json.loads(done.stdout)
    print(f"{number} {model}: planned {json.dumps(plan['seconds'])} s, {json.dumps(plan['memory_bytes'])} bytes", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        report, took, forecast = trained(job, pathlib.Path(scratch) / "run")
    found = {"model": model, "seconds": report["seconds"], "memory": report["resources"]["peak_memory_bytes"], "plan": plan,
             "later": None if forecast is None else (forecast[0], *forecast[1:], took)}
    print(f"{number} {model}: took {report['seconds']:.2f} s, {found['memory']} bytes", file=sys.stderr, flush=True)
    return found


def measure(count, seed):
    with tempfile.TemporaryDirectory() as folder:
        jobs.make_data(folder, "csv")
        words = random.Random(seed)
        (pathlib.Path(folder) / "text.txt").write_text("".join(words.choice("etaoinshrdlu .,\n") for _ in range(200_000)))
        return [one(number, seed, folder) for number in range(count)]


def inside(value, estimate):
    return estimate["low"] <= value <= estimate["high"]


def width(estimate):
    """Half of the range, in percent of its middle."""
    return 100 * (estimate["high"] - estimate["low"]) / max(1e-9, estimate["high"] + estimate["low"])


def plans(folder, quick):
    del folder
    runs = measure(QUICK if quick else FULL, 1)
    part = lambda values: 100 * sum(values) / max(1, len(values))
    later = [run["later"] for run in runs if run["later"] is not None]
    return [figure("planned times that held, %", part([inside(run["seconds"], run["plan"]["seconds"]) for run in runs]), 85,
                   detail=f"{len(runs)} jobs; real over planned time: median {statistics.median(run['seconds'] / run['plan']['seconds']['expected'] for run in runs):.2f}"),
            figure("half the width of a planned time, %, median", statistics.median(width(run["plan"]["seconds"]) for run in runs), 30, low=True),
            figure("planned peaks of memory that held, %", part([inside(run["memory"], run["plan"]["memory_bytes"]) for run in runs]), 85,
                   detail=f"real over planned: median {statistics.median(run['memory'] / run['plan']['memory_bytes']['expected'] for run in runs):.2f}"),
            figure("half the width of a planned peak, %, median", statistics.median(width(run["plan"]["memory_bytes"]) for run in runs), 30, low=True),
            figure("forecasts of the end after 50 steps that held, %",
                   part([low - 0.2 <= took - at <= high + 0.2 for at, low, high, took in later]), 90, detail=f"{len(later)} jobs"),
            figure("half the width of a forecast after 50 steps, %, median",
                   statistics.median(100 * (high - low) / max(1e-9, high + low) for at, low, high, took in later), 15, low=True)]


if __name__ == "__main__":
    measure(int(sys.argv[1]) if len(sys.argv) > 1 else QUICK, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
