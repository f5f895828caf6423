"""Compares the training of `model: tabular` with a PyTorch script that follows the paper (model/tabular.cpp): the network,
its gradients, the factors of learning rate and decay, and the schedules. Both start from the same weights and use the same
full batches, without dropout."""
import csv
import json
import math
import os
import pathlib
import subprocess
import tempfile
import unittest

try:
    import numpy as np
    import torch
    from safetensors.torch import load_file, save_file
except ImportError:
    torch = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
SINEW = pathlib.Path(os.environ.get("SINEW_BIN", ROOT / "build/release/bin")) / "sinew"
STEPS, ROWS, NUMBERS, TOWNS = 60, 160, 3, 12
WIDTH = NUMBERS * 4 + 3 + 1 + 8  # numbers, a category of 3 inputs, one of 2 inputs, and an embedding
LR, DECAY = 0.03, 0.02


def table(regression):
    """Returns the rows as text, the encoded inputs, and the target."""
    rng = np.random.default_rng(5)
    numbers = np.round(rng.normal(size=(ROWS, NUMBERS)) * [1, 30, 0.2] + [0, 100, 5], 4)
    town, colour, side = rng.integers(0, TOWNS, ROWS), rng.integers(0, 3, ROWS), rng.integers(0, 2, ROWS)
    value = numbers[:, 0] + numbers[:, 1] / 30 + town / 5 + side
    y = np.round(value, 3) if regression else np.digitize(value, np.quantile(value, [0.33, 0.66]))
    rows = [[*numbers[i], f"t{town[i]:02}", "rgb"[colour[i]], ["left", "right"][side[i]], y[i] if regression else "uvw"[y[i]]]
            for i in range(ROWS)]
    one_hot = lambda codes, count: np.eye(count)[codes]
    order = [sorted("rgb").index(letter) for letter in "rgb"]
    standard = (numbers - numbers.mean(0)) / numbers.std(0)
    inputs = (standard, one_hot(np.array(order)[colour], 3), (2.0 * side - 1)[:, None], one_hot(town, TOWNS))
    target = (y - y.mean()) / y.std() if regression else y
    as_float = lambda x: torch.from_numpy(np.asarray(x, np.float32))
    return rows, [as_float(x) for x in inputs], as_float(target) if regression else torch.from_numpy(y)


def start(outputs):
    torch.manual_seed(3)
    sizes = [WIDTH, 24, 16, outputs]
    weights = {"embedding_0": torch.randn(TOWNS, 8), "scale": torch.rand(WIDTH) + 0.5,
               "numbers.frequency": 0.3 * torch.randn(NUMBERS, 1, 16), "numbers.phase": torch.randn(NUMBERS, 1, 16),
               "numbers.weight": torch.randn(NUMBERS, 16, 3) / 4, "numbers.bias": torch.randn(NUMBERS, 1, 3) / 4}
    for i, (wide, narrow) in enumerate(zip(sizes, sizes[1:])):
        name = f"hidden.{i}" if i < 2 else "output"
        weights |= {f"{name}.weight": torch.randn(wide, narrow), f"{name}.bias": torch.randn(narrow)}
        if i < 2:
            weights[f"{name}.strength"] = torch.rand(narrow) + 0.5
    return weights


def robust(x):
    low, middle, high = (torch.quantile(x, q, dim=0) for q in (0.25, 0.5, 0.75))
    spread = torch.where(high > low, high - low, (x.amax(0) - x.amin(0)) / 2)
    x = (x - middle) / spread
    return x / torch.sqrt(1 + (x / 3) ** 2)


def network(weights, inputs, activation):
    numbers, small, pair, town = inputs
    flat = robust(torch.cat([numbers, small, pair], 1))
    x, rest = flat[:, :NUMBERS], flat[:, NUMBERS:]
    waves = torch.cos(2 * math.pi * x.T.unsqueeze(-1) @ weights["numbers.frequency"] + weights["numbers.phase"])
    made = waves @ weights["numbers.weight"] + weights["numbers.bias"]
    x = torch.cat([made.transpose(0, 1).flatten(1), x, rest, weights["embedding_0"][town.argmax(1)]], 1) * weights["scale"]
    for name in ("hidden.0", "hidden.1"):
        x = x @ weights[f"{name}.weight"] / math.sqrt(x.shape[1]) + weights[f"{name}.bias"]
        x = x + (activation(x) - x) * weights[f"{name}.strength"]
    return x @ weights["output.weight"] / math.sqrt(x.shape[1]) + weights["output.bias"]


