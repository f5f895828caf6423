#!/usr/bin/env python3
"""Writes the zoo: programs exported by stock PyTorch, each with the results of eager PyTorch.

    make_zoo.py [--verify] [--list] OUT [NAME ...]

For each program it writes OUT/<name>.pt2 (torch.export, of the model in train mode) and OUT/<name>.safetensors with:
    input.<i>                the tensors among the user's inputs, flattened; zoo.json has their names
    target                   for the loss; if the program returns its loss, a copy of one of its inputs
    output.<i>               outputs of one forward in train mode, from the initial state
    after.<buffer>           buffers after that forward
    loss, grad.<parameter>   of that forward
    losses                   the losses before each of 50 steps of Adam (lr 0.001) on that one batch
    eval.output.<i>          outputs of one forward in eval mode, from the initial state. "evals": true in zoo.json
                             means that this is the train graph with normalisation and dropout switched
    other.input.<i>, other.output.<i>   the same with another batch size, if the batch size is dynamic
Programs that draw random numbers (dropout: true) have no loss, gradients or losses; their outputs show only shapes.
Tied parameters appear once, under the first of their names.

OUT/zoo.json lists the programs in OUT: name, family, inputs, loss, dynamic_batch, dropout, evals, decomposed, strict.
Losses:
    cross_entropy   F.cross_entropy(output.0, target); with 3-D output.0.flatten(0, -2) and target.flatten()
    mse             F.mse_loss(output.0, target)
    output          output.0 itself

--verify then loads every .pt2 again and compares its results with the reference.

Every run writes the same bytes, except for notes of torch beside the nodes of strict, decomposed and cond programs:
memory addresses and counters, which nothing reads.
"""
import argparse
import importlib
import json
import os
import pathlib
import sys
import tempfile
import time
import warnings

import safetensors.torch
import torch
from torch.utils import _pytree as pytree

from common import PROGRAMS
from reference import Arguments, loss_of, seeded_data, seeded_model, tensor_leaves, write_reference

FAMILIES = ["mlp", "convolutional", "residual", "dense", "torchvision_models", "recurrent", "transformers", "vision",
            "decoders", "attention", "sequences", "generative", "experts", "graphs", "recommenders", "weights",
            "losses", "forms", "dropouts"]


def dynamic_shapes(entry, arguments):
    """Returns dynamic_shapes as torch.export.export takes them: by argument name, nested like the arguments."""
    if not entry.dynamic:
        return None
    batch = torch.export.Dim("batch")
    if callable(entry.dynamic):
        return entry.dynamic(batch)
    return pytree.tree_map(lambda leaf: {0: batch} if isinstance(leaf, torch.Tensor) and leaf.dim() else None,
                           arguments.by_name)


def export(entry):
    torch._dynamo.reset()
    model = seeded_model(entry).train()
    arguments = Arguments(model, seeded_data(entry, entry.batch)[0])
    exported = torch.export.export(model, arguments.args, arguments.kwargs, strict=entry.strict,
                                   dynamic_shapes=dynamic_shapes(entry, arguments))
    return exported.run_decompositions() if entry.decomposed else exported


def write_program(entry, out):
    """Writes both files of one program, each under its final name only when complete. Returns its entry for zoo.json.
    """
    with tempfile.TemporaryDirectory(dir=out, prefix=".part-") as part:
        part = pathlib.Path(part)
        torch.export.save(export(entry), part / f"{entry.name}.pt2")
        tensors, inputs = write_reference(entry)
        safetensors.torch.save_file(tensors, part / f"{entry.name}.safetensors")
        for suffix in ("pt2", "safetensors"):
            os.replace(part / f"{entry.name}.{suffix}", out / f"{entry.name}.{suffix}")
    return {"name": entry.name, "family": entry.family, "inputs": inputs, "loss": entry.loss,
            "dynamic_batch": bool(entry.dynamic) and entry.batched, "dropout": entry.dropout, "evals": entry.evals,
            "decomposed": entry.decomposed, "strict": entry.strict}


def write_list(out, entries):
    """Writes zoo.json with these entries. Keeps its earlier entries of other programs whose files still exist."""
    path = out / "zoo.json"
    known = {entry["name"]: entry for entry in json.loads(path.read_text())} if path.exists() else {}
    known.update({entry["name"]: entry for entry in entries})
    here = [known[name] for name in PROGRAMS if name in known and (out / f"{name}.pt2").exists()]
    part = out / f"zoo.json.{os.getpid()}"
    part.write_text("[\n" + ",\n".join(json.dumps(entry) for entry in here) + "\n]\n")
    os.replace(part, path)


