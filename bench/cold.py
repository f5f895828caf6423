"""Measures the first use: of a fresh clone without a compiler cache, to the first step and of the tests; and of a wheel."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import contestants
from figures import figure

JOB = "examples/fashion-mnist.yaml"
BUILD_LIMIT = 3600  # seconds; a cold build on a slow machine stays far below
TEST_LIMIT = 5400


def log_of(clone, task):
    """The logs lie beside the clone, because the house rules read every file in it."""
    return clone.parent / f"{task}.log"


def dev(clone, *words):
    """Starts a command of ./dev in the clone. One signal to its process group ends it and all its children."""
    environment = {name: value for name, value in os.environ.items() if name not in ("SINEW_TORCH_DIR", "SINEW_BIN", "SINEW_PYTHON")}
    environment |= {"CCACHE_DISABLE": "1"}
    log = open(log_of(clone, words[0]), "wb")
    return subprocess.Popen(["./dev", *words], cwd=clone, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)


def kill(process):
    """Ends the process group if the command has not ended by itself."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def end_of(log):
    return log.read_text(errors="replace")[-2000:]


def seconds_to_first_step(clone):
    began, log = time.monotonic(), log_of(clone, "train")
    process = dev(clone, "train", JOB)
    try:
        while not re.search(r"^step +\d+/", log.read_text(errors="replace"), re.MULTILINE):
            if process.poll() is not None or time.monotonic() - began > BUILD_LIMIT:
                raise RuntimeError(f"./dev train made no step:\n{end_of(log)}")
            time.sleep(0.05)
        return time.monotonic() - began
    finally:
        kill(process)


def seconds_of_tests(clone):
    began = time.monotonic()
    process = dev(clone, "test")
    try:
        if process.wait(timeout=TEST_LIMIT) != 0:
            raise RuntimeError(f"./dev test failed:\n{end_of(log_of(clone, 'test'))}")
        return time.monotonic() - began
    finally:
        kill(process)


def cold(folder, quick):
    """Uses the installed Debian packages; ./dev installs libtorch and Python packages. quick: no tests."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        clone = pathlib.Path(scratch) / "sinew"
        for directory in (folder, scratch):
            os.chmod(directory, 0o755)  # some tests run the programs as another user
        subprocess.run(["git", "clone", "--quiet", str(contestants.ROOT), str(clone)], check=True, timeout=120)
        figures = [figure("`./dev train` in a fresh clone: minutes to the first step", seconds_to_first_step(clone) / 60, 7, low=True,
                          detail="Debian's packages installed before; no compiler cache; libtorch's wheel is installed")]
        if not quick:
            figures.append(figure("`./dev test` after it: minutes of builds and tests", seconds_of_tests(clone) / 60, 12, low=True,
                                  detail="the core and integration tiers"))
        return figures


def wheel(folder, quick):
    """From an empty virtual environment to the first step of a job that `sinew init` wrote. The wheels of torch and of the
    packages that it needs are downloaded before. quick: no difference."""
    torch = re.search(r"^TORCH=(torch==\S+)$", (contestants.ROOT / "dev").read_text(), re.MULTILINE)[1]
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        scratch = pathlib.Path(scratch)
        packaging = contestants.ROOT / "build/packaging/bin/python"
        subprocess.run([packaging, contestants.ROOT / "packaging/wheel.py", "--torch", torch.removeprefix("torch=="), contestants.BIN, scratch / "wheels"],
                       check=True, timeout=600, stdout=subprocess.DEVNULL)
        subprocess.run([packaging, "-m", "pip", "download", "--quiet", "--dest", scratch / "wheels", torch], check=True, timeout=1200)
        (scratch / "table.csv").write_text("x,y,kind\n" + "".join(f"{i % 17},{i % 5 - i % 3},{'ab'[i % 2]}\n" for i in range(300)))
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SINEW_")}
        began = time.monotonic()
        for words in ([sys.executable, "-m", "venv", "venv"],
                      ["venv/bin/pip", "install", "--quiet", "--no-index", "--find-links", "wheels", *map(str, (scratch / "wheels").glob("sinew-*.whl"))],
                      ["venv/bin/sinew", "init", "table.csv"]):
            subprocess.run(words, cwd=scratch, env=environment, check=True, timeout=1200, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with subprocess.Popen(["venv/bin/sinew", "train", "job.yaml"], cwd=scratch, env=environment, stdout=subprocess.PIPE, text=True) as process:
            step = next((line for line in process.stdout if re.match(r"step +\d+", line)), None)
            took = time.monotonic() - began
            process.kill()
        if step is None:
            raise RuntimeError("the installed sinew made no step")
        return [figure("from an empty virtual environment to the first step with a wheel, s", took, 60, low=True,
                       detail="venv, pip install of torch and sinew from downloaded wheels, sinew init, sinew train")]
