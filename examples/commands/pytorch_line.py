"""Fits a line with PyTorch, as a run of sinew. It reads its parameters from the environment, prints metrics as lines of
JSON, saves checkpoints where sinew expects them, and resumes from the newest one. It also runs without sinew."""
import json
import os
import pathlib
import signal

import torch

params = json.loads(os.environ.get("SINEW_PARAMS", "{}"))
lr, steps, seed = params.get("lr", 0.1), params.get("steps", 200), params.get("seed", 0)
folder = os.environ.get("SINEW_CHECKPOINT_DIR")

torch.manual_seed(seed)
inputs = torch.linspace(-1, 1, 64).unsqueeze(1)  # [samples, 1]
targets = 3 * inputs + 0.5
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
step = 0

if os.environ.get("SINEW_RESUME_FROM"):
    state = torch.load(os.environ["SINEW_RESUME_FROM"])
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    step = state["step"]
    print(f"goes on at step {step}")


def save():
    """Writes under another name and renames: a checkpoint that exists is complete."""
    if folder is None:
        return
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    torch.save(state, f"{folder}/saving.tmp")
    os.replace(f"{folder}/saving.tmp", f"{folder}/step-{step:08d}.pt")
    for old in sorted(pathlib.Path(folder).glob("step-*.pt"))[:-2]:
        old.unlink()


asked = False


def ask(*_):
    global asked
    asked = True


signal.signal(signal.SIGTERM, ask)  # lets the current step finish before the program ends

while step < steps:
    step += 1
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        with torch.no_grad():
            val_loss = torch.nn.functional.mse_loss(model(inputs), targets).item()
        print(json.dumps({"step": step, "loss": loss.item(), "val_loss": val_loss, "samples": 64 * step}))
        save()
    if asked:
        save()
        raise SystemExit(75)
print(f"slope {model.weight.item():.3f}, offset {model.bias.item():.3f}")
