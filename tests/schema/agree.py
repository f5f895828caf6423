#!/usr/bin/env python3
"""Checks that the JSON Schema and the program accept the same job files.

usage: agree.py SINEW [--sample N] [--each N]

Needs the package `jsonschema`. Takes valid job files from tests/jobs, replaces one value or key at a time by fixed and
random probes, and asks both the schema and the program. Rules between options (`has no effect`, ...) and environment
variables are not part of the schema: an instance that only these rules refuse is counted separately.
"""
import argparse
import copy
import json
import pathlib
import random
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import jsonschema

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Codes of problems that a JSON Schema cannot express: rules between options, and the environment.
NOT_IN_THE_SCHEMA = {
    "SPEC_NO_EFFECT", "SPEC_INCOMPLETE", "SPEC_CONFLICT", "SPEC_BAD_RANGE", "SPEC_BAD_PAIR", "SPEC_UNKNOWN_NAME",
    "SPEC_BAD_TRIAL", "SPEC_BAD_CONDITION", "SPEC_UNSET_VARIABLE", "SPEC_BAD_VARIABLE_VALUE", "COMPARISON_BAD_SYNTAX",
    "SPEC_UNSUPPORTED_DEVICE",
}
CODE = re.compile(r" \[([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\](?= / |$)")

PROBES = [
    None, True, False, 0, 1, 2, 3, 4, -1, 0.5, 1.0, 1.5, 2.0, -0.5, 1e-3, 1e3, 1e9, 1e10, 1e20, 1e-300, 100000, 65536,
    65537, 18446744073709551615, 18446744073709551616, 999999999999999999, 1000000000000000000, "", "a", "auto", "none",
    "never", "no", "yes", "true", "null", "~", "5", "0", "1e3", "012", "a b", "a/b", ".a", "-a", "a.", "a ", " a", "é", "日本",
    "a" * 64, "a" * 65, "x: y", "# x", "'", '"', "\\", "\t", "a\tb", "\x01", "a\nb", "\x7f", "$", "$$", "$$$", "$a", "${A}",
    "${A", "${}", "${1}", "${A:-b}", "${A:-}", "$${A}", "${A:-${B}}", "${A-b}", "10ep", "0ep", "0.5ep", "10 ep", "-1ep",
    "10", "500st", "0.5st", "1.5kst", "1.0005kst", "1.0000kst", "100ksp", "2Mtok", "2Gtok", "2Ttok", "1kep", "30m", "2h",
    "45s", "1d", "1.5h", "0s", "0.1dur", "1dur", "1.1dur", "0dur", "00.0dur", "010ep", ".5ep", "5.ep", "999999999999999st",
    "9999999999999999st", "1e3st", "10EP", "256MiB", "4GiB", "512MB", "100", "100B", "0MiB", "1.5GiB", "1 MiB", "1mb",
    "9999999TiB", "999999TiB", "val/loss", "loss", "a/b/c", "/", "val/", "/x", "val/f1@5", "val/accuracy >= 0.92",
    "val/accuracy>=.92", "val/loss <= -1e-3", "val/loss < 1", "val/loss <= nan", "val/loss <= 01", "val/loss <= 5.",
    " val/loss <= 1 ", "val/loss<=1 x", [], [1], [0], [1, 2], [1.5, 2], [0.5, 0.25], [1, 2, 3], [0.9, 0.999], [0, 1],
    ["a"], ["a", "b"], ["no"], [""], [None], [True], [[1]], ["a", 1], [1] * 64, [1] * 65, [1e7], {}, {"a": 1},
    {"name": "sgd"}, {"name": "cnn"}, {"path": "x"}, {"path": 5}, {"images": "a", "labels": "b"}, {"val": 0.1},
    {"threads": 3}, {"low": 1, "high": 2}, {"low": 0.5, "high": 1.5, "log": True},
    {"low": 1, "high": 2, "step": 0.5}, {"low": 2, "high": 64, "step": 2}, {"low": 1}, {"choices": [1, 2]}, {"choices": [[1], [2, 3]]},
    {"choices": ["relu", "gelu"], "ordered": True}, {"choices": []}, {"choices": [1], "low": 1}, ["relu", "tanh"], [[64], [32, 32]], [1, 1],
    {"low": 1, "high": 2, "if": {}}, {"low": 1, "high": 2, "if": 3}, {"optimizer.lr": [0.1, 0.2]}, {"optimizer.lr": 3}, {"nothing": [1]}, {"memory": "1GiB"}, {"monitor": "val/loss"},
]


OF_COMMANDS = ("command", "workdir", "grace", "params", "env", "resources", "retries", "metrics")

# The search options that the probes cover: some of each kind. If the probes covered all of them, nearly all probes
# would be of search options.
SEARCHED = ("optimizer.lr", "trainer.shards", "model.hidden")


def leaves(schema, path=()):
    """Yields the key path of every section and option of the schema."""
    for branch in [schema] + schema.get("anyOf", []):
        for key, below in branch.get("properties", {}).items():
            if path == ("tune", "search") and key not in SEARCHED:
                continue
            yield path + (key,)
            yield from leaves(below, path + (key,))


