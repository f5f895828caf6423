"""Defines the list of programs and makes their random data. The modules of the zoo share this code.

A family module declares its programs with `program(...)`. All random numbers come from the global generator.
make_zoo.py seeds it by the program's name before it makes the model, and again before it makes the data.
"""
import dataclasses
import typing

import torch

PROGRAMS = {}


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    family: str
    model: typing.Callable  # () -> nn.Module
    data: typing.Callable  # batch size -> (arguments: tuple, or dict by name; target)
    loss: str = "cross_entropy"  # or "mse", or "output": the first output is the loss itself
    batch: int = 8
    other: int = 5  # batch size of the second example
    # The dynamic dimensions. True: the first dimension of every tensor. False: none. Otherwise a function that takes
    # the Dim "batch" and returns dynamic_shapes in the form that torch.export.export takes.
    dynamic: typing.Any = True
    batched: bool = True  # whether the first dimension of every input is dynamic (dynamic_batch in zoo.json)
    dropout: bool = False  # draws random numbers, so no gradients and losses are written
    evals: bool = True  # eval mode is the same graph, with normalisation and dropout switched to evaluation
    strict: bool = False
    decomposed: bool = False
    base: str = ""  # name without the variant: variants of one program have the same weights and data


def program(name, family, model, data, *, variants=(), **options):
    """Adds a program, and its variants ("decomposed", "strict") as separate programs."""
    for variant in ("", *variants):
        full = f"{name}_{variant}" if variant else name
        if full in PROGRAMS:
            raise ValueError(f"two programs named {full}")
        more = {variant: True} if variant else {}
        PROGRAMS[full] = Program(full, family, model, data, base=name, **options, **more)


def normal(*shape):
    return torch.randn(*shape)


def uniform(*shape):
    return torch.rand(*shape)


def integers(most, *shape, least=0):
    """Returns random integers from `least` to `most` - 1."""
    return torch.randint(least, most, shape)


def padded_ids(vocabulary, count, length, padding=0):
    """Returns sequences of different lengths, at least 2, padded with the padding index."""
    ids = torch.randint(1, vocabulary, (count, length))
    lengths = torch.randint(2, length + 1, (count, 1))
    return torch.where(torch.arange(length) < lengths, ids, padding)
