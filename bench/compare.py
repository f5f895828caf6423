"""Side by side in one run: Sinew against PyTorch on the same jobs. Writes docs/benchmarks.md.

Machines are noisy, so contestants take turns and what counts is the median over rounds of the ratio within a round.
"""
import json
import os
import pathlib
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
SINEW = ROOT / "build/release/bin/sinew"
PYTHON = os.environ.get("SINEW_PYTHON", sys.executable)
DATA = "/usr/share/datasets/fashion-mnist"
JOBS = {
    "mlp": ("Fashion-MNIST MLP 784-256-10, batch 256", "{name: mlp, hidden: [256]}", 256, 0.6),
    "cnn": ("Fashion-MNIST CNN 32-64, batch 128", "{name: cnn, channels: [32, 64]}", 128, 0.95),
}


def job_file(folder, model, batch):
    path = pathlib.Path(folder) / "job.yaml"
    path.write_text(f"""name: bench
model: {model}
data:
  format: idx
  train: {{images: {DATA}/train-images-idx3-ubyte.gz, labels: {DATA}/train-labels-idx1-ubyte.gz}}
trainer: {{max_duration: 1000ep, batch_size: {batch}, precision: fp32, eval_interval: 1000ep}}
optimizer: {{name: adamw, lr: 1e-3, weight_decay: 0.01}}
checkpoint: {{interval: never}}
logging: {{interval: 20st}}
""")
    return path


def sinew_rate(model, batch, seconds):
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder) / "run"
        subprocess.run([SINEW, "train", job_file(folder, model, batch), "--run-dir", run, f"budget.time={seconds}s"],
                       stdout=subprocess.DEVNULL, check=False, timeout=seconds + 120)
        records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        first = next(r for r in records if r["time"] > records[0]["time"] + 0.3 * seconds)
        last = records[-1]
        return (last["samples"] - first["samples"]) / (last["time"] - first["time"])


def peer_rate(job, way, seconds):
    done = subprocess.run([PYTHON, ROOT / "bench/peers.py", job, way, str(seconds)], capture_output=True, text=True, check=True,
                          timeout=seconds + 120)
    return float(done.stdout)


def compare(job, rounds, seconds):
    _, model, batch, _ = JOBS[job]
    ratios = {"plain": [], "loader": []}
    rates = {"sinew": [], "plain": [], "loader": []}
    for _ in range(rounds):
        ours = sinew_rate(model, batch, seconds)
        rates["sinew"].append(ours)
        for way, list_of_ratios in ratios.items():
            theirs = peer_rate(job, way, seconds)
            rates[way].append(theirs)
            list_of_ratios.append(ours / theirs)
    return {k: statistics.median(v) for k, v in ratios.items()}, {k: statistics.median(v) for k, v in rates.items()}


def cpu_ms(*words):
    """CPU time of a command, the least of five."""
    least = 1e9
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([SINEW, *words], stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        least = min(least, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3)
    return least


def first_step_seconds():
    """From `sinew train` to the first step in the ledger, the least of three."""
    least = 1e9
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            run = pathlib.Path(folder) / "run"
            began = time.time()
            subprocess.run([SINEW, "train", job_file(folder, JOBS["mlp"][1], 256), "--run-dir", run, "trainer.max_duration=1st", "logging.interval=1st"],
                           stdout=subprocess.DEVNULL, check=True, timeout=60)
            least = min(least, json.loads((run / "metrics.jsonl").read_text().splitlines()[0])["time"] - began)
    return least


def cpu_model():
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def verdict(value, target, low=False):
    met = value <= target if low else value >= target
    return "met" if met else "missed"


def main():
    quick = "quick" in sys.argv
    rounds, seconds = (3, 8) if quick else (5, 15)
    lines = ["# Benchmarks", "", "Written by `./dev bench`; run it to get your own. Contestants take turns; a ratio is the median over",
             f"{rounds} rounds of Sinew's samples a second over the peer's in the same round.", "",
             f"CPU: {cpu_model()}, {os.cpu_count()} cores.", "", "## Throughput", "",
             "| job | against | ratio | target | | Sinew samples/s | peer samples/s |", "|---|---|---|---|---|---|---|"]
    for job, (title, _, _, target) in JOBS.items():
        ratios, rates = compare(job, rounds, seconds)
        for way, name, goal in (("plain", "PyTorch, whole batch, preloaded tensors", target), ("loader", "PyTorch with DataLoader", None)):
            goal_text = f"{goal} | {verdict(ratios[way], goal)}" if goal else " | "
            lines.append(f"| {title} | {name} | {ratios[way]:.2f} | {goal_text} | {rates['sinew']:,.0f} | {rates[way]:,.0f} |")
            print(lines[-1], flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = job_file(folder, JOBS["mlp"][1], 256)
        rows = [("first step after `sinew train` (Fashion-MNIST from .gz), s", first_step_seconds(), 1.0),
                ("CPU time of `sinew --help`, ms", cpu_ms("--help"), 20), ("CPU time of `sinew validate`, ms", cpu_ms("validate", str(path)), 20)]
    lines += ["", "## Start-up", "", "| what | measured | target | |", "|---|---|---|---|"]
    lines += [f"| {what} | {value:.2f} | {target} | {verdict(value, target, low=True)} |" for what, value, target in rows]
    lines += ["", "## Not measured yet", "", "- A bare libtorch loop with the same shards and lanes; Lightning; ResNet-18 with JPEG decode; CSV;",
              "  the cost of a checkpoint every 10 steps."]
    (ROOT / "docs/benchmarks.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
