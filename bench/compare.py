"""Measures Sinew and its peers in one run, in turns. Writes docs/benchmarks.md and docs/benchmarks.json.

usage: compare.py [quick] [NAME ...]     NAME: a row to measure (default: all); `page`: only writes the page again
A row is a function that takes a scratch folder and `quick` and returns figures. A row that is not measured keeps its
old figures on the page, with the day and the CPU of that measurement.
"""
import datetime
import json
import os
import platform
import sys
import tempfile
import time

import budgets
import check_faults
import cold
import contestants
import costs
import elastic
import fits
import floor
import hostile
import kernels
import limits
import pipeline
import plans
import programs
import search
import tables
import throughput
from figures import verdict, written

SECTIONS = {
    "Throughput": ["mlp", "mlp64", "cnn", "cnn-auto", "resnet", "csv"],
    "Kernels": ["kernels"],
    "Input pipeline": ["photos", "pixels", "memory"],
    "Tables": ["tables"],
    "Checks of a job": ["check"],
    "Plans and budgets": ["plans", "budgets"],
    "What limits a run": ["limits"],
    "Memory limits": ["fits"],
    "Models brought as .pt2": ["programs"],
    "What starting, saving and logging cost": ["startup", "checkpoint", "logging", "accounting"],
    "Store and server": ["store", "server", "hostile"],
    "Search": ["search", "warm", "stopping", "fronts", "suggestions"],
    "A first visit": ["cold", "wheel"],
    "Workers that come and go": ["deaths", "stopped", "crowded", "stragglers", "torchrun", "join", "ddp", "strangers", "reduction", "comparison"],
}
ROWS = {
    "mlp": throughput.mlp, "mlp64": throughput.mlp64, "cnn": throughput.cnn, "cnn-auto": throughput.cnn_auto,
    "resnet": throughput.resnet, "csv": throughput.csv,
    "kernels": kernels.kernels,
    "photos": pipeline.photos, "pixels": pipeline.pixels, "memory": pipeline.memory,
    "tables": tables.tables,
    "check": check_faults.faults,
    "plans": plans.plans, "budgets": budgets.budgets,
    "limits": limits.limits,
    "fits": fits.fits,
    "programs": programs.programs,
    "search": search.search, "warm": search.warm, "stopping": search.stopping, "fronts": search.fronts, "suggestions": search.suggestions,
    "startup": costs.startup, "checkpoint": costs.checkpoint, "logging": costs.logging, "accounting": costs.accounting,
    "store": floor.store, "server": floor.server, "hostile": hostile.hostile,
    "cold": cold.cold, "wheel": cold.wheel,
    "deaths": elastic.deaths, "stopped": elastic.stopped, "crowded": elastic.crowded, "stragglers": elastic.stragglers,
    "torchrun": elastic.torchrun_death, "join": elastic.join, "ddp": elastic.ddp,
    "strangers": elastic.strangers, "reduction": elastic.reduction, "comparison": elastic.comparison,
}
NOTES = {
    "Throughput": "Ratios: samples a second of Sinew over the peer's, the median over rounds in which contestants take turns; "
                  "steady state, the start left out; the rates beside a ratio are medians of their own. PyTorch and "
                  "Lightning run on as many threads as there are cores, Sinew and the bare loop on two lanes.",
    "Input pipeline": "One thread on one core loads batches of 64 in random order: decoded, scaled to 224 x 224, normalised. The files are in the page cache. "
                      "Ratios: samples a second of Sinew over the peer's, the median over rounds in which both take turns. The 50 GB are tars with holes: "
                      "they take no space on the disk, but are read and cached like others.",
    "Kernels": "Ratios: the time of libtorch's kernel over that of the one that takes its place (`src/model/vision_kernels.h`), the medians of rounds in "
               "which both take turns, on 16 images (the usual shard of a batch of 128).",
    "Tables": "Rank 1 is best. scikit-learn's MLP gets standardised inputs and targets; tuned: the best of 30 random trials. "
              "Measured: `sinew init TABLE --time-limit TIME`, then `sinew train` and `sinew predict`. The target is the better rank of "
              "HistGradientBoosting with its defaults and of the tuned MLP. The tables come with scikit-learn, statsmodels and vega_datasets, "
              "and from $SINEW_DATA.",
    "Checks of a job": "`sinew check` on 30 jobs with one planted fault each and on 20 sound ones (`bench/check_faults.py`). A fault is found if a "
                       "finding that fails or warns names it; any such finding on a sound job is a false alarm.",
    "Plans and budgets": "`sinew plan` of random jobs of all built-in models, then their training (`bench/plans.py`). Budgets: `sinew train` of "
                         "random jobs with a random `budget.time`, two at a time, beside programs that take the processors at random "
                         "(`bench/budgets.py`). The time is that of the whole process.",
    "What limits a run": "Limits planted from outside in trainings (`bench/limits.py`): slow files, slow decoding, other programs, CPU quotas, a "
                         "slow worker, a slow link, slow checkpoints, and jobs that limit themselves. `sinew advise` names the limit and predicts "
                         "what its remedy gains, before the training is measured without the limit.",
    "Memory limits": "`sinew train` of random jobs in control groups with a random limit (`bench/fits.py`), from a third of what they need "
                     "with their usual shards, and the same budget.memory. The best that fits: of all numbers of lanes with the chosen "
                     "shards, each trained under the same limit. An out-of-memory kill of a trial is none of a run.",
    "Models brought as .pt2": "Plain loops on one thread, forward to fused AdamW, in turns; nothing of the step contract.",
    "Search": "Regret: how far the best value is from the minimum, over what random search with as many trials has (the median "
              "of 101): 1 is no better than chance, 0 perfect. Peers are asked the same functions by the same program.",
    "Workers that come and go": "Computing again: a kill hits the step under way or the one after it; when the late one of these "
                                "stands in the ledger, looked at every millisecond, the group computes again.",
}
STORE = contestants.ROOT / "docs/benchmarks.json"
PAGE = contestants.ROOT / "docs/benchmarks.md"


