#!/usr/bin/env python3
"""Predicts with the model.onnx beside this file. Needs onnxruntime and numpy; images also need pillow.

    python predict.py DATA [...]      prints one line for each sample: sample,prediction[,probability]
    python predict.py --check         compares onnxruntime with the numbers of the trained model, which check.json holds

DATA is what the model was trained on: a .csv, .tsv or .jsonl table, image files or folders of them, a .npy array, an IDX
file or a text file. The graph prepares the samples itself; this script only reads them.
"""
import argparse
import csv
import datetime
import gzip
import json
import math
import os
import pathlib
import re
import signal
import struct
import sys

import numpy
import onnxruntime

HERE = pathlib.Path(__file__).resolve().parent
MISSING = {"", "?", "NA", "na", "NaN", "nan", "N/A", "n/a", "NAN", "#NA", "NULL", "null", "None", "<NA>", "#N/A",
           "-NaN", "-nan", "-1.#IND", "1.#QNAN", "1.#IND", "-1.#QNAN", "#N/A N/A"}
IMAGES = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".bmp", ".dib", ".tif", ".tiff"}
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
NUMPY_TYPES = {"tensor(float)": "float32", "tensor(double)": "float64", "tensor(string)": "object", "tensor(bool)": "bool"}


def numpy_type(port):
    return numpy.dtype(NUMPY_TYPES.get(port.type, port.type[7:-1]))


class Model:
    """The model with the facts that the file holds about it."""

    def __init__(self, path):
        self.session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        facts = self.session.get_modelmeta().custom_metadata_map
        self.input = json.loads(facts["sinew.input"])
        self.outputs = json.loads(facts["sinew.outputs"])
        self.classes = json.loads(facts.get("sinew.classes", "[]"))
        self.scale = json.loads(facts.get("sinew.target_std", "[1]"))

    def run(self, inputs):
        return dict(zip((port.name for port in self.session.get_outputs()), self.session.run(None, inputs)))

    def results(self, inputs):
        """Yields the prediction of each sample, with its probability if the model has classes."""
        made = self.run(inputs)
        if "prediction" in self.outputs:
            for numbers in made[self.outputs["prediction"]]:
                yield [repr(float(number)) for number in numpy.atleast_1d(numbers)]
        else:
            place = {name: i for i, name in enumerate(self.classes)}
            for label, probabilities in zip(made[self.outputs["label"]], made[self.outputs["probabilities"]]):
                yield [label, repr(float(probabilities[place[label]]))]


def number_of(text, column):
    if column.get("unit"):
        negative = text.startswith("-")
        text = text.lstrip("-").replace(column["unit"], "").strip(" \u00a0\u202f")
        text = "-" + text if negative else text
    thousands = column.get("thousands", "")
    for mark in {" ": " \u00a0\u202f\u2009", "'": "'\u2019"}.get(thousands, thousands):
        text = text.replace(mark, "")
    return float(text.replace(column.get("decimal", "."), "."))


def date_of(text, form):
    """Returns seconds since 1970."""
    patterns = {"iso": r"(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})",
                "day_first": r"(?P<d>\d{1,2})[-/.](?P<m>\d{1,2})[-/.](?P<y>\d{4}|\d{2})",
                "month_first": r"(?P<m>\d{1,2})[-/.](?P<d>\d{1,2})[-/.](?P<y>\d{4}|\d{2})",
                "compact": r"(?P<y>\d{4})(?P<m>\d{2})(?P<d>\d{2})"}
    named = [r"(?P<d>\d{1,2})[-./]? *(?P<m>[A-Za-z]+)[-.,/]? *(?P<y>\d{4}|\d{2})",
             r"(?P<m>[A-Za-z]+)\.? *(?P<d>\d{1,2}),? *(?P<y>\d{4}|\d{2})"]
    time = (r"(?:[T ] *(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2})(?:[.,](?P<f>\d+))?)? *(?P<half>[AaPp][Mm])? *"
            r"(?:[Zz]|UTC|GMT|(?P<sign>[-+])(?P<oh>\d{2}):?(?P<om>\d{2})?)?)?")
    for pattern in named if form == "named" else [patterns[form]]:
        found = re.fullmatch(pattern + time, text)
        if found:
            break
    else:
        raise ValueError(f"'{text}' is no date of the form {form}")
    year = int(found["y"])
    if len(found["y"]) == 2:
        year += 2000 if year < 69 else 1900
    month = int(found["m"]) if found["m"].isdigit() else MONTHS.index(found["m"][:3].lower()) + 1
    seconds = (datetime.date(year, month, int(found["d"])) - datetime.date(1970, 1, 1)).days * 86400.0
    if found["H"]:
        hour = int(found["H"])
        if found["half"]:
            hour = hour % 12 + (12 if found["half"].lower() == "pm" else 0)
        seconds += hour * 3600 + int(found["M"]) * 60 + int(found["S"] or 0) + float("0." + (found["f"] or "0"))
        if found["sign"]:
            offset = int(found["oh"]) * 3600 + int(found["om"] or 0) * 60
            seconds -= offset if found["sign"] == "+" else -offset
    return seconds


def cell(value, column):
    """Turns a cell of the file into what the graph takes."""
    if column["cells"] in ("word", "boolean"):
        return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    if value is None or (isinstance(value, str) and value in MISSING):
        return math.nan
    if isinstance(value, (int, float)):
        return float(value)
    return date_of(value, column["date_form"]) if column["cells"] == "date" else number_of(value, column)


