"""Races the kernels that take the place of libtorch's, in one program, in turns (kernel_loop.cpp)."""
import subprocess

import contestants
from figures import figure


def kernels(_folder, quick):
    said = subprocess.run([contestants.BIN / "kernel_loop", "50" if quick else "200"], capture_output=True, text=True, check=True, timeout=300).stdout
    figures = []
    for row in said.splitlines():
        name, theirs, ours = row.split("\t")
        figures.append(figure(f"forward pass of {name}: libtorch's kernel", float(theirs) / float(ours), 1.5,
                              detail=f"{float(ours):,.0f} against {float(theirs):,.0f} µs, one thread"))
    return figures
