"""Tries messy data, as people have it: `sinew init`, a short `sinew train` and `sinew predict` on each file.

usage: messy_files.py [WORD ...] [--after NAME] [--keep DIR] [--full]    only the files whose names have one of the words, and behind NAME
Each must succeed, or end in an error of one sentence that names the place and has a cure that works. Every row and column that is not
used must be counted or named in the output. A cure is tried: the command or the option that the hint names. --keep leaves the files and
all output in DIR; --full prints the output of each that is not good. ${SINEW_DATA} adds the real files of that folder.
"""
import argparse
import csv
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

from contestants import SINEW
from messy_others import OTHERS
from messy_pictures import PICTURES
from messy_place import Messy
from messy_tables import TABLES

SHORT = ("trainer.max_duration=2st", "trainer.lanes=1")
PATIENCE = 60
CODE = re.compile(r"^(sinew[\w -]*: .*) \[([A-Z][A-Z0-9_]+)\]$", re.M)
HINT = re.compile(r"^  try: (.*)$", re.M)
KIND = r"number|code|category|boolean|date|text|identifier|constant|empty|target|ignored"
OPTION = re.compile(r"\b(data\.[a-z_.]+): (?!the\b)([a-z_0-9]+)")
COUNTED = re.compile(r"^(\d+) \S.*? (?:is|are) left out\b|^\S+: (\d+) (?:files?|images?) (?:is|are) left out\b|^(\d+) samples? cannot be decoded", re.M)
INNER = re.compile(r"json\.exception|syntax error while|std::|terminate called|Assertion|Traceback")
LONGEST = 600  # characters of a sentence or a hint
FAR = ("DATA_", "TRAIN_SHARD_FAILED", "ARGUMENT_", "SPEC_", "JOB_", "PREDICT_", "MODEL_")


def real_files():
    """The tables, the sentences (without header) and the text of ${SINEW_DATA}, which nobody made messy."""
    found, folder = {}, pathlib.Path(os.environ.get("SINEW_DATA", "/nowhere"))
    for path in sorted(folder.glob("tabular/*.csv")):
        with open(path, newline="", encoding="utf-8") as file:
            names, *lines = csv.reader(file)
        found[f"real_{path.stem}"] = Messy(f"{path.name}, as it is", path.read_bytes(), target=names[-1], rows=len(lines), columns=tuple(names))
    for path in sorted(folder.glob("sst2/*.tsv")):
        found[f"real_sst2_{path.stem}"] = Messy("sentences, no header", path.read_bytes(), data="data.tsv", target=None,
                                                rows=len(path.read_bytes().splitlines()))
    for path in sorted(folder.glob("text/*.txt")):
        found[f"real_{path.stem}"] = Messy("a text", path.read_bytes()[:20000], data="data.txt", target=None, rows=None)
    return found


def counted(out):
    return sum(int("".join(found)) for found in COUNTED.findall(out))


