"""Opens a run directory with the real tensorboard package and compares it with metrics.jsonl.

usage: tensorboard_check.py RUN_DIRECTORY [--hparam NAME=VALUE ...] [--status SUCCESS|FAILURE]

Needs the package tensorboard (no TensorFlow). Reads with three readers: the accumulator that scripts use, the one that
the server uses, and the server's hparams plugin. Exit code 0: all agree with the file to float precision. report_test
runs it if SINEW_PYTHON names a Python that has the package.
"""
import argparse
import json
import logging
import math
import struct
import sys

from tensorboard.backend.event_processing import event_accumulator, plugin_event_accumulator
from tensorboard.plugins.hparams import metadata
from tensorboard.util import tensor_util

ALL = {"scalars": 0, "tensors": 0}


def single(value):
    """Returns the value rounded to float32, as the event file has it."""
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def expected_scalars(directory):
    """Returns the values of metrics.jsonl as tag -> {step: value}."""
    scalars = {}
    with open(f"{directory}/metrics.jsonl", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            step = record.pop("step")
            del record["samples"], record["time"]
            for tag, value in record.items():
                scalars.setdefault(tag, {})[step] = single(float(value))
    return scalars


def scalars_of_scripts(directory):
    events = event_accumulator.EventAccumulator(directory, size_guidance=ALL)
    events.Reload()
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def server_accumulator(directory):
    events = plugin_event_accumulator.EventAccumulator(directory, size_guidance=ALL, tensor_size_guidance={"scalars": 0})
    events.Reload()
    return events


def scalars_of_server(events):
    tags = events.PluginTagToContent("scalars")
    return {tag: [(e.step, tensor_util.make_ndarray(e.tensor_proto).item()) for e in events.Tensors(tag)] for tag in tags}


def same(a, b):
    return a == b or (math.isnan(a) and math.isnan(b))


def differences(name, found, expected):
    problems = [f"{name}: no tag {tag}" for tag in expected.keys() - found.keys()]
    problems += [f"{name}: unexpected tag {tag}" for tag in found.keys() - expected.keys()]
    for tag in expected.keys() & found.keys():
        points = dict(found[tag])
        if len(points) != len(found[tag]):
            problems.append(f"{name}: {tag} has a step twice")
        if points.keys() != expected[tag].keys():
            problems.append(f"{name}: {tag} has other steps: {sorted(points.keys() ^ expected[tag].keys())[:5]}")
        problems += [
            f"{name}: {tag} at {step} is {points[step]}, not {value}"
            for step, value in expected[tag].items()
            if step in points and not same(points[step], value)
        ]
    return problems


def hparams_problems(events, wanted, status):
    try:
        contents = events.PluginTagToContent("hparams")
    except KeyError:
        contents = {}
    if metadata.SESSION_START_INFO_TAG not in contents:
        return ["hparams: no session_start_info"] if wanted else []
    start = metadata.parse_session_start_info_plugin_data(contents[metadata.SESSION_START_INFO_TAG])
    found = {name: getattr(value, value.WhichOneof("kind")) for name, value in start.hparams.items()}
    problems = []
    for name, text in wanted.items():
        value = found.get(name)
        shown = str(value).lower() if isinstance(value, bool) else value
        if shown != text and not (isinstance(value, float) and value == float(text)):
            problems.append(f"hparams: {name} is {value!r}, not {text}")
    if status:
        if metadata.SESSION_END_INFO_TAG not in contents:
            return problems + ["hparams: no session_end_info"]
        end = metadata.parse_session_end_info_plugin_data(contents[metadata.SESSION_END_INFO_TAG])
        if end.status != {"SUCCESS": 1, "FAILURE": 2}[status]:
            problems.append(f"hparams: status is {end.status}, not {status}")
    return problems


def main():
    logging.getLogger("tensorboard").setLevel(logging.ERROR)  # hides messages about points that a resume purges
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("directory")
    arguments.add_argument("--hparam", action="append", default=[], metavar="NAME=VALUE")
    arguments.add_argument("--status", choices=["SUCCESS", "FAILURE"])
    given = arguments.parse_args()
    expected = expected_scalars(given.directory)
    server = server_accumulator(given.directory)
    problems = differences("scripts", scalars_of_scripts(given.directory), expected)
    problems += differences("server", scalars_of_server(server), expected)
    problems += hparams_problems(server, dict(pair.split("=", 1) for pair in given.hparam), given.status)
    for problem in problems:
        print(problem)
    points = sum(len(steps) for steps in expected.values())
    print(f"{len(expected)} tags, {points} points, {len(problems)} differences")
    return 1 if problems or not points else 0


if __name__ == "__main__":
    sys.exit(main())
