"""Compares Sinew's loss curves of 200 steps with those of a stock PyTorch script. Both start from the same weights and
use the same full batches.

Sinew computes a batch as 8 shards, PyTorch as a whole. ctest runs this test with SINEW_PYTHON, the Python that has the
needed packages.
"""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

try:
    import numpy as np
    import torch
    from safetensors.torch import save_file
except ImportError:
    torch = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
SINEW = pathlib.Path(os.environ.get("SINEW_BIN", ROOT / "build/release/bin")) / "sinew"
STEPS, SAMPLES, CLASSES = 200, 160, 4


def data():
    rng = np.random.default_rng(3)
    labels = rng.integers(0, CLASSES, SAMPLES)
    patterns = rng.normal(size=(CLASSES, 1, 8, 8))
    images = patterns[labels] + 1.5 * rng.normal(size=(SAMPLES, 1, 8, 8))
    return images.astype(np.float32), labels.astype(np.int64)


class Mlp(torch.nn.Module if torch else object):
    def __init__(self):
        super().__init__()
        self.hidden = torch.nn.ModuleList([torch.nn.Linear(64, 24)])
        self.output = torch.nn.Linear(24, CLASSES)

    def forward(self, x):
        return self.output(torch.relu(self.hidden[0](x.flatten(1))))


class Cnn(torch.nn.Module if torch else object):
    def __init__(self):
        super().__init__()
        self.convolutions = torch.nn.ModuleList([torch.nn.Conv2d(1, 6, 3, padding=1), torch.nn.Conv2d(6, 8, 3, padding=1)])
        self.output = torch.nn.Linear(32, CLASSES)

    def forward(self, x):
        for convolution in self.convolutions:
            x = torch.max_pool2d(torch.relu(convolution(x)), 2)
        return self.output(x.flatten(1))


class Lstm(torch.nn.Module if torch else object):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(8, 12, batch_first=True)
        self.output = torch.nn.Linear(12, CLASSES)

    def forward(self, x):
        return self.output(self.lstm(x.squeeze(1))[0][:, -1])


# name: (module, model section, optimizer section, extra, PyTorch's optimizer, schedule of the learning rate, clip)
CASES = {
    "mlp, SGD with momentum": (Mlp, "{name: mlp, hidden: [24]}", "{name: sgd, lr: 0.05, momentum: 0.9, nesterov: true, weight_decay: 0.001}", "",
                               lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.001), None, None),
    "cnn, AdamW, clipping, cosine": (Cnn, "{name: cnn, channels: [6, 8]}", "{name: adamw, lr: 0.003, weight_decay: 0.05}",
                                     "scheduler: {name: cosine}", lambda p: torch.optim.AdamW(p, lr=0.003, weight_decay=0.05), "cosine", 0.5),
    "lstm, RMSprop": (Lstm, "{name: lstm, hidden_size: 12}", "{name: rmsprop, lr: 0.002, momentum: 0.5}", "",
                      lambda p: torch.optim.RMSprop(p, lr=0.002, momentum=0.5), None, None),
    "mlp, Adam, label smoothing": (Mlp, "{name: mlp, hidden: [24]}", "{name: adam, lr: 0.003, betas: [0.8, 0.99]}",
                                   "loss: {name: cross_entropy, label_smoothing: 0.1, class_weights: [1, 2, 0.5, 1]}",
                                   lambda p: torch.optim.Adam(p, lr=0.003, betas=(0.8, 0.99)), None, None),
}


def pytorch_curve(case, module, images, labels):
    _, _, _, extra, make, schedule, clip = case
    weights = dict(label_smoothing=0.1, weight=torch.tensor([1, 2, 0.5, 1])) if "label_smoothing" in extra else {}
    loss_of = torch.nn.CrossEntropyLoss(**weights)
    optimizer = make(module.parameters())
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS) if schedule else None
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(module(images), labels)
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(module.parameters(), clip)
        optimizer.step()
        if cosine:
            cosine.step()
        losses.append(loss.item())
    return losses


def sinew_curve(case, module, folder):
    _, model, optimizer, extra, _, _, clip = case
    save_file(module.state_dict(), folder / "start.safetensors")
    (folder / "job.yaml").write_text(f"""
name: curve
model: {model[:-1]}, init_from: {folder}/start.safetensors}}
data: {{format: npy, normalize: none, train: {{images: {folder}/images.npy, labels: {folder}/labels.npy}}}}
trainer: {{max_duration: {STEPS}st, batch_size: {SAMPLES}, shards: 8, precision: fp32{f", grad_clip_norm: {clip}" if clip else ""}}}
optimizer: {optimizer}
checkpoint: {{interval: never}}
logging: {{interval: 1st}}
{extra}""")
    done = subprocess.run([SINEW, "train", folder / "job.yaml", "--run-dir", folder / "run"], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    records = [json.loads(line) for line in (folder / "run/metrics.jsonl").read_text().splitlines()]
    return [record["train/loss"] for record in sorted(records, key=lambda r: r["step"])]


@unittest.skipIf(torch is None, "no Python with torch, numpy and safetensors (SINEW_PYTHON)")
class Curves(unittest.TestCase):
    def test_losses_follow_stock_pytorch(self):
        images, labels = data()
        for name, case in CASES.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                np.save(folder / "images.npy", images)
                np.save(folder / "labels.npy", labels)
                torch.manual_seed(1)
                module = case[0]()
                ours = sinew_curve(case, module, folder)
                theirs = pytorch_curve(case, module, torch.from_numpy(images), torch.from_numpy(labels))
                self.assertEqual(len(ours), STEPS)
                self.assertLess(theirs[-1], 0.8 * theirs[0], "the reference itself does not learn")
                for step, (mine, other) in enumerate(zip(ours, theirs)):
                    # Sinew and PyTorch add in different orders, so their curves drift apart slowly, as the curves of
                    # PyTorch on two different machines would.
                    tolerance = 2e-5 if step < 20 else 5e-3
                    self.assertLess(abs(mine - other), tolerance * max(1.0, other), f"{name}, step {step}")


if __name__ == "__main__":
    unittest.main()
