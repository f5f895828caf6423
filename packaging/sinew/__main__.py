"""Becomes the program `sinew` of this package, after a look at the installed torch.

The dynamic linker takes libtorch from the package torch. If torch is missing or has another version, the linker's own
message names only a file or a symbol, so this module looks first. It runs before every command. So it imports little,
and not torch, whose import takes seconds.
"""
import os
import signal
import sys

from sinew.needs import TORCH, TORCH_LIBRARIES

PACKAGE = os.path.dirname(os.path.abspath(__file__))
SITE = os.path.dirname(PACKAGE)


def version_in(folder):
    """Returns the version of the torch that is installed in a folder, which is in the name of its metadata, or None."""
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return None
    for name in names:
        if name.startswith("torch-") and name.endswith((".dist-info", ".egg-info")):
            return name.rpartition(".")[0].split("-")[1]
    return None


def find_libraries(folders):
    """Returns libtorch's folder and None, or None and what is wrong: an error code, a sentence, and pip's option to mend
    it. As in an import, the first folder with torch counts."""
    for folder in folders:
        version = version_in(folder)
        if version is None:
            continue
        if version.split("+")[0] != TORCH:
            sentence = f"torch {version} is installed in {folder}, but this sinew needs torch {TORCH}"
            return None, ("INSTALL_OTHER_TORCH", sentence, "")
        libraries = os.path.join(folder, "torch", "lib")
        for name in TORCH_LIBRARIES:
            if not os.path.exists(os.path.join(libraries, name)):
                sentence = f"torch {version} in {folder} has no {name}, which this sinew needs from torch {TORCH}"
                return None, ("INSTALL_OTHER_TORCH", sentence, "--force-reinstall ")
        return libraries, None
    return None, ("INSTALL_NO_TORCH", f"torch is not installed, but this sinew needs torch {TORCH}", "")


def undo_changes_of_python():
    """Undoes what the interpreter changed in this process and the program would inherit: it ignores two signals, and
    sets LC_CTYPE if the environment has no locale."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    with open("/proc/self/environ", "rb") as file:  # the environment with which the process began
        if b"\0LC_CTYPE=" not in b"\0" + file.read():
            os.environ.pop("LC_CTYPE", None)


def choose_worker(libraries):
    """The worker finds libtorch in the folder in which this package is, too. If torch is somewhere else, for example
    outside of a virtual environment that can see it, a script must start the worker."""
    if os.environ.pop("SINEW_TORCH_LIB", None) is not None:  # set by another installation, which has started this one
        os.environ.pop("SINEW_WORKER", None)
    if libraries != os.path.join(SITE, "torch", "lib") and "SINEW_WORKER" not in os.environ:
        os.environ["SINEW_TORCH_LIB"] = os.path.abspath(libraries)
        os.environ["SINEW_WORKER"] = os.path.join(PACKAGE, "bin", "sinew-worker-elsewhere")


def main():
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a Ctrl-C ends a program, without a traceback
    libraries, wrong = find_libraries([SITE, *sys.path])
    if wrong is not None:
        code, sentence, option = wrong
        sys.exit(f"sinew: {sentence} [{code}]\n  try: {sys.executable} -m pip install {option}torch=={TORCH}")
    choose_worker(libraries)
    os.environ.setdefault("SINEW_PYTHON", sys.executable)  # its pyarrow, if it has one, reads Parquet files
    undo_changes_of_python()
    program = os.path.join(PACKAGE, "bin", "sinew")
    try:
        os.execv(program, ["sinew", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"sinew: cannot start {program}: {error.strerror} [INSTALL_NOT_STARTED]\n"
                 f"  try: install sinew again, on a file system from which programs may be started")


if __name__ == "__main__":
    main()
