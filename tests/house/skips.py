#!/usr/bin/env python3
"""Fails naming every skipped test that tests/skips.txt does not allow. Reads ctest's log of the run just made.

    tests/house/skips.py [build/release/Testing/Temporary/LastTest.log]

Knows GoogleTest's and unittest's words. A unittest program that says how many it skipped but not which fails too: run
it with -v.
"""
import fnmatch
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

GTEST = re.compile(r"^\[  SKIPPED \] ([\w./]+\.[\w./]+)", re.MULTILINE)
# "test_a (module.Class.test_a) ... skipped 'why'"; a docstring's first line may stand between.
UNITTEST = re.compile(r"^(\w+) \(([\w.]+)\)(?:\n[^\n]*)? \.\.\. skipped ", re.MULTILINE)
# "setUpClass (module.Class) ... skipped 'why'" is covered by the above: the class counts as one.
UNITTEST_COUNT = re.compile(r"^OK \(.*\bskipped=(\d+)|^FAILED \(.*\bskipped=(\d+)", re.MULTILINE)
CTEST = re.compile(r"^\d+/\d+ Test(?:ing)?: (\S+)$", re.MULTILINE)


def unittest_name(method, place):
    """Class.test of "test (module.Class.test)" (3.11 on) or "test (module.Class)"."""
    words = place.split(".")
    if words[-1] == method:
        words.pop()
    return f"{words[-1]}.{method}"


def skipped_in(log):
    """(names of skipped tests, [(program, sentence)] of what could not be told)."""
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
        suite = re.sub(r"^\w+/", "", name)  # All/Suite.Test/0 is of Suite
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
