"""Loads training samples as PyTorch programs do, in one thread. Prints how many samples a second it loads, after a
warm-up of 30 % of the time.

usage: input_peer.py photos FOLDER SIDE CROP_PADDING BATCH SECONDS     JPEGs, with torchvision
       input_peer.py pixels FILE.npy SIDE CROP_PADDING BATCH SECONDS   rows of bytes in one file, as FFCV reads them
"""
import sys
import time

import numpy as np
import torch

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def photos(folder, side, padding, batch):
    # The import of torchvision needs the schemas of its compiled operators, which do not load with every torch.
    operators = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    from torchvision import datasets, transforms
    transform = transforms.Compose([
        transforms.Resize((side, side)), transforms.RandomCrop(side, padding=padding), transforms.RandomHorizontalFlip(),
        transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
    loader = torch.utils.data.DataLoader(datasets.ImageFolder(folder, transform), batch_size=batch, shuffle=True, drop_last=True)
    while True:
        yield from loader


def pixels(file, side, padding, batch):
    rows = np.load(file, mmap_mode="r")
    assert rows.shape[1:] == (3, side, side) and padding == 0
    labels = torch.arange(len(rows)) % 10
    mean, std = torch.tensor(MEAN).view(1, 3, 1, 1), torch.tensor(STD).view(1, 3, 1, 1)
    while True:
        order = np.random.permutation(len(rows))
        for first in range(0, len(rows) - batch + 1, batch):
            chosen = order[first:first + batch]
            yield torch.from_numpy(rows[chosen]).float().div_(255).sub_(mean).div_(std), labels[chosen]


def main(kind, path, side, padding, batch, seconds):
    torch.set_num_threads(1)
    began, first, loaded = time.monotonic(), None, 0
    for images, _ in {"photos": photos, "pixels": pixels}[kind](path, side, padding, batch):
        now = time.monotonic()
        if first is None:
            first = now if now - began > 0.3 * seconds else None
            continue
        loaded += len(images)
        if now - began > seconds:
            print(loaded / (now - first))
            return


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]), float(sys.argv[6]))