def cpu():
    model = platform.machine()
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {len(os.sched_getaffinity(0))} cores"


def line(fig):
    target = "" if fig["target"] is None else f"{'<=' if fig['low'] else '>='} {fig['target']:g}"
    return f"| {fig['what']} | {written(fig['value'])} | {target} | {verdict(fig)} | {fig['detail']} |"


def page(kept):
    lines = ["# Benchmarks", "", "Written by `./dev bench`; run it to get your own. `./dev bench quick NAME ...` measures only some rows."]
    for section, names in SECTIONS.items():
        lines += ["", f"## {section}", ""] + ([NOTES[section], ""] if section in NOTES else [])
        measured = [name for name in names if name in kept]
        if measured:
            lines += ["| what | measured | target | | |", "|---|---|---|---|---|"]
            lines += [line(fig) for name in measured for fig in kept[name]["figures"]] + [""]
        lines += [f"- `{name}`: {kept[name]['day']}, {kept[name]['cpu']}{', quick' if kept[name]['quick'] else ''}" for name in measured]
        missing = [f"`{name}`" for name in names if name not in kept]
        lines += [f"- not measured yet: {', '.join(missing)}"] if missing else []
    return "\n".join(lines) + "\n"


def main(words):
    unknown = [word for word in words if word not in ROWS and word not in ("quick", "page")]
    if unknown:
        sys.exit(f"no row named {', '.join(unknown)}; there are: {', '.join(ROWS)}")
    quick, kept, failed = "quick" in words, json.loads(STORE.read_text()) if STORE.exists() else {}, []
    names = [] if "page" in words else [word for word in words if word in ROWS] or list(ROWS)
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            began = time.monotonic()
            try:
                figures = ROWS[name](folder, quick)
            except Exception as trouble:  # a row that fails does not stop the other rows
                print(f"{name}: {trouble}", file=sys.stderr, flush=True)
                failed.append(name)
                continue
            kept[name] = {"day": datetime.date.today().isoformat(), "cpu": cpu(), "quick": quick, "figures": figures}
            print(f"== {name}, {time.monotonic() - began:.0f} s", *map(line, figures), sep="\n", flush=True)
            STORE.write_text(json.dumps({row: kept[row] for row in ROWS if row in kept}, indent=1) + "\n")
            PAGE.write_text(page(kept))
    PAGE.write_text(page(kept))
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main(sys.argv[1:])
