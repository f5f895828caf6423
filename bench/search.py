"""Measures samplers on the functions of bench/hpo. A regret of 1 is that of random search with as many trials."""
import gzip
import json
import pathlib
import statistics
import subprocess

import contestants
import jobs
from figures import figure

PROGRAMS = contestants.BIN
OPTUNA = f"{contestants.PYTHON} {pathlib.Path(__file__).parent / 'optuna_child.py'}"
HARD_LIMIT_S = 4 * 3600


def said(program, **words):
    """Runs a program. Returns its output as a list of lines, each a list of words."""
    command = [PROGRAMS / program] + [part for key, value in words.items() for part in (f"--{key}", str(value))]
    out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=HARD_LIMIT_S).stdout
    return [line.split() for line in out.splitlines()]


def regrets(samplers, **words):
    """Returns for each sampler its mean regret over all functions, its highest one, and its regret by function."""
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


REAL = """name: search
model: {name: mlp, hidden: [128]}
data:
  format: idx
  train: {images: FOLDER/images, labels: FOLDER/labels}
  val: {images: FASHION/t10k-images-idx3-ubyte.gz, labels: FASHION/t10k-labels-idx1-ubyte.gz}
trainer: {max_duration: 27ep, batch_size: 128}
optimizer: adamw
scheduler: cosine
tune:
  trials: 30
  monitor: val/accuracy
  search:
    optimizer.lr: {low: 1e-4, high: 3e-2, log: true}
    optimizer.weight_decay: {low: 1e-5, high: 0.1, log: true}
    model.hidden: [[64], [128], [256], [128, 128], [256, 128]]
    model.activation: [relu, gelu, tanh]
    model.dropout: {low: 0, high: 0.5}
    trainer.batch_size: {choices: [64, 128, 256], ordered: true}
"""


def first_images(folder, count):
    """Writes the first `count` images and labels of the training set as idx files."""
    for name, source, each in (("images", "train-images-idx3-ubyte.gz", 784), ("labels", "train-labels-idx1-ubyte.gz", 1)):
        with gzip.open(jobs.FASHION / source) as file:
            head = file.read(16 if each > 1 else 8)
            (folder / name).write_bytes(head[:4] + count.to_bytes(4, "big") + head[8:] + file.read(count * each))


def searched(folder, name, *words):
    """Runs a study of real trainings. Returns its best value and the number of its evaluations."""
    study = folder / name
    command = [contestants.SINEW, "tune", folder / "search.yaml", *words, "--study", study]
    subprocess.run(command, check=True, timeout=HARD_LIMIT_S, stdout=subprocess.DEVNULL)
    events = [json.loads(line) for line in (study / "study.jsonl").read_text().splitlines()[1:]]
    values = [event["values"][0] for event in events if event["event"] == "end" and event["state"] == "complete"]
    return max(values), sum(event["event"] == "report" for event in events)


def stopping(folder, quick):
    seeds, figures = 3 if quick else 10, []
    for kind in ("hard", "mild"):
        words = dict(kind=kind, seeds=seeds)
        part, regret = (float(line[1]) for line in said("hpo_stopping", **words))
        side = {line[0]: float(line[1]) for line in said("hpo_stopping", workers=4, **words)}
        figures += [figure(f"learning curves, {kind}: epochs trained, of all", part, 0.15, low=True,
                           detail=f"81 trials of 81 epochs, {seeds} seeds; four side by side {side['epochs']:.3f}"),
                    figure(f"learning curves, {kind}: regret of what was found", regret, 0.1, low=True,
                           detail=f"0 the best, 1 the median of random points; four side by side {side['regret']:.3f}")]
    annealed = dict(kind="annealed", seeds=4 * seeds)
    (part, regret), (_, whole) = ([float(line[1]) for line in said("hpo_stopping", **annealed, **more)] for more in ({}, {"pruner": "none"}))
    figures += [figure("learning curves, annealed: epochs trained, of all", part, 0.25, low=True,
                       detail=f"30 trials of 27 epochs, noisy and with a drop at the end; {4 * seeds} seeds"),
                figure("learning curves, annealed: regret of what was found", regret, detail=f"of all trained to their end {whole:.3f}")]
    folder, seeds = pathlib.Path(folder), 1 if quick else 3
    first_images(folder, 10_000)
    (folder / "search.yaml").write_text(REAL.replace("FOLDER", str(folder)).replace("FASHION", str(jobs.FASHION)))
    behind, parts = [], []
    for seed in range(seeds):
        best, whole = searched(folder, f"whole-{seed}", f"tune.seed={seed}", "tune.pruner=none")
        found, part = searched(folder, f"early-{seed}", f"tune.seed={seed}")
        behind.append(100 * (best - found))
        parts.append(part / whole)
    return figures + [figure("Fashion-MNIST: points of accuracy behind the search that trains all to their end", statistics.mean(behind), 0.2,
                             low=True, detail=f"MLP, 10,000 images, 30 trials of 27 epochs, {seeds} seed{'s' if seeds > 1 else ''}"),
                      figure("Fashion-MNIST: its epochs, of theirs", statistics.mean(parts), 0.25, low=True)]


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
