#!/usr/bin/env python3
"""Fails, and names every skipped test that tests/skips.txt does not allow. Reads ctest's log of the last run.

    tests/house/skips.py [build/release/Testing/Temporary/LastTest.log]

It reads the output of GoogleTest and unittest. A unittest program that prints how many tests it skipped, but not which,
fails as well: run it with -v.
"""
import fnmatch
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

GTEST = re.compile(r"^\[  SKIPPED \] ([\w./]+\.[\w./]+)", re.MULTILINE)
# Matches "test_a (module.Class.test_a) ... skipped 'why'". The first line of the test's docstring may precede "...".
UNITTEST = re.compile(r"^(\w+) \(([\w.]+)\)(?:\n[^\n]*)? \.\.\. skipped ", re.MULTILINE)
# The pattern above also matches "setUpClass (module.Class) ... skipped 'why'": the class counts as one test.
UNITTEST_COUNT = re.compile(r"^OK \(.*\bskipped=(\d+)|^FAILED \(.*\bskipped=(\d+)", re.MULTILINE)
CTEST = re.compile(r"^\d+/\d+ Test(?:ing)?: (\S+)$", re.MULTILINE)


def unittest_name(method, place):
    """Returns Class.test for "test (module.Class.test)" (Python 3.11 and later) or "test (module.Class)"."""
    words = place.split(".")
    if words[-1] == method:
        words.pop()
    return f"{words[-1]}.{method}"


def skipped_in(log):
    """Returns the names of skipped tests, and (program, message) for each program that does not name them all."""
    names, unclear = set(), []
    pieces = CTEST.split(log)
    for program, text in zip(pieces[1::2], pieces[2::2]):
        names.update(GTEST.findall(text))
        named = [unittest_name(*found) for found in UNITTEST.findall(text)]
        names.update(named)
        count = sum(int(a or b) for a, b in UNITTEST_COUNT.findall(text))
        if count > len(named):
            unclear.append((program, f"{program}: skipped {count} tests and names {len(named)}; run it with unittest's -v"))
        if re.search(r"^Test Skipped\.$", text, re.MULTILINE) or "***Skipped" in text:
            names.add(program)
    return names, unclear


def patterns_in(text):
    return [line.split()[0] for line in text.splitlines() if line.strip() and not line.startswith("#")]


def main(arguments):
    log = pathlib.Path(arguments[0]) if arguments else ROOT / "build/release/Testing/Temporary/LastTest.log"
    if not log.exists():
        print(f"skips: no {log}: run the tests first", file=sys.stderr)
        return 1
    allowed = patterns_in((ROOT / "tests/skips.txt").read_text())
    names, unclear = skipped_in(log.read_text(errors="replace"))
    def may(name):
        suite = re.sub(r"^\w+/", "", name)  # All/Suite.Test/0 belongs to Suite
        return any(fnmatch.fnmatchcase(suite, pattern) for pattern in allowed)

    bad = sorted(name for name in names if not may(name))
    unclear = [(program, sentence) for program, sentence in unclear if not may(program)]
    for name in bad:
        print(f"skips: {name} was skipped and is not in tests/skips.txt", file=sys.stderr)
    for _, sentence in unclear:
        print(f"skips: {sentence}", file=sys.stderr)
    if names and not bad and not unclear:
        print(f"skips: {len(names)} tests skipped, all allowed by tests/skips.txt")
    return 1 if bad or unclear else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
