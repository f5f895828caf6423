"""Control groups with a limit of memory, for tests and benchmarks. Making one needs root, and a hierarchy that can be
written."""
import os
import pathlib

ROOT = pathlib.Path("/sys/fs/cgroup")


def _own():
    """Returns the directory of this process's group, and whether it is one of v1."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return ROOT / "memory" / path.lstrip("/"), True
    if not (ROOT / "cgroup.controllers").exists():
        raise OSError("no hierarchy of memory groups is mounted")
    return next(ROOT / line.split(":", 2)[2].lstrip("/") for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines()
                if line.startswith("0::")), False


class MemoryGroup:
    """A group below that of this process. Raises OSError if it cannot be made."""

    def __init__(self, limit, name="sinew-memory"):
        own, self.v1 = _own()
        parent = own if own.is_dir() else ROOT / "memory" if self.v1 else ROOT  # a container may see its group as the root
        if not self.v1 and "memory" not in (parent / "cgroup.subtree_control").read_text().split():
            (parent / "cgroup.subtree_control").write_text("+memory")
        self.path = parent / f"{name}-{os.getpid()}-{limit}"
        self.path.mkdir()
        try:
            (self.path / ("memory.limit_in_bytes" if self.v1 else "memory.max")).write_text(str(limit))
            if not self.v1 and (self.path / "memory.swap.max").exists():
                (self.path / "memory.swap.max").write_text("0")
        except OSError:
            self.close()
            raise

    def enter(self):
        """Moves this process into the group; for preexec_fn."""
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def close(self):
        try:
            self.path.rmdir()
        except OSError:  # a process in it has not gone yet
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
