#!/usr/bin/env python3
"""Runs clang-tidy-14 over the plain half (layers_test.PLAIN), one file on each core; .clang-tidy selects the checks.

The tensor half is left out, because clang-tidy takes a minute for a file that includes libtorch. Errors of clang's own
front end do not count as findings: g++ 12 decides what compiles, and clang 14 does not understand all of g++'s standard
library. build/lint stores a hash for each file that passed: of the file, the headers that it includes and .clang-tidy.
"""
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

from layers_test import PLAIN

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATABASE = ROOT / "build/lint"
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
FINDING = re.compile(r"^(\S+:\d+:\d+): \w+: (.*) \[((?:bugprone|performance|readability)-[^\]]*)\]$", re.MULTILINE)


def write_database():
    """Writes the compile commands of the `plain` preset with clang 14's options (c++2b, no ccache)."""
    subprocess.run(["cmake", "--preset", "plain"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    commands = json.loads((ROOT / "build/plain/compile_commands.json").read_text())
    for entry in commands:
        words = entry["command"].split()
        compiler = next(i for i, word in enumerate(words) if re.search(r"(g\+\+|c\+\+)(-\d+)?$", word))
        entry["command"] = " ".join(words[compiler:]).replace("-std=c++23", "-std=c++2b")
    DATABASE.mkdir(parents=True, exist_ok=True)
    (DATABASE / "compile_commands.json").write_text(json.dumps(commands))
    return sorted({pathlib.Path(entry["file"]) for entry in commands})


def findings(path):
    """Returns the findings of one file as lines. A failure of clang-tidy itself is a finding, too."""
    done = subprocess.run(
        ["clang-tidy-14", "-p", str(DATABASE), "--quiet", "--extra-arg=-D__cpp_concepts=202002L",
         "--extra-arg=-Wno-everything", "--extra-arg=-ferror-limit=0", str(path)],
        capture_output=True, text=True)
    if done.returncode < 0 or done.returncode > 1:
        return [f"{path}: clang-tidy ended with {done.returncode}: {done.stderr.strip()[-300:]}"]
    found = {f"{place}: {what} [{check.split(',')[0]}]" for place, what, check in FINDING.findall(done.stdout)}
    return sorted(line.replace(f"{ROOT}/", "") for line in found)


@functools.cache
def included(path):
    """Returns the file and every header of the project that it includes, directly or not."""
    seen = {path}
    for name in INCLUDE.findall(path.read_text()):
        header = ROOT / "src" / name
        if header.exists():
            seen |= included(header)
    return frozenset(seen)


def stamp(path):
    seen = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    for part in sorted(included(path)):
        seen.update(part.read_bytes())
    return seen.hexdigest()


def is_linted(path):
    return path.parent.parent == ROOT / "src" and path.parent.name in PLAIN and not re.search(r"_(test|bench|fuzz)\.cpp$", path.name)


def main():
    files = [path for path in write_database() if is_linted(path) and path.exists()]
    passed = {}  # for each file, the stamp() that it had when it last passed
    memory = DATABASE / "passed.json"
    if memory.exists():
        passed = json.loads(memory.read_text())
    stamps = {path: stamp(path) for path in files}
    todo = [path for path in files if passed.get(str(path)) != stamps[path]]
    print(f"{len(todo)} of {len(files)} files changed since they passed", flush=True)
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        for path, found in zip(todo, pool.map(findings, todo)):
            for line in found:
                print(line, flush=True)
            bad += 1 if found else 0
            if not found:
                passed[str(path)] = stamps[path]
                memory.write_text(json.dumps(passed))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
