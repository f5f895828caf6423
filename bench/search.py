"""Samplers side by side on the functions of bench/hpo: regret where random search with as many trials has 1."""
import pathlib
import subprocess

import contestants
from figures import figure

PROGRAMS = contestants.BIN
OPTUNA = f"{contestants.PYTHON} {pathlib.Path(__file__).parent / 'optuna_child.py'}"
HARD_LIMIT_S = 4 * 3600


def said(program, **words):
    """What the program printed, line by line, in words."""
    command = [PROGRAMS / program] + [part for key, value in words.items() for part in (f"--{key}", str(value))]
    out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=HARD_LIMIT_S).stdout
    return [line.split() for line in out.splitlines()]


def regrets(samplers, **words):
    """The mean over all functions, the worst function, and all of them, one of each a sampler."""
    lines = said("hpo_regret", samplers=",".join(samplers), child=OPTUNA, **words)
    rows = {line[0]: list(map(float, line[1:])) for line in lines if len(line) == len(samplers) + 1}
    mean = rows.pop("mean")
    rows.pop("seconds")
    return [(mean[k], max(row[k] for row in rows.values()), {name: row[k] for name, row in rows.items()})
            for k in range(len(samplers))]


def search(folder, quick):
    seeds = 3 if quick else 30
    detail = f"ten functions, 100 trials, {seeds} seeds"
    (ours, worst, each), (tpe, _, _), (group, _, _) = regrets(["auto", "@tpe", "@tpe_group"], seeds=seeds)
    mixed = max(each[name] for name in ("svm_surface", "cond3", "nn8"))
    half, _, _ = regrets(["auto"], seeds=seeds, trials=50)[0]
    moved, _, _ = regrets(["auto"], seeds=seeds, variant=3)[0]
    others, _, _ = regrets(["auto"], seeds=seeds, set="own")[0]
    eight, other_eight = (regrets(["auto"], seeds=seeds, workers=8, set=name)[0][0] for name in ("suite", "own"))
    return [figure("regret of `auto`, mean", ours, 0.25, low=True, detail=detail),
            figure("regret of `auto` on its worst function", worst, 0.5, low=True),
            figure("regret of `auto` on the worst of the mixed and conditional ones", mixed, 0.25, low=True),
            figure("regret of Optuna's TPE, mean", tpe, detail=detail),
            figure("regret of Optuna's grouped TPE, mean", group, detail=detail),
            figure("regret of `auto` after 50 trials", half, 0.35, low=True, detail="random search of 50 is 1"),
            figure("regret of `auto` with every minimum moved", moved, 0.25, low=True),
            figure("regret of `auto` on ten other functions, mean", others, 0.25, low=True, detail="stepped, diverging, wide and the like"),
            figure("regret of `auto` with 8 at a time, over one at a time", (eight + other_eight) / (ours + others), 1.1, low=True,
                   detail=f"twenty functions; the ten: {eight / ours:.2f}, the others: {other_eight / others:.2f}")]


def warm(folder, quick):
    seeds = 2 if quick else 10
    cold, _, _ = regrets(["auto"], seeds=seeds, trials=100)[0]
    begun, _, _ = regrets(["auto"], seeds=seeds, trials=40, scale=100, earlier="moved")[0]
    misled, _, _ = regrets(["auto"], seeds=seeds, trials=100, earlier="mirrored")[0]
    detail = f"ten functions, {seeds} seeds; five earlier studies of 100 trials"
    return [figure("regret after 40 trials with earlier studies, over 100 without", begun / cold, 1.0, low=True, detail=detail),
            figure("regret with studies of something else, over none", misled / cold, 1.1, low=True, detail=detail)]


def fronts(folder, quick):
    seeds = 3 if quick else 10
    lines = said("hpo_fronts", seeds=seeds)
    values = {line[0]: float(line[3]) for line in lines}
    detail = f"`auto`, 100 trials, {seeds} seeds"
    return [figure("hypervolume of zdt1, of the ideal", values["zdt1"], 0.9, detail=detail),
            figure("hypervolume of zdt3, of the ideal", values["zdt3"], detail=detail),
            figure("hypervolume of dtlz2, of the ideal", values["dtlz2"], 0.85, detail=detail),
            figure("constrained bird function, above the least", values["bird"], 0.005, low=True, detail=detail)]


def suggestions(folder, quick):
    targets = {("tpe", 100): 0.15, ("tpe", 1000): 0.5, ("tpe", 100_000): 5, ("gp", 100): 10, ("gp", 500): 80, ("gp", 1000): 500}
    figures = []
    for (sampler, trials), target in targets.items():
        line = said("hpo_overhead", samplers=sampler, trials=trials, asks=20)[0]
        figures.append(figure(f"a suggestion of `{sampler}` after {trials:,} trials, ms", float(line[3]), target, low=True,
                              detail="ten mixed parameters, ask and tell, median of 20"))
    return figures
