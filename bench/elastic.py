"""Measures workers that die and join, and compares groups of workers with those of PyTorch."""
import os
import pathlib
import random
import signal
import statistics
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import contestants
import group
import jobs
from figures import figure, percentile

WORKERS = 4
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def deaths(folder, quick):
    """Kills random workers, a second apart. Measures after each kill the time until the group computes again."""
    kills, rng = 20 if quick else 500, random.Random(7)
    times, never, lost_survivors, usual = [], 0, 0, []
    with group.Group(folder, "mlp64", WORKERS) as run:
        run.wait_until_computing(WORKERS)
        while len(times) + never < kills:
            run.wait_for(lambda: len(run.members("computing")) >= 2, "two workers that compute")
            before = run.members("computing")
            if len(before) < 2:
                continue
            victim = rng.choice(before)
            usual.append(run.watch.usual_gap())
            killed = group.kill(victim)
            if killed is None:
                continue
            took = group.seconds_until_computing(run.watch, killed, usual[-1])
            times.append(took) if took is not None else None
            never += took is None
            time.sleep(max(0.0, killed + 1 - time.monotonic()))
            lost_survivors += sum(not group.alive(pid) for pid in before if pid != victim)
    if not times:
        raise RuntimeError("the group computed no further after any kill")
    detail = (f"{kills} kills of {WORKERS} workers, a second apart; a normal step ({1e3 * statistics.median(usual):.0f} ms) "
              "taken off")
    return [figure("from a SIGKILL to the group computing again, p50, ms", 1e3 * percentile(times, 0.5), 50, low=True, detail=detail),
            figure("the same, p99, ms", 1e3 * percentile(times, 0.99), 300, low=True, detail=f"worst {1e3 * max(times):.0f} ms"),
            figure("kills after which it did not compute within 60 s", never, 0, low=True),
            figure("survivors that had to start anew", lost_survivors, 0, low=True, detail="by their PIDs")]


def stopped(folder, quick):
    """Stops workers with SIGSTOP, and measures the time until the others compute without them."""
    times, never = [], 0
    with group.Group(folder, "mlp64", 3) as run:
        for turn in range(5 if quick else 20):
            run.wait_until_computing(3)
            victim, usual = random.Random(turn).choice(run.members("computing")), run.watch.usual_gap()
            began = time.monotonic()
            os.kill(victim, signal.SIGSTOP)
            took = group.seconds_until_computing(run.watch, began, usual)
            times.append(took) if took is not None else None
            never += took is None
            os.kill(victim, signal.SIGCONT)
    return [figure("from a SIGSTOP to the others computing without the worker, most, s", max(times, default=60), 1.5, low=True,
                   detail=f"{len(times) + never} stops; median {statistics.median(times or [60]):.2f} s"),
            figure("stops after which they did not compute within 60 s", never, 0, low=True)]


BURN = "while True: pass"


def crowded(folder, quick):
    """Counts workers that the group excludes without a reason, on a machine with four runnable threads a core."""
    seconds, gone = 60 if quick else 300, set()
    with group.Group(folder, "mlp64", 3) as run:
        run.wait_until_computing(3)
        first = set(run.members())
        burners = [subprocess.Popen([contestants.PYTHON, "-c", BURN]) for _ in range(4 * len(os.sched_getaffinity(0)))]
        try:
            lines, end = run.ledger_lines(), time.monotonic() + seconds
            while time.monotonic() < end:
                gone |= first - set(run.members())
                time.sleep(1)
            steps = run.ledger_lines() - lines
        finally:
            for burner in burners:
                burner.kill()
                burner.wait()
    return [figure("workers put out without a reason", len(gone), 0, low=True,
                   detail=f"3 workers beside {len(burners)} busy processes on {len(os.sched_getaffinity(0))} cores for {seconds} s, {steps} steps")]


def paced_rate(folder, paces, seconds):
    """Returns the steps a second of a group of one-lane workers with these paces. The supervisor starts the first
    worker; `sinew join` starts the others."""
    with group.Group(folder, "mlp", 1, "trainer.shards=16", pace=paces[0]) as run:
        run.wait_until_computing(1)
        for pace in paces[1:]:
            run.join(pace)
        run.wait_for(lambda: len(run.members("computing")) == len(paces), "all workers")
        time.sleep(seconds / 2)  # until then the group measures the speed of its workers and adapts their shares
        rate, there = run.steps_a_second(seconds), len(run.members("computing"))
    if there != len(paces):
        raise RuntimeError(f"{len(paces) - there} workers were put out")
    return rate


