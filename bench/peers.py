"""Trains the jobs of jobs.py in PyTorch or Lightning.

usage: peers.py KIND BATCH WAY SECONDS FOLDER
KIND: mlp | cnn | resnet | csv.   WAY: plain (whole batch, tensors in memory) | compile (the same with torch.compile) |
loader (DataLoader) | lightning.
FOLDER holds the data sets made by jobs.py. Prints samples a second after a warm-up.
"""
import logging
import pathlib
import sys
import time
import warnings

import numpy as np
import torch
from torch import nn

import jobs


class Block(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(after), nn.BatchNorm2d(after)
        self.shortcut = nn.Identity()
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        return torch.relu(self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x))))) + self.shortcut(x))


def resnet18():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for after in (64, 128, 256, 512):
        layers += [Block(before, after, 1 if after == 64 else 2), Block(after, after, 1)]
        before = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)).to(memory_format=torch.channels_last)


def model_of(kind):
    if kind == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    if kind == "csv":
        return nn.Sequential(nn.Linear(jobs.COLUMNS, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, jobs.CLASSES))
    if kind == "cnn":
        return nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1),
                             nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 10))
    return resnet18()


class Photos(torch.utils.data.Dataset):
    """JPEGs that are decoded when they are read. With `augment`, they are also cropped and flipped at random."""

    def __init__(self, folder, augment):
        self.files = sorted(pathlib.Path(folder, "photos").glob("*/*.jpg"))
        self.augment = augment

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        from PIL import Image
        side = jobs.IMAGE_SIDE
        image = np.asarray(Image.open(self.files[i]).convert("RGB").resize((side, side), Image.BILINEAR))
        x = torch.from_numpy(image.copy()).permute(2, 0, 1).float().div_(255).sub_(0.5).div_(0.25)
        if self.augment:
            top, left = torch.randint(0, 9, (2,)).tolist()
            x = nn.functional.pad(x, (4, 4, 4, 4))[:, top:top + side, left:left + side]
            x = x.flip(2) if torch.rand(()) < 0.5 else x
        return x, int(self.files[i].parent.name.removeprefix("class"))


def dataset_of(kind, folder, preload):
    if kind == "resnet":
        photos = Photos(folder, augment=not preload)
        if not preload:
            return photos
        images, labels = zip(*(photos[i] for i in range(len(photos))))
        return torch.utils.data.TensorDataset(torch.stack(images), torch.tensor(labels))
    if kind == "csv":
        table = torch.from_numpy(np.loadtxt(pathlib.Path(folder, "table.csv"), delimiter=",", skiprows=1, dtype=np.float32))
        return torch.utils.data.TensorDataset(table[:, :-1].contiguous(), table[:, -1].long())
    images = torch.from_numpy(jobs.read_idx("train-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28).copy()).float()
    labels = torch.from_numpy(jobs.read_idx("train-labels-idx1-ubyte.gz", 8).copy()).long()
    return torch.utils.data.TensorDataset((images - images.mean()) / images.std(), labels)


def plain_batches(dataset, size):
    images, labels = dataset.tensors
    while True:
        order = torch.randperm(len(images))
        for first in range(0, len(images) - size + 1, size):
            chosen = order[first:first + size]
            yield images[chosen], labels[chosen]


def loader_of(kind, dataset, size):
    workers = 2 if kind == "resnet" else 0  # tensors in memory are loaded fastest without worker processes
    return torch.utils.data.DataLoader(dataset, batch_size=size, shuffle=True, drop_last=True, num_workers=workers,
                                       persistent_workers=workers > 0)


def forever(loader):
    while True:
        yield from loader


class Meter:
    """Counts samples after the first 30 % of the time. Sets `over` when the time is up."""

    def __init__(self, seconds):
        self.seconds, self.began, self.counted_from, self.samples, self.over = seconds, time.perf_counter(), None, 0, False

    def add(self, samples):
        now = time.perf_counter()
        if self.counted_from is None:
            self.counted_from = now if now - self.began > 0.3 * self.seconds else None
            return
        self.samples += samples
        self.over = now - self.began > self.seconds
        self.rate = self.samples / (now - self.counted_from)


def adamw(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, fused=True)


def loop(model, batches, meter):
    optimizer, loss_of = adamw(model), nn.CrossEntropyLoss()
    for inputs, targets in batches:
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(inputs), targets).backward()
        optimizer.step()
        meter.add(len(inputs))
        if meter.over:
            return


def lightning(model, loader, meter):
    # Lightning imports torchvision, and that import needs only the schemas of torchvision's compiled operators. So the
    # schemas are defined here, in case the operators do not load.
    operators = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import lightning as L
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore")

    class Module(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = model

        def training_step(self, batch, _):
            return nn.functional.cross_entropy(self.model(batch[0]), batch[1])

        def configure_optimizers(self):
            return adamw(self.model)

        def on_train_batch_end(self, outputs, batch, batch_idx):
            meter.add(len(batch[0]))
            self.trainer.should_stop = meter.over

    L.Trainer(max_epochs=-1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
              enable_model_summary=False).fit(Module(), loader)


def main(kind, batch, way, seconds, folder):
    whole = way in ("plain", "compile")
    dataset, model = dataset_of(kind, folder, preload=whole), model_of(kind)
    if whole:
        batches = plain_batches(dataset, batch)
        if way == "compile":
            model = torch.compile(model)
            loop(model, batches, Meter(0))  # compiles, which takes long and is not measured
        meter = Meter(seconds)
        loop(model, batches, meter)
    else:
        loader, meter = loader_of(kind, dataset, batch), Meter(seconds)
        lightning(model, loader, meter) if way == "lightning" else loop(model, forever(loader), meter)
    print(meter.rate)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4]), sys.argv[5])
