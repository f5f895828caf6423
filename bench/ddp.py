"""Runs one worker of PyTorch DistributedDataParallel over Gloo, with one thread. torchrun starts it.

usage: ddp.py KIND BATCH MICROBATCHES SECONDS DIRECTORY
A step has BATCH samples in MICROBATCHES parts, distributed over all processes. Gradients are reduced during the last
part of each process. Each process writes its PID into DIRECTORY, and the first process writes one byte a step there.
If DIRECTORY is `-`, they write nothing. The first process prints samples a second.
"""
import os
import pathlib
import sys

import torch
import torch.distributed as dist
from torch import nn

import peers


def main(kind, batch, microbatches, seconds, directory):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    progress = None
    if directory != "-":
        pathlib.Path(directory, f"pid-{rank}").write_text(str(os.getpid()))
        progress = open(pathlib.Path(directory, "steps"), "ab", buffering=0) if rank == 0 else None
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(peers.model_of(kind))
    optimizer, loss_of = peers.adamw(model), nn.CrossEntropyLoss()
    mine, part = microbatches // world, batch // microbatches
    meter, over = peers.Meter(seconds), torch.zeros(1)
    torch.manual_seed(rank)
    dataset = peers.dataset_of(kind, ".", preload=True)
    for step, (inputs, targets) in enumerate(peers.plain_batches(dataset, mine * part)):
        optimizer.zero_grad(set_to_none=True)
        for i in range(mine):
            own = slice(i * part, (i + 1) * part)
            if i + 1 < mine:
                with model.no_sync():
                    (loss_of(model(inputs[own]), targets[own]) / mine).backward()
            else:
                (loss_of(model(inputs[own]), targets[own]) / mine).backward()
        optimizer.step()
        if progress:
            progress.write(b".")
        meter.add(batch)
        if step % 20 == 0:  # the first process decides, so that all stop at the same step
            over[0] = float(meter.over)
            dist.broadcast(over, 0)
            if over.item() > 0:
                break
    if rank == 0:
        print(meter.rate, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), sys.argv[5])
