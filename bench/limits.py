"""Plants limits in trainings from outside, and compares the verdict and the predictions of `sinew advise` with what was planted.

usage: limits.py [quick|full] [SEED] [PLANT ...]     prints every run; `compare.py limits` keeps the figures in docs/benchmarks.md
Each job trains with the limit for some seconds. The verdict and the predicted gain are printed; then the limit is taken away, or
the remedy applied, and the job trains again. A verdict is right if it names each planted limit and, of a clean job, no other.
"""
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

import contestants
from figures import figure

FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
CGROUP = pathlib.Path("/sys/fs/cgroup")
SECONDS = 10

# Delays what a process does with files and sockets: opening a picture, writing a checkpoint, sending bytes.
SLOW = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
static long of(const char* name) { const char* value = getenv(name); return value ? atol(value) : 0; }
static void open_wait(const char* path) {
  size_t length = strlen(path);
  if (length > 4 && strcmp(path + length - 4, ".jpg") == 0) usleep(of("SLOW_OPEN"));
}
#define OPEN(name)                                                           \
  int name(const char* path, int flags, ...) {                               \
    va_list more;                                                            \
    va_start(more, flags);                                                   \
    mode_t mode = va_arg(more, mode_t);                                      \
    va_end(more);                                                            \
    open_wait(path);                                                         \
    int (*real)(const char*, int, ...) = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, #name); \
    return real(path, flags, mode);                                          \
  }
