"""Compares programs of torch.export, run by Sinew, with the same modules in eager Python. Both run plain training loops
on one thread, in turns; the ratio is that of their steps a second. programs() is a row of `./dev bench`."""
import pathlib
import statistics
import subprocess
import sys
import time

from contestants import ROOT
from figures import figure

LOOP = ROOT / "build/release/bin/program_loop"
# Each case: a description, a name, the kind of input, the batch size, and the target (the least ratio to the speed of
# eager Python).
CASES = [("small mlp, batch 2", "small", "images", 2, 1.5), ("small cnn, batch 2", "small_cnn", "images", 2, 1.5),
         ("cnn, batch 32", "cnn", "images", 32, 0.95), ("character GPT, batch 16", "gpt", "tokens", 16, 1.0)]


def make(name):
    import torch
    from torch import nn
    torch.manual_seed(0)
    if name == "small":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32),
                             nn.ReLU(), nn.Linear(32, 10))
    if name == "small_cnn":
        return nn.Sequential(nn.Conv2d(1, 4, 3, 2), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 8, 3, 2), nn.BatchNorm2d(8),
                             nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))
    if name == "cnn":
        return nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
                             nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                             nn.Linear(3136, 10))
    sys.path.insert(0, str(ROOT / "examples/programs"))
    import char_gpt
    return char_gpt.CharGpt(65)


def export(name, kind, folder):
    import torch
    example = torch.randint(65, (4, 64)) if kind == "tokens" else torch.randn(4, 1, 28, 28)
    program = torch.export.export(make(name).train(), (example,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    torch.export.save(program, pathlib.Path(folder) / f"{name}.pt2")


def eager(name, kind, batch, seconds):
    import torch
    from torch.nn import functional as F
    torch.set_num_threads(1)
    model = make(name).train()
    if kind == "tokens":
        x, y = torch.arange(batch * 64).remainder(65).view(batch, 64), torch.arange(batch * 64).remainder(65)
    else:
        x, y = torch.linspace(-1, 1, batch * 784).view(batch, 1, 28, 28), torch.arange(batch).remainder(10)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
    began, done, first, since = time.perf_counter(), 0, None, 0
    while (now := time.perf_counter() - began) < seconds:
        if first is None and now > 0.3 * seconds:
            first, since = done, now
        out = model(x)
        loss = F.cross_entropy(out.flatten(0, 1) if out.dim() == 3 else out, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        done += 1
    return (done - first) / (time.perf_counter() - began - since)


def speed(words):
    return float(subprocess.run(list(map(str, words)), capture_output=True, text=True, check=True, timeout=300).stdout.split()[-1])


def programs(folder, quick):
    rounds, seconds = (3, 4) if quick else (7, 8)
    figures = []
    for what, name, kind, batch, target in CASES:
        subprocess.run([sys.executable, __file__, "export", name, kind, folder], check=True, capture_output=True, timeout=600)
        ratios, ours = [], []
        for _ in range(rounds):
            ours.append(speed([LOOP, pathlib.Path(folder) / f"{name}.pt2", kind, batch, seconds]))
            ratios.append(ours[-1] / speed([sys.executable, __file__, "eager", name, kind, batch, seconds]))
        figures.append(figure(f"{what}: a .pt2 over eager Python", statistics.median(ratios), target,
                              detail=f"{statistics.median(ours):,.0f} steps/s"))
    return figures


if __name__ == "__main__":
    if sys.argv[1] == "export":
        export(sys.argv[2], sys.argv[3], sys.argv[4])
    else:
        print(eager(sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5])))