def read_table(path, columns):
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    else:
        text = path.read_text(encoding="utf-8-sig")
        first = text.splitlines()[0] if text else ""
        separator = max("\t;|,", key=first.count)
        rows = list(csv.DictReader(text.splitlines(keepends=True), delimiter=separator, skipinitialspace=True))
        rows = [{key.strip(): value.strip() if value else "" for key, value in row.items() if key} for row in rows]
    inputs = {}
    for column in columns:
        words = column["cells"] in ("word", "boolean")
        try:
            cells = [cell(row.get(column["name"]), column) for row in rows]
        except ValueError as problem:
            sys.exit(f"{path}: column '{column['name']}': {problem}")
        if rows and column["name"] not in rows[0] and path.suffix != ".jsonl":
            sys.exit(f"{path}: has no column '{column['name']}'")
        inputs[column["name"]] = numpy.array(cells, dtype=object if words else numpy.float64)
    return [f"{path.name}:{number + 2}" for number in range(len(rows))], inputs


def read_images(paths, facts):
    from PIL import Image, ImageOps

    files = []
    for path in paths:
        found = sorted(p for p in path.rglob("*") if p.suffix.lower() in IMAGES)
        files += found if path.is_dir() else [path]
    height, width, channels = facts["shape"]
    pixels = []
    for file in files:
        image = ImageOps.exif_transpose(Image.open(file)).convert("L" if channels == 1 else "RGB")
        if image.size != (width, height):
            if not facts.get("resize"):
                sys.exit(f"{file} is {image.size[0]} x {image.size[1]}, but the model takes {width} x {height}")
            image = image.resize((width, height), Image.BILINEAR)
        pixels.append(numpy.asarray(image, dtype=numpy.uint8).reshape(height, width, channels))
    return [str(file) for file in files], {facts["name"]: numpy.stack(pixels)}


def read_array(path, facts, dtype):
    if path.suffix == ".npy":
        array = numpy.load(path)
    else:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        kinds = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
        dims = struct.unpack(f">{data[3]}I", data[4:4 + 4 * data[3]])
        array = numpy.frombuffer(data, dtype=kinds[data[2]], offset=4 + 4 * data[3]).reshape(dims)
    shape = tuple(facts["shape"])
    if array.shape[1:] != shape:
        turned = facts.get("channels_last") and array.ndim == 4 and (*array.shape[2:], array.shape[1]) == shape
        if turned:
            array = array.transpose(0, 2, 3, 1)
        elif array[:1].size == math.prod(shape):
            array = array.reshape(-1, *shape)
        else:
            sys.exit(f"{path}: its samples have the shape {array.shape[1:]}, but the model takes {shape}")
    return [f"{path.name}[{i}]" for i in range(len(array))], {facts["name"]: array.astype(dtype)}


def read_text(path, facts):
    window = facts["shape"][0]
    data = path.read_bytes()
    codes = list(data) if facts.get("bytes") else [ord(c) for c in data.decode("utf-8")]
    count = len(codes) // window
    names = [f"{path.name} at {'byte' if facts.get('bytes') else 'character'} {i * window}" for i in range(count)]
    return names, {facts["name"]: numpy.array(codes[:count * window], dtype=numpy.int64).reshape(count, window)}


def check(model):
    """Compares the outputs for the samples of check.json with those of the trained model."""
    expected = json.loads((HERE / "check.json").read_text())

    def array(part):
        if "texts" in part:
            return numpy.array(part["texts"], dtype=object)
        return numpy.frombuffer(bytes.fromhex(part["hex"]), dtype=part["dtype"]).reshape(part["shape"])

    inputs = {name: array(part) for name, part in expected["inputs"].items()}
    wanted = {name: array(part) for name, part in expected["outputs"].items()}
    count = len(next(iter(inputs.values())))
    worst = 0.0
    for batch in (count, 1):  # all samples at once, then one by one
        for first in range(0, count, batch):
            made = model.run({name: values[first:first + batch] for name, values in inputs.items()})
            for name, values in wanted.items():
                values, got = values[first:first + batch], made[model.outputs[name]]
                if name == "label":
                    continue
                scale = numpy.array(model.scale) if name == "prediction" and values.ndim > 1 else (
                    model.scale[0] if name == "prediction" else 1)
                difference = numpy.abs(got - values) / scale
                worst = max(worst, float(difference.max()) if not numpy.isnan(difference).any() else math.inf)
    good = worst <= 1e-4
    print(f"{count} samples, largest difference {worst:.3g}: {'equal' if good else 'NOT EQUAL'} to the trained model")
    return 0 if good else 4


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", type=pathlib.Path)
    parser.add_argument("--check", action="store_true", help="compare onnxruntime with the trained model")
    parser.add_argument("--batch", type=int, default=64, help="samples at once")
    options = parser.parse_args()
    model = Model(HERE / "model.onnx")
    if options.check:
        return check(model)
    if not options.data:
        parser.error("give data, or --check")
    facts, path = model.input, options.data[0]
    if facts["kind"] == "table":
        names, inputs = read_table(path, facts["columns"])
    elif facts["kind"] == "images" and path.suffix not in (".npy", ".gz") and (
            path.is_dir() or path.suffix.lower() in IMAGES):
        names, inputs = read_images(options.data, facts)
    elif facts["kind"] == "text":
        names, inputs = read_text(path, facts)
    else:
        names, inputs = read_array(path, facts, numpy_type(model.session.get_inputs()[0]))
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["sample", "prediction"] + (["probability"] if "label" in model.outputs else []))
    for first in range(0, len(names), options.batch):
        batch = {name: values[first:first + options.batch] for name, values in inputs.items()}
        for name, row in zip(names[first:], model.results(batch)):
            out.writerow([name, *row])
    return 0


if __name__ == "__main__":
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output, such as head, has ended; Python must not flush at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 128 + signal.SIGPIPE
    sys.exit(code)
