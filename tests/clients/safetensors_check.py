"""Compares how the stock safetensors library and sinew read each other's files.

  safetensors_check.py read DIR          prints one line a tensor of each part of a checkpoint that sinew wrote
  safetensors_check.py write FILE        writes a file for sinew to read, and prints the same lines about it
  safetensors_check.py judge FILE...     prints "accept" or "refuse", one line a file

A line has the file, name, dtype, shape and CRC-32 of the bytes, as JSON. Needs the packages safetensors and (to write)
numpy. checkpoint_test runs it if SINEW_PYTHON names a Python that has them.
"""
import json
import pathlib
import random
import sys
import zlib

import safetensors

BITS = {"BOOL": 8, "U8": 8, "I8": 8, "I16": 16, "F16": 16, "BF16": 16, "I32": 32, "F32": 32, "F64": 64, "I64": 64}


def lines_of(path, data):
    lines = []
    for name, info in safetensors.deserialize(data):
        lines.append({"file": path.name, "name": name, "dtype": info["dtype"], "shape": info["shape"],
                      "crc32": zlib.crc32(bytes(info["data"]))})
    return sorted(lines, key=lambda line: line["name"].encode())


def show(lines):
    for line in lines:
        print(json.dumps(line, ensure_ascii=True))


def read(directory):
    for path in sorted(pathlib.Path(directory).glob("*.safetensors")):
        show(lines_of(path, path.read_bytes()))


def write(path):
    """Writes every dtype, odd names, scalars and empty tensors with the library itself."""
    draw = random.Random(20261121)
    entries = {}
    for dtype, bits in BITS.items():
        for shape in ([], [0], [3], [2, 5], [2, 0, 3]):
            count = 1
            for size in shape:
                count *= size
            entries[f"{dtype} \u00e9\n\"\\ {shape}"] = (dtype, shape, draw.randbytes(count * bits // 8))
    import numpy  # the writer of the package takes arrays, so the bytes become arrays of the right dtype
    kinds = {"BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "F16": "float16", "I32": "int32",
             "F32": "float32", "F64": "float64", "I64": "int64"}
    from safetensors.numpy import save_file
    arrays = {}
    for name, (dtype, shape, data) in entries.items():
        if dtype == "BF16":
            continue  # numpy has no bfloat16
        if dtype == "BOOL":
            data = bytes(byte & 1 for byte in data)
        arrays[name] = numpy.frombuffer(data, dtype=kinds[dtype]).reshape(shape)
    save_file(arrays, path, metadata={"format": "pt", "note": "\u00e9"})
    path = pathlib.Path(path)
    show(lines_of(path, path.read_bytes()))


def judge(paths):
    for path in paths:
        try:
            safetensors.deserialize(pathlib.Path(path).read_bytes())
            print("accept")
        except Exception:  # both the library's own error type and Python's
            print("refuse")


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "read":
        read(arguments[1])
    elif len(arguments) == 2 and arguments[0] == "write":
        write(arguments[1])
    elif arguments and arguments[0] == "judge":
        judge(arguments[1:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
