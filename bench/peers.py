"""The same jobs in PyTorch: a plain whole-batch loop on preloaded tensors, and with a DataLoader.

usage: peers.py JOB WAY SECONDS   JOB: mlp | cnn   WAY: plain | loader   Prints samples a second after a warm-up.
"""
import gzip
import sys
import time

import numpy as np
import torch

FOLDER = "/usr/share/datasets/fashion-mnist"
BATCH = {"mlp": 256, "cnn": 128}


def read(name, offset):
    with gzip.open(f"{FOLDER}/{name}") as file:
        return np.frombuffer(file.read(), np.uint8, offset=offset)


def model_of(job):
    if job == "mlp":
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(32, 64, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(3136, 10))


def plain_batches(images, labels, size):
    while True:
        order = torch.randperm(len(images))
        for first in range(0, len(images) - size + 1, size):
            chosen = order[first:first + size]
            yield images[chosen], labels[chosen]


def loader_batches(images, labels, size):
    dataset = torch.utils.data.TensorDataset(images, labels)
    while True:
        yield from torch.utils.data.DataLoader(dataset, batch_size=size, shuffle=True, drop_last=True)


def main(job, way, seconds):
    images = torch.from_numpy(read("train-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28).copy()).float()
    images = (images - images.mean()) / images.std()
    labels = torch.from_numpy(read("train-labels-idx1-ubyte.gz", 8).copy()).long()
    model, loss_of = model_of(job), torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    batches = (plain_batches if way == "plain" else loader_batches)(images, labels, BATCH[job])
    samples, began, warm = 0, time.perf_counter(), 0.3 * seconds
    for inputs, targets in batches:
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(inputs), targets).backward()
        optimizer.step()
        now = time.perf_counter()
        if warm is not None and now - began > warm:
            samples, began, warm = 0, now, None
        elif warm is None:
            samples += len(inputs)
            if now - began > 0.7 * seconds:
                print(samples / (now - began))
                return


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