def words_of(schema):
    """Returns every choice and default of the schema. They are useful probes, because most options nearly accept them.
    """
    found = []
    if isinstance(schema, dict):
        found += [value for value in schema.get("enum", [])] + ([schema["default"]] if "default" in schema else [])
        for value in schema.values():
            found += words_of(value)
    elif isinstance(schema, list):
        for value in schema:
            found += words_of(value)
    return found


def put(job, path, value):
    """Returns a copy of the job with the value at the path. A section on the path that is no mapping becomes one."""
    job = copy.deepcopy(job)
    level = job
    for key in path[:-1]:
        if not isinstance(level.get(key), dict):
            level[key] = {"path": level[key]} if isinstance(level.get(key), str) and key in ("train", "val", "test") else {}
        level = level[key]
    level[path[-1]] = value
    return job


def instances(schema, each):
    rng = random.Random(1)
    training, command = {"data": {"train": "x"}}, {"command": ["x"]}
    paths = sorted(set(leaves(schema)))
    words = sorted({json.dumps(word) for word in words_of(schema)})
    for path in paths:
        base = command if path[0] in OF_COMMANDS or path == ("budget", "attempt") else training
        for value in PROBES:
            yield put(base, path, value)
        for word in words:
            yield put(base, path, json.loads(word))
        yield put(base, path[:-1] + (path[-1] + "x",), 1)  # an unknown key beside the option
        for _ in range(each):
            yield put(base, path, random_value(rng))
    for key in (("params",), ("env",)):  # these sections accept any names as keys
        for name in ("a", "_", "A1", "1a", "a-b", "", "a.b", "é", "a" * 64, "a" * 65):
            for value in PROBES:
                yield put(command, key, {name: value})
    for value in PROBES:  # probes in place of the whole job, and jobs without the required keys
        yield value
    yield {"data": {}}
    yield {"data": {"format": "auto"}}
    yield {"name": "a"}


def random_value(rng):
    pieces = ["0", "1", "9", ".", "5", "k", "M", "G", "ep", "st", "tok", "s", "m", "h", "d", "dur", "MiB", "kB", "B", "/", "a",
              "val", ">=", "<=", " ", "-", "e", "$", "{", "}", ":-", "_", "@"]
    kind = rng.randrange(6)
    if kind == 0:
        return rng.choice([-1, 1]) * rng.randrange(10 ** rng.randrange(1, 21))
    if kind == 1:
        return rng.uniform(-2, 2) * 10 ** rng.randrange(-12, 12)
    if kind == 2:
        return [rng.uniform(0, 1.2) for _ in range(rng.randrange(4))]
    return "".join(rng.choice(pieces) for _ in range(rng.randrange(1, 6)))


def as_yaml(instance):
    # JSON is YAML. Python also writes NaN and Infinity, which JSON does not have, and the program gets them unchanged.
    return json.dumps(instance, ensure_ascii=True)


def ask_program(sinew, instance):
    """Returns (accepted, refused only by rules between options, output)."""
    done = subprocess.run([sinew, "validate", "-"], input=as_yaml(instance).encode(), capture_output=True, env={}, timeout=60)
    text = done.stderr.decode()
    if done.returncode not in (0, 2):
        sys.exit(f"exit code {done.returncode} for {as_yaml(instance)}: {text}")
    problems = text.splitlines()[:-1]
    codes = [set(CODE.findall(line)) for line in problems]
    if not all(codes):
        sys.exit(f"a problem without a code for {as_yaml(instance)}: {text}")
    rules_only = bool(codes) and all(found <= NOT_IN_THE_SCHEMA for found in codes)
    return done.returncode == 0, rules_only, text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sinew")
    parser.add_argument("--each", type=int, default=20, help="random values a key")
    parser.add_argument("--sample", type=int, default=6000, help="instances asked, drawn with a fixed seed; 0: all")
    options = parser.parse_args()
    schema = json.loads(subprocess.run([options.sinew, "schema"], capture_output=True, check=True).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)

    every = list({as_yaml(instance): instance for instance in instances(schema, options.each)}.values())
    if 0 < options.sample < len(every):
        every = random.Random(2).sample(every, options.sample)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda instance: ask_program(options.sinew, instance), every))
    counts = {"both accept": 0, "both refuse": 0, "only a rule between options refuses": 0, "disagree": 0}
    for instance, (accepted, rules_only, text) in zip(every, answers):
        valid = validator.is_valid(instance)
        if valid == accepted:
            counts["both accept" if valid else "both refuse"] += 1
        elif valid and rules_only:
            counts["only a rule between options refuses"] += 1
        else:
            counts["disagree"] += 1
            if counts["disagree"] <= 20:
                print(f"schema {'accepts' if valid else 'refuses'}, program {'accepts' if accepted else 'refuses'}: "
                      f"{as_yaml(instance)[:200]}\n{text}")
    for name in ("digits", "table", "photos", "text", "search"):
        done = subprocess.run([options.sinew, "validate", str(ROOT / "tests/jobs" / f"{name}.yaml")], env={})
        if done.returncode != 0:
            sys.exit(f"{name}.yaml is refused")
    print(", ".join(f"{name}: {count}" for name, count in counts.items()))
    enough = counts["both accept"] * 20 >= len(every) and counts["both refuse"] * 4 >= len(every)
    sys.exit(0 if counts["disagree"] == 0 and enough else 1)


if __name__ == "__main__":
    main()
