"""Checks that rooms include each other in one direction only (ARCHITECTURE.md, "Rooms and directions")."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Room -> rooms that it may include. No two rooms include each other.
MAY_INCLUDE = {
    "base": [],
    "plot": ["base"],
    "forecast": ["base"],
    "spec": ["base"],
    "store": ["base"],
    "rundir": ["base", "spec"],
    "task": ["base"],
    "supervise": ["base", "spec", "http", "sandbox", "rundir", "task", "cluster", "report"],
    "checkpoint": ["base", "spec"],
    "report": ["base", "plot", "forecast", "spec", "rundir"],
    "http": ["base"],
    "sandbox": ["base", "http"],
    "link": ["base"],
    "registry": ["base", "spec", "store", "rundir", "checkpoint", "report"],
    "cluster": ["base", "spec", "http", "rundir"],
    "group": ["base", "checkpoint", "link", "cluster"],
    "web": ["base", "http", "store", "registry", "cluster"],
    "server": ["base", "http", "store", "report", "registry", "cluster", "web"],
    "program": ["base"],
    "data": ["base", "spec"],
    "tune": ["base", "spec", "forecast"],
    "model": ["base", "spec", "checkpoint", "report", "program", "data"],
    "loop": ["base", "forecast", "spec", "rundir", "checkpoint", "report", "cluster", "group", "data"],
    "train": ["base", "spec", "rundir", "checkpoint", "report", "data", "loop", "model", "advise"],
    "onnx": ["base", "data"],
    "exports": ["base", "spec", "rundir", "checkpoint", "data", "model", "train", "onnx"],
    "distribute": ["base", "spec", "checkpoint", "link", "cluster", "group", "data", "loop", "model", "train"],
    "advise": ["base", "forecast", "spec", "rundir"],
    "jobs": ["base", "spec", "rundir", "checkpoint", "report"],
    "study": ["base", "spec", "rundir", "checkpoint", "report", "registry", "tune", "jobs"],
    "cli": ["base", "spec", "store", "http", "sandbox", "rundir", "checkpoint", "report", "registry", "program", "task", "cluster", "supervise", "data", "tune", "jobs", "study", "web", "server", "advise"],
    "worker": ["base", "spec", "sandbox", "task", "checkpoint", "report", "link", "cluster", "group", "program", "data", "model", "train", "exports", "distribute", "advise"],
}
PLAIN = {"base", "plot", "forecast", "spec", "store", "http", "sandbox", "link", "rundir", "task", "checkpoint", "report", "registry", "program", "cluster", "supervise", "group", "data", "onnx", "loop", "tune", "jobs", "study", "web", "server", "advise", "cli"}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.MULTILINE)


def problems_in(room, name, text):
    """Returns a message for every forbidden include of one file."""
    found = []
    for quote, target in INCLUDE.findall(text):
        if room in PLAIN and re.match(r"(torch|ATen|c10|caffe2)/", target):
            found.append(f"{name}: the plain half includes {target}")
        if room != "tune" and target.startswith("eigen3/"):
            found.append(f"{name}: linear algebra is of tune/ alone, but this includes {target}")
        other = target.split("/")[0]
        if quote != '"' or other == room:
            continue
        if other not in MAY_INCLUDE:
            found.append(f"{name}: {target} is in no room")
        elif other not in MAY_INCLUDE[room]:
            found.append(f"{name}: {room}/ must not include {other}/ ({target})")
        elif other != "base" and target != f"{other}/{other}.h":
            found.append(f"{name}: include {other}/{other}.h, not {target}")
    return found


class Layers(unittest.TestCase):
    def test_every_folder_is_a_known_room(self):
        self.assertEqual({p.name for p in (ROOT / "src").iterdir() if p.is_dir()}, set(MAY_INCLUDE))

    def test_no_file_includes_against_the_direction(self):
        found = []
        for path in sorted((ROOT / "src").rglob("*")):
            if path.suffix in (".h", ".cpp"):
                room = path.relative_to(ROOT / "src").parts[0]
                found += problems_in(room, str(path.relative_to(ROOT)), path.read_text())
        self.assertEqual(found, [])

    def test_the_build_has_the_same_plain_rooms(self):
        built = re.findall(r"^sinew_rooms\(\w+ PLAIN ([\w\s]+)\)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
        self.assertEqual(sorted(" ".join(built).split()), sorted(PLAIN))

    def test_the_rules_have_no_two_way_pair(self):
        for room, others in MAY_INCLUDE.items():
            for other in others:
                self.assertNotIn(room, MAY_INCLUDE[other], f"{room} and {other} include each other")

    def test_a_forbidden_include_is_found(self):
        self.assertTrue(problems_in("data", "x.cpp", '#include "train/train.h"\n'))
        self.assertTrue(problems_in("data", "x.cpp", "#include <torch/torch.h>\n"))
        self.assertTrue(problems_in("data", "x.cpp", "#include <eigen3/Eigen/Core>\n"))
        self.assertTrue(problems_in("train", "x.cpp", '#include "data/order.h"\n'))
        self.assertFalse(problems_in("train", "x.cpp", '#include "data/data.h"\n#include "base/ids.h"\n'))


if __name__ == "__main__":
    unittest.main()
