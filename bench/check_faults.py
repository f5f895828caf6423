"""Measures how `sinew check` judges: 30 jobs with one planted fault each, and 20 sound ones.

usage: check_faults.py [WORD ...]     only the jobs whose names have one of the words; prints one line for each job
A fault is found if a finding that fails or warns names it. A false alarm is a sound job with a finding that fails or warns.
"""
import pathlib
import sys
import tempfile

from check_place import Place
from check_planted import FAULTS
from check_sound import SOUND
from figures import figure, percentile

MOST_MISSED, MOST_ALARMS = 2, 1


def text(findings):
    return "; ".join(f"{one['verdict']} {one['check']}.{one['cause']}" for one in findings) or "nothing"


def try_one(folder, number, name, write, causes):
    """Returns whether the check judged well, and how long it took. causes: those that name the fault; None: a sound job."""
    place = Place(pathlib.Path(folder) / str(number))
    write(place)
    checks, seconds = place.check()
    findings = [one for one in checks if one["verdict"] not in ("pass", "skip")]
    if causes is None:
        good = not findings
    else:
        good = any(one["cause"] in causes for one in findings)
    word = ("quiet" if good else "ALARM") if causes is None else "found" if good else "MISSED"
    print(f"{word:6} {name:45} {seconds:5.1f} s  {text(findings)}", *[f"           {one['what']}" for one in findings if not good],
          sep="\n", flush=True)
    return good, seconds


def measure(folder, words=()):
    """Returns whether each fault was found, whether each sound job was left alone, and all seconds."""
    chosen = [(name, write, causes) for name, (write, causes) in FAULTS.items()] + [(name, write, None) for name, write in SOUND.items()]
    chosen = [one for one in chosen if not words or any(word in one[0] for word in words)]
    found, quiet, took = [], [], []
    for number, (name, write, causes) in enumerate(chosen):
        good, seconds = try_one(folder, number, name, write, causes)
        (quiet if causes is None else found).append(good)
        took.append(seconds)
    return found, quiet, took


def faults(folder, quick):
    """The row `check` of compare.py; there is no quick version, because every job counts."""
    del quick
    found, quiet, took = measure(pathlib.Path(folder) / "check")
    return [
        figure(f"planted faults that `sinew check` names, of {len(found)}", sum(found), len(found) - MOST_MISSED),
        figure(f"false alarms on {len(quiet)} sound jobs", len(quiet) - sum(quiet), MOST_ALARMS, low=True),
        figure("seconds of a check, median", percentile(took, 0.5), detail=f"the longest {max(took):.1f}"),
    ]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        FOUND, QUIET, TOOK = measure(scratch, sys.argv[1:])
    print(f"found {sum(FOUND)} of {len(FOUND)} faults; {len(QUIET) - sum(QUIET)} false alarms on {len(QUIET)} sound jobs; "
          f"{sum(TOOK):.0f} s in total")