class Trial:
    """One file: its commands, what they printed, and what is wrong with that."""

    def __init__(self, folder, messy):
        self.folder, self.messy, self.faults, self.log, self.cures = pathlib.Path(folder), messy, [], [], []
        self.silent = False
        self.folder.mkdir(parents=True)
        messy.prepare(self.folder)

    def run(self, *words):
        """Returns the exit code (None: it hung) and the output."""
        try:
            done = subprocess.run([str(SINEW), *map(str, words)], cwd=self.folder, capture_output=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
            code, out = done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace")
        except subprocess.TimeoutExpired:
            code, out = None, ""
        self.log.append(f"$ sinew {shlex.join(map(str, words))}\n{out}exit code {code}\n")
        return code, out

    def fault(self, what, silent=False):
        self.silent |= silent
        if what not in self.faults:
            self.faults.append(what)

    def judge_error(self, code, out):
        """Notes what is wrong with an error. Returns its code and its hint."""
        if code is None:
            self.fault(f"hangs for {PATIENCE} s")
            return None, ""
        if code < 0 or code > 128:
            self.fault(f"ended by signal or crash: {code}")
        found, hint = CODE.findall(out), HINT.findall(out)
        if not found:
            self.fault("no error code")
            return None, ""
        sentence, name = found[-1]
        files = [pathlib.Path(path).name for path in (self.messy.data, self.messy.new) if path]
        if not any(file in sentence for file in [*files, "parts/", "pictures/"]):
            self.fault(f"{name} names no file")
        if not hint:
            self.fault(f"{name} has no hint")
        if "INTERNAL" in name or not name.startswith(FAR):
            self.fault(f"{name} is not about data")
        if len(sentence) > LONGEST or hint and len(hint[-1]) > LONGEST:
            self.fault(f"{name} has {len(sentence)} characters, and its hint {len(hint[-1]) if hint else 0}")
        if INNER.search(sentence):
            self.fault(f"{name} has words of the program's inside")
        return name, hint[-1] if hint else ""

    def init(self, data, target):
        (self.folder / "job.yaml").unlink(missing_ok=True)
        return self.run("init", data, *(["--target", target] if target else []), "-o", "job.yaml")

    def cure(self, hint):
        """Tries the cures of a hint. Returns the output of the first that works, and whether it trained already; else None."""
        command = re.search(r"sinew init (.+?)(?: --target (\S+))?(?:;|,|$)", hint)
        if command and command[2]:
            words = shlex.split(command[0])[1:]
            (self.folder / "job.yaml").unlink(missing_ok=True)
            code, out = self.run(*words, "-o", "job.yaml")
            self.cures.append(f"{'works' if code == 0 else 'FAILS'}: {command[0]}")
            return (out, False) if code == 0 else None
        for key, value in OPTION.findall(hint):
            if not (self.folder / "job.yaml").exists():
                data = {"train": {"path": self.messy.data}, **({"columns": {"target": self.messy.target}} if self.messy.target else {})}
                (self.folder / "job.yaml").write_text(json.dumps({"name": "tried", "data": {**data, "split": {"val": 0.2}}}))
            option = f"{key}={value}"
            code, out = self.train(option)
            self.cures.append(f"{'works' if code == 0 else 'FAILS'}: {option}")
            if code == 0:
                return out, True
        return None

    def train(self, *options):
        name = f"run{len(self.log)}"
        self.last_run = name
        return self.run("train", "job.yaml", *SHORT, *self.messy.job, *options, "--run-dir", name)

    def whole(self):
        """init, train, predict. Returns how it ended, in some words."""
        messy, ended, trained = self.messy, "trained", False
        code, out = self.init(messy.data, messy.target)
        seen = out
        if code != 0 and not messy.job:
            name, cured = self.cured(code, out)
            if messy.works:
                self.fault("refused")
            if not cured or messy.refused:
                return str(name)
            (out, trained), ended = cured, f"{name}, cured"
            seen += out
        elif messy.refused:
            self.fault("accepted")
        if not trained:
            code, out = self.train()
            seen += out
            if code != 0:
                name, cured = self.cured(code, out)
                if not cured:
                    return f"init ok, then {name}"
                out, ended = cured[0], f"init ok, then {name}, cured"
                seen += out
        self.judge_columns(out)
        self.judge_rows(seen)
        return ended + self.predict()

    def judge_words(self):
        """What a person must learn stands somewhere in the output."""
        said = "".join(line for line in "".join(self.log).splitlines(True) if not line.startswith("$ sinew"))
        if self.messy.says and not re.search(self.messy.says, said):
            self.fault(f"nothing says {self.messy.says}", silent="exit code 0" in said)

    def cured(self, code, out):
        """Judges an error and tries its cures. Returns its code, and the output of a cure that works."""
        name, hint = self.judge_error(code, out)
        cured = self.cure(hint) if name else None
        if self.cures and not cured:
            self.fault(f"no cure of {name} works")
        return name, cured

    def judge_columns(self, out):
        kinds = {name: kind for name, kind in re.findall(rf"^(\S.*?) +({KIND})\b", out, re.M)}
        for name in self.messy.columns or ():
            if name not in kinds and f"'{name}'" not in out and name != self.messy.target:
                self.fault(f"column {name!r} is not named", silent=True)
        unread = set(re.findall(r"^(\S.*?) +(?:identifier|text)\b.*its cells look like numbers", out, re.M))
        for name, kind in self.messy.kinds.items():
            if kinds.get(name) != kind and not (kind == "number" and name in unread):
                self.fault(f"{name!r} is {kinds.get(name)}, not {kind}")
        task = re.search(r"^.* target +.*?(classification|regression):", out, re.M)
        if self.messy.task and task and task[1] != self.messy.task:
            self.fault(f"{task[1]}, not {self.messy.task}")

    def judge_rows(self, seen):
        """The rows that init splits, and those that are left out, are those of the file; after a cure, train's share is about 0.8 of them."""
        splits, train = re.search(r"(\d+) training, (\d+) validation, (\d+) test", seen), re.search(r"(\d+) training samples", seen)
        if self.messy.rows is None or not train:
            return
        left = counted(seen[train.start():])
        used = sum(map(int, splits.groups())) if splits else int(train[1])
        wrong = self.messy.rows not in (used, used + left) if splits else abs(used - 0.8 * (self.messy.rows - left)) > 3
        if wrong:
            self.fault(f"{used} of {self.messy.rows} rows used{'' if splits else ' to train'}, {left} counted as left out", silent=True)

    def predict(self):
        messy = self.messy
        code, out = self.run("predict", self.last_run, messy.new or messy.data, "-o", "out.csv")
        if code != 0:
            name, _ = self.judge_error(code, out)
            return f"; predict: {name}"
        with open(self.folder / "out.csv", newline="", encoding="utf-8") as file:
            made = sum(1 for _ in csv.reader(file)) - 1
        wanted = messy.new_rows if messy.new_rows is not None else messy.rows
        left = counted(out)
        if wanted is not None and made + left != wanted:
            self.fault(f"{made} predictions of {wanted} rows, {left} counted as left out", silent=made + left < wanted)
        return ""


def main():
    os.environ.setdefault("SINEW_PYTHON", sys.executable)
    words = argparse.ArgumentParser(usage=__doc__)
    words.add_argument("word", nargs="*")
    words.add_argument("--keep")
    words.add_argument("--after", default="")
    words.add_argument("--full", action="store_true")
    given = words.parse_args()
    known = {**TABLES, **OTHERS, **PICTURES, **real_files()}
    chosen = {name: messy for name, messy in known.items() if not given.word or any(word in name for word in given.word)}
    chosen = dict(list(chosen.items())[list(chosen).index(given.after) + 1 if given.after else 0:])
    good = silent = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name, messy in chosen.items():
            trial = Trial(pathlib.Path(given.keep or scratch) / name, messy)
            began = time.monotonic()
            ended = trial.whole()
            trial.judge_words()
            seconds = time.monotonic() - began
            print(f"{'ok   ' if not trial.faults else 'FAULT'} {name:22} {messy.what:45} {ended:40} {seconds:5.1f} s", flush=True)
            for line in [*trial.faults, *(cure for cure in trial.cures if "FAILS" in cure)]:
                print(f"           {line}")
            (trial.folder / "log.txt").write_text("".join(trial.log))
            if given.full and trial.faults:
                print("".join(f"           | {line}\n" for line in "".join(trial.log).splitlines()), end="")
            good, silent = good + (not trial.faults), silent + trial.silent
    print(f"{good} of {len(chosen)} succeeded or ended in a clear error; {silent} silent drops")
    return 0 if good == len(chosen) else 1


if __name__ == "__main__":
    raise SystemExit(main())