def factors(name):
    if name == "scale":
        return 6, 1
    if name.startswith("numbers.") or name.endswith(".strength"):
        return 0.1, 1
    return (0.1, 0) if name.endswith(".bias") else (1, 1)


def pytorch_curve(weights, inputs, target, regression):
    weights = {name: value.clone().requires_grad_() for name, value in weights.items()}
    activation = torch.nn.functional.mish if regression else torch.nn.functional.selu
    optimizer = torch.optim.AdamW([{"params": [value]} for value in weights.values()], betas=(0.9, 0.95))
    losses = []
    for step in range(STEPS):
        done = step / STEPS
        rate = LR * 0.5 * (1 - math.cos(2 * math.pi * math.log2(1 + 15 * done)))
        decay = DECAY * (1 if done <= 0.5 else 0.5 * (1 + math.cos(math.pi * (2 * done - 1))))
        for group, name in zip(optimizer.param_groups, weights):
            group["lr"], group["weight_decay"] = rate * factors(name)[0], decay * factors(name)[1]
        outputs = network(weights, inputs, activation)
        loss = (torch.nn.functional.mse_loss(outputs[:, 0], target) if regression else
                torch.nn.functional.cross_entropy(outputs, target, label_smoothing=0.1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, {name: value.detach() for name, value in weights.items()}


def sinew_curve(weights, rows, folder, regression):
    save_file(weights, folder / "start.safetensors")
    with open(folder / "table.csv", "w", newline="") as file:
        csv.writer(file).writerows([["a", "b", "c", "town", "colour", "side", "y"], *rows])
    (folder / "job.yaml").write_text(f"""
name: tabular
model: {{name: tabular, hidden: [24, 16], dropout: 0, init_from: {folder}/start.safetensors}}
{"" if regression else "loss: {label_smoothing: 0.1}"}
data: {{format: csv, train: {folder}/table.csv, columns: {{target: y, categorical: [town, colour, side]}}}}
trainer: {{max_duration: {STEPS}st, batch_size: {ROWS}, shards: 8, precision: fp32}}
optimizer: {{name: adamw, lr: {LR}, weight_decay: {DECAY}, weight_decay_schedule: flat_cos, betas: [0.9, 0.95]}}
scheduler: coslog4
checkpoint: {{interval: never}}
logging: {{interval: 1st}}
""")
    done = subprocess.run([SINEW, "train", folder / "job.yaml", "--run-dir", folder / "run"], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    records = [json.loads(line) for line in (folder / "run/metrics.jsonl").read_text().splitlines()]
    losses = [record["train/loss"] for record in sorted(records, key=lambda r: r["step"])]
    return losses, load_file(folder / "run/model/model.safetensors")


@unittest.skipIf(torch is None, "no Python with torch, numpy and safetensors (SINEW_PYTHON)")
class Tabular(unittest.TestCase):
    def test_training_follows_pytorch(self):
        for regression in (False, True):
            with self.subTest(regression=regression), tempfile.TemporaryDirectory() as folder:
                rows, inputs, target = table(regression)
                weights = start(1 if regression else 3)
                ours, made = sinew_curve(weights, rows, pathlib.Path(folder), regression)
                theirs, expected = pytorch_curve(weights, inputs, target, regression)
                self.assertEqual(len(ours), STEPS)
                self.assertLess(theirs[-1], 0.8 * theirs[0], "the reference itself does not learn")
                for step, (mine, other) in enumerate(zip(ours, theirs)):
                    self.assertLess(abs(mine - other), 1e-5 * max(1.0, other), f"step {step}")  # they add in different orders
                for name, value in expected.items():
                    self.assertLess((made[name] - value).abs().max().item(), 1e-4, name)


if __name__ == "__main__":
    unittest.main()