def worst_difference(found, expected):
    """Returns the largest difference, relative to the larger of 1 and the expected tensor's largest element."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return float("inf")
    if not expected.numel():
        return 0.0
    scale = max(1.0, expected.double().abs().max().item())
    return (found.double() - expected.double()).abs().max().item() / scale


class Functional(torch.nn.Module):
    """A decomposed program that writes its buffers after it has computed the outputs, not in the middle of the graph.

    The program's own module() overwrites buffers that autograd has saved for the backward pass. So it can compute but
    not train.
    """

    def __init__(self, exported):
        super().__init__()
        self.exported = exported
        self.state = {**dict(exported.named_parameters()), **dict(exported.named_buffers()), **exported.constants}

    def named_parameters(self):
        return self.exported.named_parameters()

    def named_buffers(self):
        return self.exported.named_buffers()

    def forward(self, *args, **kwargs):
        user = iter(pytree.tree_leaves((args, kwargs)))
        signature = self.exported.graph_signature
        inputs = [self.state[spec.target] if spec.target else next(user) for spec in signature.input_specs]
        outputs = self.exported.graph_module(*inputs)
        for name, value in zip(signature.buffers_to_mutate.values(), outputs):
            self.state[name] = value
        return outputs[len(signature.buffers_to_mutate):]


def load(entry, out):
    exported = torch.export.load(out / f"{entry.name}.pt2")
    return Functional(exported) if entry.decomposed else exported.module()


def verify(entry, out):
    """Returns, for each tensor of the reference, its difference from the tensor that the loaded program computes."""
    expected = safetensors.torch.load_file(out / f"{entry.name}.safetensors")
    found = {}

    def forward(batch, prefix):
        module = load(entry, out)
        data, target = seeded_data(entry, batch)
        arguments = Arguments(seeded_model(entry), data)
        torch.manual_seed(0)
        outputs = tensor_leaves(module(*arguments.args, **arguments.kwargs))
        found.update({f"{prefix}output.{i}": leaf.detach() for i, leaf in enumerate(outputs)})
        return module, outputs, target

    module, outputs, target = forward(entry.batch, "")
    buffers = module.state if entry.decomposed else dict(module.named_buffers())
    found.update({f"after.{name}": buffer.detach().clone() for name, buffer in buffers.items()})
    if not entry.dropout:
        loss = loss_of(entry.loss, outputs[0], target)
        loss.backward()
        found["loss"] = loss.detach()
        first = {}  # data pointer -> name; tied parameters share their data but are two parameters after loading
        for name, parameter in module.named_parameters():
            known = first.setdefault(parameter.data_ptr(), name)
            if parameter.grad is not None:
                found[f"grad.{known}"] = found.get(f"grad.{known}", 0) + parameter.grad
    if entry.dynamic:
        forward(entry.other, "other.")
    compared = [name for name in expected if name.split(".")[0] in ("output", "after", "loss", "grad") or
                name.startswith("other.output")]
    return {name: worst_difference(found[name], expected[name]) if name in found else float("inf")
            for name in compared}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--verify", action="store_true", help="compare the loaded programs with the reference")
    parser.add_argument("--list", action="store_true", help="write nothing, print the names")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.backends.mha.set_fastpath_enabled(False)  # so that eval mode computes the same as train mode
    warnings.filterwarnings("ignore")
    for family in FAMILIES:
        importlib.import_module(family)
    if options.list:
        print("\n".join(PROGRAMS))
        return 0
    unknown = [name for name in options.names if name not in PROGRAMS]
    if unknown:
        parser.error(f"no program named {', '.join(unknown)}")
    options.out.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in options.names or PROGRAMS:
        start = time.monotonic()
        try:
            write_list(options.out, [write_program(PROGRAMS[name], options.out)])
            line = f"{name}: {time.monotonic() - start:.1f} s"
            if options.verify:
                differences = verify(PROGRAMS[name], options.out)
                worst = max(differences, key=differences.get)
                line += f", {len(differences)} tensors within {differences[worst]:.1e} ({worst})"
                if differences[worst] > (1e-5 if PROGRAMS[name].decomposed else 1e-6):
                    failed.append(name)
                    line += " TOO FAR"
        except Exception as error:  # the other programs are still written
            failed.append(name)
            line = f"{name}: FAILED: {type(error).__name__}: {str(error)[:2000]}"
        print(line, flush=True)
    print(f"{len(failed)} failed: {' '.join(failed)}" if failed else "all good")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
