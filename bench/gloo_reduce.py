"""Measures all-reduces by Gloo between processes that do nothing else. reduction_loop does the same for Sinew.
torchrun starts this script.

usage: gloo_reduce.py FLOATS SECONDS       Rank 0 prints the median milliseconds of an all-reduce.
"""
import statistics
import sys
import time

import torch
import torch.distributed as dist


def main(floats, seconds):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mine, over, took = torch.ones(floats), torch.zeros(1), []
    begun = time.monotonic()
    while over.item() == 0:
        mine.fill_(1)
        began = time.monotonic()
        dist.all_reduce(mine)
        took.append(1e3 * (time.monotonic() - began))
        over[0] = float(time.monotonic() - begun > seconds)
        dist.broadcast(over, 0)
    assert mine[0].item() == mine[-1].item() == dist.get_world_size()
    if dist.get_rank() == 0:
        print(statistics.median(took[min(len(took) // 2, 5):]), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
