"""Computes the results of eager PyTorch for a program: outputs, gradients, buffers, and the losses of 50 steps."""
import inspect
import zlib

import torch
import torch.nn.functional as F
from torch.utils import _pytree as pytree

STEPS = 50


class Arguments:
    """A call of a model: `given` is a tuple of positional arguments or a dict of keyword arguments."""

    def __init__(self, model, given):
        self.args, self.kwargs = ((), given) if isinstance(given, dict) else (given, {})
        self.by_name = dict(inspect.signature(model.forward).bind(*self.args, **self.kwargs).arguments)

    def tensors(self):
        return tensor_leaves((self.args, self.kwargs))

    def names(self):
        """Returns the names of the tensors: the name of the argument, or for a nested tensor its path, such as "batch.ids".
    """
        leaves, _ = pytree.tree_flatten_with_path(self.by_name)
        return [".".join(str(getattr(key, "key", getattr(key, "idx", None))) for key in path)
                for path, leaf in leaves if isinstance(leaf, torch.Tensor)]


def tensor_leaves(tree):
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def seeded_model(entry):
    torch.manual_seed(zlib.crc32(entry.base.encode()))
    return entry.model()


def seeded_data(entry, batch):
    torch.manual_seed(zlib.crc32(f"{entry.base} data {batch}".encode()))
    return entry.data(batch)


def loss_of(kind, output, target):
    if kind == "output":
        return output
    if kind == "mse":
        return F.mse_loss(output, target)
    return F.cross_entropy(output.flatten(0, -2) if output.dim() == 3 else output, target.flatten())


def forward(model, given):
    """Returns the tensors among the outputs. The model draws the same random numbers at every call."""
    arguments = Arguments(model, given)
    torch.manual_seed(0)
    return tensor_leaves(model(*arguments.args, **arguments.kwargs))


def train(entry, given, target):
    model = seeded_model(entry).train()
    optimizer = torch.optim.Adam([parameter for parameter in model.parameters() if parameter.requires_grad], lr=1e-3,
                                 foreach=False, fused=False)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(entry.loss, forward(model, given)[0], target)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def write_reference(entry):
    """Returns (the tensors of <name>.safetensors, the names of the inputs)."""
    given, target = seeded_data(entry, entry.batch)
    model = seeded_model(entry).train()
    arguments = Arguments(model, given)
    tensors = {f"input.{i}": leaf for i, leaf in enumerate(arguments.tensors())} | {"target": target}

    outputs = forward(model, given)
    tensors.update({f"output.{i}": leaf for i, leaf in enumerate(outputs)})
    tensors.update({f"after.{name}": buffer.clone() for name, buffer in model.named_buffers()})
    if not entry.dropout:
        tensors["loss"] = loss_of(entry.loss, outputs[0], target)
        tensors["loss"].backward()
        tensors.update({f"grad.{name}": parameter.grad for name, parameter in model.named_parameters()
                        if parameter.grad is not None})
        tensors["losses"] = train(entry, given, target)
    if entry.evals:
        with torch.no_grad():
            outputs = forward(seeded_model(entry).eval(), given)
        tensors.update({f"eval.output.{i}": leaf for i, leaf in enumerate(outputs)})
    if entry.dynamic:
        given, _ = seeded_data(entry, entry.other)
        model = seeded_model(entry).train()
        tensors.update({f"other.input.{i}": leaf for i, leaf in enumerate(Arguments(model, given).tensors())})
        tensors.update({f"other.output.{i}": leaf for i, leaf in enumerate(forward(model, given))})
    plain = {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}
    return {name: tensor for name, tensor in sorted(plain.items())}, arguments.names()