OPEN(open)
OPEN(open64)
ssize_t write(int file, const void* bytes, size_t count) {
  long rate = of("SLOW_WRITE");  /* bytes a second, of checkpoints */
  if (rate > 0) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length > 0) path[length] = 0;
    if (length > 0 && strstr(path, "/checkpoints/")) usleep((useconds_t)(1e6 * count / rate));
  }
  return ((ssize_t (*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write"))(file, bytes, count);
}
static ssize_t sent(int file, ssize_t bytes) {
  long rate = of("SLOW_SEND");  /* bytes a second */
  if (rate > 0 && bytes > 0) usleep((useconds_t)(1e6 * bytes / rate));
  return bytes;
}
ssize_t sendmsg(int file, const struct msghdr* message, int flags) {
  return sent(file, ((ssize_t (*)(int, const struct msghdr*, int))dlsym(RTLD_NEXT, "sendmsg"))(file, message, flags));
}
ssize_t send(int file, const void* bytes, size_t count, int flags) {
  return sent(file, ((ssize_t (*)(int, const void*, size_t, int))dlsym(RTLD_NEXT, "send"))(file, bytes, count, flags));
}
"""


def pictures(folder, count, size, seed):
    """Two classes of pictures of smooth noise, which decode as slowly as photographs."""
    import numpy as np
    from PIL import Image
    rng = np.random.default_rng(seed)
    for label in ("a", "b"):
        (folder / label).mkdir(parents=True)
        for i in range(count // 2):
            pixels = rng.integers(0, 256, (24, 32, 3), dtype=np.uint8)
            Image.fromarray(pixels).resize(size, Image.BICUBIC).save(folder / label / f"{i}.jpg", quality=92)
    return folder


@dataclasses.dataclass
class Limited:
    job: str                        # the text of the job file
    limits: tuple                   # what the verdict must name
    remedy: str = ""                # how the remedy begins whose gain is predicted; "": none is measured
    stage: str = ""                 # of the first limit
    first: bool = True              # whether a limit that is planted alone must be the largest part
    plants: tuple = ()              # functions that return a context for the limited run: they get it as a Run
    env: dict = dataclasses.field(default_factory=dict)
    workers: int = 1
    apply: bool = False             # True: the options of the remedy are applied; False: the plants are taken away
    instead: object = None          # function of the Run: makes the job that trains instead, without the limit


class Run:
    """One training. `begun` is set when the process runs."""
    def __init__(self, folder, library):
        self.folder, self.library, self.group, self.pid, self.begun = folder, library, "", 0, threading.Event()

    def advise(self, job, env):
        """The advice on a job that is measured under its limit, and its samples a second."""
        path = self.folder / "limited.yaml"
        path.write_text(job)
        done = self.finish([str(contestants.SINEW), "advise", str(path), "--json", "--time", f"{SECONDS}s"], env, stdout=subprocess.PIPE)
        advice = json.loads(done)
        return advice, advice["samples_per_second"]

    def train(self, job, name, env=None, overrides=(), workers=1, seconds=SECONDS):
        path, run = self.folder / f"{name}.yaml", self.folder / name
        path.write_text(job)
        words = [str(contestants.SINEW), "train", str(path), "--run-dir", str(run), f"budget.time={seconds}s", *overrides]
        words += ["--workers", str(workers)] if workers > 1 else []
        self.finish(words, env)
        return run

    def finish(self, words, env, stdout=subprocess.DEVNULL):
        enter = lambda: [pathlib.Path(group, "tasks").write_text(str(os.getpid())) for group in self.group.split()]
        process = subprocess.Popen(words, stdout=stdout, stderr=subprocess.PIPE, text=True, preexec_fn=enter,
                                   env={**os.environ, **({"LD_PRELOAD": str(self.library), **env} if env else {})})
        self.pid = process.pid
        self.begun.set()
        try:
            output, errors = process.communicate(timeout=300)
        finally:
            process.kill()
        if process.returncode not in (0, 3):
            raise RuntimeError(f"exit code {process.returncode}: {errors[-500:]}")
        return output


def speed_of(run):
    report = json.loads((run / "report.json").read_text())
    spent = report["time"]
    lanes = spent.pop("lanes")
    return report["samples"] / ((sum(spent.values()) - spent["startup"] - spent["finish"] - spent["test"]) / lanes)


@contextlib.contextmanager
def busy(count):
    """Programs that compute."""
    programs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait(10)


@contextlib.contextmanager
def control_group(run, controller, files):
    group = CGROUP / controller / f"bench-{os.getpid()}"
    group.mkdir()
    for name, value in files.items():
        (group / name).write_text(str(value))
    run.group += f" {group}"
    try:
        yield
    finally:
        run.group = ""
        for _ in range(100):
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.1)


@contextlib.contextmanager
def slow_worker(run, part):
    """The second worker runs for this part of the time."""
    over = threading.Event()

    def stop_and_go():
        run.begun.wait(60)
        victim = None
        while not over.wait(0.02 * part):
            if victim is None:
                found = subprocess.run(["pgrep", "-P", str(run.pid), "-f", "sinew-worker"], capture_output=True, text=True).stdout.split()
                victim = int(sorted(found, key=int)[-1]) if len(found) > 1 else None
                continue
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGSTOP)
                time.sleep(0.02 * (1 - part))
                os.kill(victim, signal.SIGCONT)
    thread = threading.Thread(target=stop_and_go)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def fashion(model, more="", trainer="batch_size: 128", optimizer="name: sgd, lr: 0.01"):
    return f"""name: limited
model: {model}
data:
  format: idx
  train: {{images: {FASHION}/train-images-idx3-ubyte.gz, labels: {FASHION}/train-labels-idx1-ubyte.gz}}
trainer: {{max_duration: 10000ep, precision: fp32, {trainer}}}
optimizer: {{{optimizer}}}
{more}
"""


def on_pictures(folder, model, size=32, trainer="batch_size: 64", form="image_folder"):
    return f"""name: limited
model: {model}
data: {{format: {form}, train: {{path: {folder}}}, image: {{size: [{size}, {size}]}}, normalize: none}}
trainer: {{max_duration: 10000ep, precision: fp32, {trainer}}}
optimizer: {{name: sgd, lr: 0.01}}
checkpoint: {{interval: never}}
"""


def clean(rng, files):
    del files
    return Limited(fashion(rng.choice(["{name: mlp, hidden: [%d, 256]}" % rng.choice([512, 1024]), "{name: cnn, channels: [%d, 16]}" % rng.choice([8, 16])]),
                           trainer=f"batch_size: {rng.choice([128, 256])}"), ("compute-bound",))


def slow_disk(rng, files):
    model = "{name: cnn, channels: [%d, 32]}" % rng.choice([16, 32])
    return Limited(on_pictures(files["small"], model), ("input-bound",), "read samples without waiting", "read", env={"SLOW_OPEN": str(rng.choice([4000, 6000, 10000]))})


def slow_decode(rng, files):
    model = "{name: cnn, channels: [%d, 32]}" % rng.choice([8, 16])

    def packed(run):
        subprocess.run([str(contestants.SINEW), "data", "pack", str(run.folder / "limited.yaml"), str(run.folder / "packed"), "--decode"],
                       check=True, capture_output=True, timeout=300)
        return on_pictures(run.folder / "packed", model, size=64, form="webdataset")
    return Limited(on_pictures(files["large"], model, size=64), ("input-bound",), "decode the files once", "decode", instead=packed)


def other_programs(rng, files):
    del files
    count = rng.choice([2, 4])
    return Limited(fashion("{name: cnn, channels: [8, 16]}"), ("starved",), "end other programs", plants=(lambda run: busy(count),))


def quota(rng, files):
    del files
    cores = rng.choice([0.4, 0.6, 0.8])
    limit = {"cpu.cfs_period_us": 100000, "cpu.cfs_quota_us": int(100000 * cores)}
    return Limited(fashion("{name: cnn, channels: [8, 16]}", trainer="batch_size: 128, lanes: 2"), ("starved",), "raise the CPU quota",
                   plants=(lambda run: control_group(run, "cpu", limit),))


def straggler(rng, files):
    del files
    part = rng.choice([0.15, 0.3])
    return Limited(fashion("{name: cnn, channels: [8, 16]}", trainer="batch_size: 256, shards: 16"), ("straggler-bound",), "end what slows",
                   plants=(lambda run: slow_worker(run, part),), workers=2)


def slow_link(rng, files):
    del files
    rate = rng.choice([30_000_000, 80_000_000])
    return Limited(fashion("{name: mlp, hidden: [1024]}", trainer="batch_size: 128"), ("communication-bound",), "let other workers wait less",
                   env={"SLOW_SEND": str(rate)}, workers=2)


def slow_checkpoints(rng, files):
    """A training never waits for the disk of its checkpoints, so they do not limit it."""
    del files
    return Limited(fashion("{name: mlp, hidden: [512, 256]}", f"checkpoint: {{interval: {rng.choice([20, 40])}st}}", "batch_size: 256"), ("compute-bound",),
                   env={"SLOW_WRITE": str(rng.choice([20_000_000, 40_000_000]))})


def small_steps(rng, files):
    del files
    return Limited(fashion("{name: mlp, hidden: [8]}", trainer=f"batch_size: {rng.choice([1, 2])}"), ("overhead-bound",), "make larger steps", apply=True)


def much_memory(rng, files):
    """Each step reads and writes all weights of large layers for a few samples, and multiplies them, too."""
    del files
    wide = rng.choice([4096, 5120])
    return Limited(fashion(f"{{name: mlp, hidden: [{wide}, {wide}]}}", trainer="batch_size: 8, lanes: 1"), ("memory-bandwidth-bound",), first=False)


def few_shards(rng, files):
    del rng, files
    return Limited(fashion("{name: cnn, channels: [8, 16]}", trainer="batch_size: 120, shards: 1, lanes: 2"), ("imbalance-bound",), "let all lanes work", apply=True)


def one_lane(rng, files):
    del files
    model = rng.choice(["{name: cnn, channels: [8, 16]}", "{name: mlp, hidden: [1024]}"])
    return Limited(fashion(model, trainer="batch_size: 256, lanes: 1"), ("compute-bound",), "compute on all cores", apply=True)


def disk_and_programs(rng, files):
    del rng
    model = "{name: cnn, channels: [32, 32]}"
    return Limited(on_pictures(files["small"], model), ("input-bound", "starved"), plants=(lambda run: busy(2),), env={"SLOW_OPEN": "12000"})


def disk_and_quota(rng, files):
    limit = {"cpu.cfs_period_us": 100000, "cpu.cfs_quota_us": rng.choice([20000, 30000])}
    return Limited(on_pictures(files["small"], "{name: cnn, channels: [32, 32]}", trainer="batch_size: 64, lanes: 2"), ("input-bound", "starved"),
                   plants=(lambda run: control_group(run, "cpu", limit),), env={"SLOW_OPEN": "6000"})


# 60 jobs: 10 of them clean, 10 mixed
PLANTS = [(clean, 10), (slow_disk, 6), (slow_decode, 6), (other_programs, 5), (quota, 5), (straggler, 4), (slow_link, 4), (slow_checkpoints, 3), (small_steps, 2),
          (few_shards, 2), (one_lane, 2), (much_memory, 3), (disk_and_programs, 4), (disk_and_quota, 4)]


def prepare(folder):
    small, large = pictures(folder / "small", 1200, (64, 64), 1), pictures(folder / "large", 600, (960, 720), 2)
    source, library = folder / "slow.c", folder / "slow.so"
    source.write_text(SLOW)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return {"small": small, "large": large, "library": library}


def one(number, plant, seed, files):
    limited = plant(random.Random(f"{seed}/{number}"), files)
    found = {"number": number, "plant": plant.__name__, "planted": limited.limits}
    with tempfile.TemporaryDirectory() as folder:
        run = Run(pathlib.Path(folder), files["library"])
        with contextlib.ExitStack() as plants:
            for one in limited.plants:
                plants.enter_context(one(run))
            if limited.workers == 1:
                advice, before = run.advise(limited.job, limited.env)
            else:
                slow = run.train(limited.job, "limited", limited.env, workers=limited.workers)
                before = speed_of(slow)
        if limited.workers > 1:
            done = subprocess.run([str(contestants.SINEW), "advise", str(slow), "--json"], capture_output=True, text=True, timeout=60, check=True)
            advice = json.loads(done.stdout)
        found["limits"] = advice["limits"]
        found["shares"] = {part["limit"]: round(part["share"], 3) for part in advice["parts"] if part["share"] > 0.02}
        found["experiments"] = {each["condition"]: round(each["ratio"], 2) for each in advice.get("experiments", [])}
        stage = next((part.get("stage", "") for part in advice["parts"] if part["limit"] == limited.limits[0]), "")
        found["right"] = set(limited.limits) <= set(advice["limits"]) and (len(limited.limits) == 2 or not limited.first or limited.limits[0] == advice["limits"][0])
        if limited.limits == ("compute-bound",) and not limited.apply:
            found["right"] = advice["limits"] == ["compute-bound"]
        if limited.stage:
            found["right"] = found["right"] and stage == limited.stage
        remedy = next((one for one in advice["remedies"] if limited.remedy and one["what"].startswith(limited.remedy)), None)
        if remedy:
            found["predicted"] = {name: round(value, 3) for name, value in remedy["faster"].items()}
        print(json.dumps(found), file=sys.stderr, flush=True)
        if remedy:
            overrides = remedy["options"] if limited.apply else []
            env = limited.env if limited.apply else None
            fast = run.train(limited.instead(run) if limited.instead else limited.job, "free", env, overrides, limited.workers)
            found["gain"] = round(speed_of(fast) / before - 1, 3)
            found["inside"] = remedy["faster"]["low"] <= found["gain"] <= remedy["faster"]["high"]
            low, high = 1 + remedy["faster"]["low"], 1 + remedy["faster"]["high"]
            found["half_width"] = round((high - low) / (high + low), 3)
            print(f"    measured: {found['gain']}, {'inside' if found['inside'] else 'OUTSIDE'}", file=sys.stderr, flush=True)
    return found


def measure(quick, seed, only=()):
    plan = [plant for plant, count in PLANTS for _ in range(min(2, count) if quick else count) if not only or plant.__name__ in only]
    with tempfile.TemporaryDirectory() as folder:
        files = prepare(pathlib.Path(folder))
        for number, plant in enumerate(plan):
            yield one(number, plant, seed, files)


def limits(folder, quick):
    del folder
    runs = list(measure(quick, 1))
    predicted = [run for run in runs if "gain" in run]
    wrong = sorted({f"{run['plant']}: {', '.join(run['limits'])}" for run in runs if not run["right"]})
    widths = sorted(run["half_width"] for run in predicted) or [0]
    return [figure(f"planted limits that the verdict names, %, of {len(runs)} jobs", 100 * sum(run["right"] for run in runs) / len(runs), 95,
                   detail="wrong: " + "; ".join(wrong) if wrong else "clean jobs are compute-bound; of two limits, both are named"),
            figure(f"predicted gains whose range held, %, of {len(predicted)}", 100 * sum(run["inside"] for run in predicted) / max(1, len(predicted)), 90,
                   detail="; ".join(sorted({run["plant"] for run in predicted if not run["inside"]})) or "all of them"),
            figure("half of the width of a range, %, median", 100 * widths[len(widths) // 2], 15, low=True, detail="of the predicted speed")]


if __name__ == "__main__":
    full = len(sys.argv) > 1 and sys.argv[1] == "full"
    for _ in measure(not full, int(sys.argv[2]) if len(sys.argv) > 2 else 1, sys.argv[3:]):
        pass