def stragglers(folder, quick):
    """Compares a group of three workers, one of them ten times slower, with the sum of the rates of each alone."""
    rounds, seconds, usual, slow = 1 if quick else 3, 20, 8, 80
    ratios = []
    for _ in range(rounds):
        alone = [paced_rate(folder, [pace], seconds) for pace in (usual, slow)]
        ratios.append(paced_rate(folder, [usual, usual, slow], seconds) / (2 * alone[0] + alone[1]))
    return [figure("3 workers, one at a tenth of the speed, against the sum of what each does alone", statistics.median(ratios), 0.9,
                   detail=f"shards paced: {usual} and {slow} times their time; all stay members")]


def end(process):
    """Ends a torchrun and the workers that it started. They have their own process group."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait(20)


def torchrun(workers, script, words, *options):
    words = [contestants.PYTHON, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={workers}", *options,
             contestants.ROOT / "bench" / script, *words]
    return subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=ENVIRONMENT,
                            start_new_session=True)


def torchrun_death(folder, quick):
    """Kills a worker of torchrun, which then restarts all workers. Measures the seconds until further steps."""
    with tempfile.TemporaryDirectory() as scratch:
        progress, times, never = pathlib.Path(scratch), [], 0
        for turn in range(1 if quick else 3):
            here = progress / str(turn)
            here.mkdir()
            process = torchrun(WORKERS, "ddp.py", ["mlp", 64, 4, 600, here], "--max-restarts=3", "--monitor-interval=0.1")
            watch = group.Watch(here / "steps")
            try:
                if len(watch.after(0, 50, 120)) < 50:
                    raise RuntimeError("torchrun's workers made no steps")
                killed = group.kill(int((here / "pid-2").read_text()))
                time.sleep(0.5)  # by then, steps that were running at the kill have been written
                further = watch.after(killed + 0.5, 1, 59.5)
                never += not further
                times.append(further[0] - killed if further else 60.0)
            finally:
                watch.close()
                end(process)
    return [figure("torchrun, 4 Gloo workers, one SIGKILL: seconds to further steps", statistics.median(times),
                   detail=f"no further step within 60 s in {never} of {len(times)} tries; where there is one, training begins "
                          "anew: without a checkpoint of the script's own all is lost")]


def torchrun_figure(script, words, seconds):
    """Lets torchrun run two processes. Returns the last number that they print."""
    process = torchrun(2, script, words)
    try:
        said, _ = process.communicate(timeout=seconds + contestants.PATIENCE)
        if process.returncode != 0:
            raise RuntimeError(f"torchrun ended with {process.returncode}")
        return float(said.split()[-1])
    finally:
        end(process)


def ddp_rate(name, seconds):
    """Returns the samples a second of two one-thread processes of ddp.py. Their micro-batches are as large as Sinew's
    shards, and gradients are all-reduced once a step."""
    job = jobs.JOBS[name]
    return torchrun_figure("ddp.py", [job.kind, job.batch, 8, seconds, "-"], seconds)


def ddp(folder, quick):
    rounds, seconds = (3, 8) if quick else (5, 15)
    figures = []
    for name in ("mlp", "cnn"):
        ratios, ours, theirs = [], [], []
        for turn in range(rounds):
            runners = [lambda: ours.append(contestants.sinew_rate(folder, name, seconds, lanes=1, workers=2)),
                       lambda: theirs.append(ddp_rate(name, seconds))]
            for runner in runners if turn % 2 == 0 else reversed(runners):
                runner()
            ratios.append(ours[-1] / theirs[-1])
        detail = f"{statistics.median(ours):,.0f} against {statistics.median(theirs):,.0f} samples/s"
        figures.append(figure(f"{jobs.JOBS[name].title}: 2 one-lane workers against DistributedDataParallel over Gloo, 2 processes",
                              statistics.median(ratios), 0.95, detail=detail))
    return figures


def strangers(folder, quick):
    """Compares two workers that share a job with two independent runs."""
    rounds, seconds = (3, 8) if quick else (5, 15)
    together, apart = [], []
    for turn in range(rounds):
        def as_group():
            together.append(contestants.sinew_rate(folder, "cnn", seconds, lanes=1, workers=2))

        def side_by_side():
            with ThreadPoolExecutor(2) as pool:
                one = lambda _: contestants.sinew_rate(folder, "cnn", seconds, lanes=1)
                apart.append(sum(pool.map(one, range(2))))

        for runner in (as_group, side_by_side) if turn % 2 == 0 else (side_by_side, as_group):
            runner()
    ratio = statistics.median(a / b for a, b in zip(together, apart))
    detail = f"{statistics.median(together):,.0f} against {statistics.median(apart):,.0f} samples/s"
    return [figure(f"{jobs.JOBS['cnn'].title}: a group of 2 one-lane workers against 2 runs side by side", ratio, 0.9, detail=detail)]


def reduction_ms(floats, seconds):
    with tempfile.TemporaryDirectory() as folder:
        words = [contestants.BIN / "reduction_loop", "RANK", folder, floats, seconds]
        ranks = [subprocess.Popen([str(rank) if word == "RANK" else str(word) for word in words], stdout=subprocess.PIPE, text=True)
                 for rank in range(2)]
        try:
            said = [rank.communicate(timeout=seconds + contestants.PATIENCE)[0] for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
        if any(rank.returncode != 0 for rank in ranks):
            raise RuntimeError("a process that reduces failed")
        return float(said[0])


def reduction(folder, quick):
    """Compares one reduction by a group of two processes with an all-reduce of as many floats by Gloo."""
    turns, seconds, floats = 5 if quick else 15, 4, 1 << 22
    ours, theirs = [], []
    for turn in range(turns):
        runners = [lambda: ours.append(reduction_ms(floats, seconds)),
                   lambda: theirs.append(torchrun_figure("gloo_reduce.py", [floats, seconds], seconds))]
        for runner in runners if turn % 2 == 0 else reversed(runners):
            runner()
    ratio = statistics.median(a / b for a, b in zip(ours, theirs))
    detail = f"{statistics.median(ours):.1f} against {statistics.median(theirs):.1f} ms, checksums of every frame included"
    return [figure("reducing 16 MB between 2 processes, time over that of Gloo's all-reduce", ratio, 1, low=True, detail=detail)]


def join(folder, quick):
    """Measures the time from `sinew scale` until the new worker computes."""
    times = []
    for _ in range(3 if quick else 10):
        with group.Group(folder, "mlp64", 1) as run:
            run.wait_until_computing(1)
            began = time.monotonic()
            run.scale(2)
            run.wait_for(lambda: len(run.members("computing")) == 2, "the new worker")
            times.append(time.monotonic() - began)
    return [figure("from `sinew scale` to the new worker computing, s", statistics.median(times),
                   detail=f"median of {len(times)}; most {max(times):.2f} s")]


BYTES = {"csv": 12 * 5508, "cnn": 12 * 50186, "mlp64": 12 * 203530}  # of weights and AdamW's two averages


AUDITED, SHARDS = 0.001, 8  # the default of cluster.audit, and the shards of a step


def comparison(folder, quick):
    """Measures what two workers pay for watching each other, as a part of the time of a step: the digest of a part of
    the state in each step, and the audit of one shard in a thousand. A worker that audits computes one shard more than
    its half of the eight, and the other worker waits for it."""
    seconds, shares, audits, details, audit_details = 5 if quick else 15, [], [], [], []
    for name, size in BYTES.items():
        jobs.make_data(folder, name)
        made = subprocess.run([contestants.BIN / "comparison_loop", str(size), "3" if quick else "20"], capture_output=True, text=True,
                              check=True, timeout=300)
        step = jobs.JOBS[name].batch / contestants.sinew_rate(folder, name, seconds, lanes=1, workers=2)
        digest, audit = map(float, made.stdout.split())
        shares.append(1e-6 * digest / step)
        details.append(f"{name}: {digest:.1f} us of {1e6 * step:,.0f} us")
        shard = AUDITED * SHARDS * step / (SHARDS / 2)
        audits.append((1e-6 * audit + shard) / step)
        audit_details.append(f"{name}: {audit:.1f} us, and {1e6 * shard:.1f} us for the shard, of {1e6 * step:,.0f} us")
    return [figure("comparing states: digest of a part in each step, against the step, most, %", 100 * max(shares), 0.5, low=True,
                   detail="2 one-lane workers; " + "; ".join(details)),
            figure("auditing one shard in a thousand, against the step, most, %", 100 * max(audits), 0.3, low=True,
                   detail="2 one-lane workers, computed from the parts' times; " + "; ".join(audit_details))]
