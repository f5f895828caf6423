"""Compares the samples a second of Sinew, bare libtorch, PyTorch and Lightning on the same job.

Machines are noisy. So contestants take turns. A figure is the median over rounds; each round gives one ratio.
"""
import json
import statistics
import subprocess

import contestants
import jobs
from figures import figure

AGAINST = {
    "bare": "a bare libtorch loop, same shards and lanes",
    "plain": "PyTorch, whole batch, preloaded tensors",
    "compile": "PyTorch with torch.compile, whole batch, preloaded tensors",
    "loader": "PyTorch with DataLoader",
    "lightning": "Lightning with DataLoader",
}


def roofline(folder, name, precision):
    """Returns the part of the measured roofline of one thread that the operators of a step reach: the time that their arithmetic
    or their memory traffic takes at the measured peaks, whichever is longer, over the time that they take."""
    words = [contestants.SINEW, "advise", jobs.write_job(folder, name, precision), "--json", "--time", "5s"]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=180, check=True)
    advice = json.loads(done.stdout)
    if "machine" not in advice:
        return []  # a step takes too long to be looked into
    machine = advice["machine"]
    least = sum(max(one["flops"] / machine["peak_flops"], one["bytes"] / machine["bandwidth"]) for one in advice["operators"])
    return [figure(f"{jobs.JOBS[name].title}: part of the measured roofline of a thread", least / sum(one["seconds"] for one in advice["operators"]), None,
                  detail=f"{machine['peak_flops'] / 1e9:.0f} GFLOP/s, {machine['bandwidth'] / 1e9:.0f} GB/s; {', '.join(advice['limits'])}")]


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
    return figures + roofline(folder, name, precision)


def mlp(folder, quick):
    return race(folder, "mlp", {"bare": 0.97, "plain": 0.6, "compile": None, "loader": None, "lightning": None}, quick)


def mlp64(folder, quick):
    return race(folder, "mlp64", {"bare": 0.97, "plain": 0.6, "compile": None, "loader": None, "lightning": 2.0}, quick)


def cnn(folder, quick):
    return race(folder, "cnn", {"bare": 0.97, "plain": 0.95, "compile": None, "loader": None, "lightning": 1.05}, quick)


def cnn_auto(folder, quick):
    return race(folder, "cnn", {"lightning": 1.4}, quick, precision="auto")


def resnet(folder, quick):
    return race(folder, "resnet", {"bare": 0.97, "plain": 0.95, "compile": None, "loader": None, "lightning": None}, quick)


def csv(folder, quick):
    return race(folder, "csv", {"bare": 0.97, "plain": None, "compile": None, "loader": None, "lightning": 2.0}, quick)
