"""Checks with stock torch the .pt2 files that Sinew reads and writes.

    python tests/program/pt2_check.py build/plain/bin/pt2_copy

Exports models of many kinds with torch.export. pt2_copy negates every parameter of each file. Then the script opens the
result with torch.export.load and compares: the state dict, the outputs with those of the eager model after the same
change, the names of inputs and outputs, and every other member of the archive byte for byte. Needs torch.
"""
import collections
import copy
import dataclasses
import logging
import pathlib
import subprocess
import sys
import tempfile
import warnings
import zipfile

import torch
from torch import nn
from torch.utils import _pytree

logging.disable(logging.WARNING)
warnings.filterwarnings("ignore")

Pair = collections.namedtuple("Pair", "left right")
_pytree._register_namedtuple(Pair, serialized_type_name="sinew.Pair")


@dataclasses.dataclass
class Result:
    loss: torch.Tensor | None
    out: torch.Tensor


torch.export.register_dataclass(Result, serialized_type_name="sinew.Result")


class Convolution(nn.Module):
    """Buffers that change, and weights in channels-last order."""
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last), nn.BatchNorm2d(4), nn.ReLU())

    def forward(self, x):
        return self.body(x)


class Weights(nn.Module):
    """Has weights that are tied, strided, sliced, empty, scalar and of every float type, saved and unsaved buffers, and
    constants."""
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(10, 8), nn.Linear(8, 10, bias=False)
        self.out.weight = self.embed.weight
        self.turned = nn.Parameter(torch.randn(6, 4).t())
        self.slice = nn.Parameter(torch.arange(20.0)[3:9].view(2, 3))
        self.none = nn.Parameter(torch.zeros(0, 3))
        self.one = nn.Parameter(torch.tensor(2.5))
        self.low, self.brain = nn.Parameter(torch.randn(3).half()), nn.Parameter(torch.randn(3).bfloat16())
        self.high = nn.Parameter(torch.randn(3).double())
        self.register_buffer("wide", torch.ones(1).expand(5))
        self.register_buffer("hidden", torch.ones(4), persistent=False)
        self.register_buffer("flags", torch.tensor([True, False]))
        self.constant = torch.tensor([1.0, 2.0])

    def forward(self, ids):
        rest = [self.turned, self.slice, self.none, self.one, self.low, self.brain, self.high, self.wide,
                self.hidden, self.flags, self.constant]
        return self.out(self.embed(ids)), sum(x.sum() for x in rest)


class Nested(nn.Module):
    """Has arguments and results of every structure."""
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(3.0))

    def forward(self, batch, *args, pair=None, mode="mean", n=3, **others):
        y = batch["ids"] * self.scale + batch["more"][0] * args[0] + others["z"] * n + pair.left
        return {"logits": y, "rest": [y * 2, (y + 1, None)], "k": 3, "pair": Pair(y, y - 1), "result": Result(None, y)}


class Branches(nn.Module):
    """Higher-order operators, which contain subgraphs."""
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        y = torch.cond(x.sum() > 0, lambda x: self.layer(x).sin(), lambda x: x.cos(), (x,))
        with torch.no_grad():
            z = self.layer(x)
        return y, z


class Lists(nn.Module):
    """Operators that return lists, infinities, and symbolic shapes."""
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 5, 2, batch_first=True)

    def forward(self, x):
        y, (h, _) = self.rnn(x)
        first, second = y.split([2, 3], dim=-1)
        steps = x.shape[1]
        mask = torch.triu(torch.full((steps, steps), float("-inf")), 1)
        return first.sum(-1) + mask[0].exp().sum(), second, h, torch.topk(y, 2)[0], x.shape[0] * 2


def cases():
    torch.manual_seed(7)
    ones = torch.ones(3)
    batch = torch.export.Dim("batch", min=2, max=64)
    yield "convolution", Convolution().eval(), (torch.randn(2, 3, 8, 8),), {}, {}, ["x"], [""]
    yield "training", Convolution().train(), (torch.randn(2, 3, 8, 8),), {}, {}, ["x"], [""]
    yield "weights", Weights(), (torch.randint(0, 10, (2, 3)),), {}, {"dynamic_shapes": ({0: batch},)}, ["ids"], ["0", "1"]
    yield ("nested", Nested(), ({"ids": ones, "more": [ones]}, ones, (ones, ones)),
           {"z": ones, "pair": Pair(ones, ones), "mode": "sum", "n": 4}, {},
           ["batch.ids", "batch.more.0", "args_0", "args_1.0", "args_1.1", "z", "pair.left", "pair.right", "mode", "n"],
           ["logits", "rest.0", "rest.1.0", "rest.1.1", "k", "pair.left", "pair.right", "result.out"])
    yield "branches", Branches(), (torch.randn(4, 3),), {}, {}, ["x"], ["0", "1"]
    yield ("lists", Lists(), (torch.randn(2, 3, 4),), {}, {"dynamic_shapes": ({0: batch, 1: torch.export.Dim.AUTO},)},
           ["x"], ["0", "1", "2", "3", "4"])
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True), 2,
                                    enable_nested_tensor=False)
    yield "encoder", encoder, (torch.randn(2, 5, 16),), {}, {"dynamic_shapes": ({0: batch},), "strict": False}, ["src"], [""]


def same(a, b):
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)
    return a == b


def other_members(path, changed):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist() if ("/weight_" in name) == changed}


def check(tool, folder, name, model, args, kwargs, options, inputs, outputs, decomposed):
    program = torch.export.export(model, args, kwargs, **options)
    if decomposed:
        program = program.run_decompositions()
    before, after = folder / f"{name}.pt2", folder / f"{name}-after.pt2"
    torch.export.save(program, before)
    result = subprocess.run([tool, before, after], capture_output=True, text=True)
    problems = []
    if result.returncode != 0:
        return [f"pt2_copy: {result.stderr.strip()}"]
    said = [line.split(" ", 1) for line in result.stdout.splitlines()]
    for kind, expected in (("input", inputs), ("output", outputs)):
        found = [line[1] for line in said if line[0] == kind]
        if found != expected:
            problems.append(f"{kind}s are called {found}, not {expected}")
    if before.stat().st_size != after.stat().st_size or other_members(before, False) != other_members(after, False):
        problems.append("other members changed")
    loaded = torch.export.load(after)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.neg_()
    expected = model.state_dict()
    for key, tensor in loaded.state_dict.items():
        if not same(tensor, expected[key]) or tensor.stride() != expected[key].stride():
            problems.append(f"{key} is not what it should be")
    if set(loaded.state_dict) != set(expected):
        problems.append("the state dict has other names")
    leaves = _pytree.tree_leaves(loaded.module()(*copy.deepcopy(args), **copy.deepcopy(kwargs)))
    wanted = _pytree.tree_leaves(model(*copy.deepcopy(args), **copy.deepcopy(kwargs)))
    if len(leaves) != len(wanted) or not all(close(a, b, decomposed) for a, b in zip(leaves, wanted)):
        problems.append("outputs differ from those of the model")
    return problems


def close(a, b, decomposed):
    if decomposed and isinstance(a, torch.Tensor) and a.is_floating_point():
        return torch.allclose(a, b, rtol=1e-4, atol=1e-5)  # a decomposed program uses kernels that round differently
    return same(a, b)


def main(tool):
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for decomposed in (False, True):
            for name, model, *rest in cases():
                problems = check(tool, pathlib.Path(folder), name, model, *rest, decomposed)
                failed += bool(problems)
                label = name + (" decomposed" if decomposed else "")
                print(f"{label}: {'; '.join(problems) if problems else 'agrees'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
