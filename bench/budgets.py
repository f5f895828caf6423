"""Trains with random budgets of time beside programs that take the processors at random, and checks that each budget holds.

usage: budgets.py [COUNT] [SEED]     prints every run; `compare.py budgets` keeps the figures in docs/benchmarks.md
A budget holds if the process ends at most 1 % or 2 s after it, whichever is more. Two of three runs need longer than their
budget; the others mostly end by themselves. Each forecast is printed before the run ends: the range of the time left in a line
of progress, and the range of the steps that the budget allows in a warning.
"""
import concurrent.futures
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

import contestants
from figures import figure

FULL, QUICK = 200, 24
FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")


class Load:
    """Programs that use the processors, for random times, until the end of the block."""
    CODE = "import sys, time\nend = time.time() + float(sys.argv[1])\nwhile time.time() < end: sum(range(20000))"

    def __init__(self, seed):
        self.random, self.over = random.Random(seed), threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        running = []
        while not self.over.is_set():
            for _ in range(self.random.choice([0, 0, 1, 1, 2, 3])):
                seconds = self.random.uniform(1, 15)
                running.append(subprocess.Popen([sys.executable, "-c", self.CODE, str(seconds)]))
            self.over.wait(self.random.uniform(2, 12))
            running = [process for process in running if process.poll() is None]
        for process in running:
            process.kill()
            process.wait(10)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def job_of(rng, folder, budget):
    """Writes a random job. Returns its path."""
    model = rng.choice(["{name: mlp, hidden: [%d]}" % rng.choice([64, 256, 1024]), "{name: cnn, channels: [%d, %d]}" % (rng.choice([4, 8]), rng.choice([8, 16]))])
    epochs = 1000 if budget < 60 else rng.choice([1, 2, 4, 8])
    interval = rng.choice(["1ep", "0.25ep", "3s", "10s", "200st"])
    images = f"{{images: {FASHION}/%s-images-idx3-ubyte.gz, labels: {FASHION}/%s-labels-idx1-ubyte.gz}}"
    path = pathlib.Path(folder) / "job.yaml"
    path.write_text(f"""name: budget
model: {model}
data:
  format: idx
  train: {images % ("train", "train")}
  test: {images % ("t10k", "t10k")}
  split: {{val: {rng.choice([0.05, 0.2])}}}
trainer: {{max_duration: {epochs}ep, batch_size: {rng.choice([32, 128, 512])}, lanes: {rng.choice([1, 2])}, eval_interval: {interval}}}
optimizer: {{name: adamw, lr: 1e-3}}
scheduler: {{name: {rng.choice(["constant", "cosine"])}}}
early_stopping: {{monitor: val/loss, patience: 1000000}}
checkpoint: {{interval: {rng.choice(["2s", "1ep", "never"])}}}
budget: {{time: {budget}s}}
""")
    return path


def loads(run):
    """Whether the model of a run can be used."""
    done = subprocess.run([contestants.SINEW, "inspect", str(run)], capture_output=True, text=True, timeout=120)
    model = run / "model" / "model.safetensors"
    if done.returncode != 0 or not model.exists():
        return False
    from safetensors.numpy import load_file
    return len(load_file(model)) > 0


def one(number, seed):
    rng = random.Random(f"{seed}/{number}")
    budget = rng.choice([rng.uniform(5, 15), rng.uniform(15, 40), rng.uniform(60, 90)])
    with tempfile.TemporaryDirectory() as folder:
        job, run = job_of(rng, folder, round(budget, 1)), pathlib.Path(folder) / "run"
        began = time.monotonic()
        words = [str(contestants.SINEW), "train", str(job), "--run-dir", str(run), "--log-format", "json"]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        forecasts, reached = [], None
        for line in process.stdout:
            record = json.loads(line)
            if "eta_low_seconds" in record:
                forecasts.append((time.monotonic() - began, record["eta_low_seconds"], record["eta_high_seconds"]))
            if record.get("event") == "budget_short":
                reached = (record["metrics"] if "metrics" in record else record)
        code = process.wait()
        took = time.monotonic() - began
        report = json.loads((run / "report.json").read_text())
        # one forecast a run: the first one in the second quarter of the run, so that long runs do not count more
        judged = [(at, low, high) for at, low, high in forecasts if at > took / 4][:1]
        covered = [low - 0.5 <= took - at <= high + 0.5 for at, low, high in judged]
        steps = None if reached is None else reached["steps_low"] <= report["steps"] <= reached["steps_high"]
        return {"number": number, "budget": budget, "took": took, "code": code, "held": took <= max(budget * 1.01, budget + 2),
                "loads": loads(run), "covered": covered, "forecast": judged, "by_budget": code == 3, "steps_covered": steps,
                "tested": any(name.startswith("test/") for name in report["last"]), "best": report.get("best") is not None}


def measure(count, seed):
    with Load(seed), concurrent.futures.ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda number: one(number, seed), range(count)):
            print(json.dumps(found), file=sys.stderr, flush=True)
            yield found


def budgets(folder, quick):
    del folder
    runs = list(measure(QUICK if quick else FULL, 1))
    by_budget = [run for run in runs if run["by_budget"]]
    judged = [held for run in runs for held in run["covered"]]
    steps = [run["steps_covered"] for run in runs if run["steps_covered"] is not None]
    over = max([run["took"] - run["budget"] for run in by_budget], default=0)
    used = sorted(run["took"] / run["budget"] for run in by_budget) or [0]
    part = lambda values: 100 * sum(values) / max(1, len(values))
    return [figure(f"budgets of 5 to 90 s that held to 1 % or 2 s, of {len(runs)}", sum(run["held"] for run in runs), len(runs),
                   detail=f"{len(by_budget)} ended by their budget; the latest {over:+.2f} s after it; half used {100 * used[len(used) // 2]:.0f} % or more of the time"),
            figure("runs with a model that loads", sum(run["loads"] for run in runs), len(runs),
                   detail=f"{sum(run['best'] for run in runs)} of them evaluated a step, {sum(run['tested'] for run in runs)} were tested"),
            figure("forecasts of the last step that held, %", part(steps), 90, detail=f"{len(steps)} warnings that the budget will not do"),
            figure("forecasts of the end that held, %", part(judged), 90, detail=f"{len(judged)} runs, {len(runs) - len(by_budget)} of which ended by themselves")]


if __name__ == "__main__":
    for _ in measure(int(sys.argv[1]) if len(sys.argv) > 1 else QUICK, int(sys.argv[2]) if len(sys.argv) > 2 else 1):
        pass
