"""Compares the samples a second of Sinew, bare libtorch, PyTorch and Lightning on the same job.

Machines are noisy. So contestants take turns. A figure is the median over rounds; each round gives one ratio.
"""
import statistics

import contestants
import jobs
from figures import figure

AGAINST = {
    "bare": "a bare libtorch loop, same shards and lanes",
    "plain": "PyTorch, whole batch, preloaded tensors",
    "loader": "PyTorch with DataLoader",
    "lightning": "Lightning with DataLoader",
}


def race(folder, name, targets, quick, precision="fp32"):
    """Returns one figure for each peer. targets: maps each peer to the target of the figure, the least ratio of Sinew's
    rate to the peer's, or to None."""
    rounds, seconds = (5, 6) if quick else (7, 15)
    if name == "resnet":
        seconds *= 2  # a step takes half a second
    jobs.make_data(folder, name)
    shards, chosen = contestants.resolved(folder, name, "shards", "precision", precision=precision)
    runners = {"sinew": lambda: contestants.sinew_rate(folder, name, seconds, precision=precision)}
    for way in targets:
        runners[way] = lambda way=way: (contestants.bare_rate(name, shards, seconds) if way == "bare" else
                                        contestants.peer_rate(folder, name, way, seconds))
    rates = {runner: [] for runner in runners}
    for turn in range(rounds):
        order = list(runners) if turn % 2 == 0 else list(reversed(runners))
        for runner in order:
            rates[runner].append(runners[runner]())
    figures = []
    for way, target in targets.items():
        ratio = statistics.median(ours / theirs for ours, theirs in zip(rates["sinew"], rates[way]))
        detail = (f"{statistics.median(rates['sinew']):,.0f} against {statistics.median(rates[way]):,.0f} samples/s; "
                  f"{shards} shards, {chosen}, {rounds} rounds of {seconds} s")
        figures.append(figure(f"{jobs.JOBS[name].title}: {AGAINST[way]}", ratio, target, detail=detail))
    return figures


def mlp(folder, quick):
    return race(folder, "mlp", {"bare": 0.97, "plain": 0.6, "loader": None, "lightning": None}, quick)


def mlp64(folder, quick):
    return race(folder, "mlp64", {"bare": 0.97, "plain": 0.6, "loader": None, "lightning": 2.0}, quick)


def cnn(folder, quick):
    return race(folder, "cnn", {"bare": 0.97, "plain": 0.95, "loader": None, "lightning": 1.05}, quick)


def cnn_auto(folder, quick):
    return race(folder, "cnn", {"lightning": 1.4}, quick, precision="auto")


def resnet(folder, quick):
    return race(folder, "resnet", {"bare": 0.97, "plain": 0.95, "loader": None, "lightning": None}, quick)


def csv(folder, quick):
    return race(folder, "csv", {"bare": 0.97, "plain": None, "loader": None, "lightning": 2.0}, quick)
