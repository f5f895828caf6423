"""Tests `sinew models`, `sinew data` and `sinew repro` with run directories like those that a training leaves.

The tests need no libtorch: a script takes the place of sinew-worker. SINEW names `sinew`."""
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import socket
import sqlite3
import stat
import struct
import subprocess
import tempfile
import time
import unittest

SINEW = os.environ.get("SINEW")

WORKER = """#!/bin/sh
# Plays sinew-worker.
field() { sed -n "s/.*\\"$1\\":\\"\\([^\\"]*\\)\\".*/\\1/p" "$TASK"; }
TASK=$1
test "$(field task)" = train || exit 9
cp "$(field job)" "$(field run_directory)/resolved.yaml"
cp -r "$FAKE_RUN"/. "$(field run_directory)"/
"""


def safetensors(path, tensors):
    """Writes float32 vectors by name, in the file format of the stock library."""
    header, data = {}, b""
    for name in sorted(tensors):
        raw = struct.pack(f"<{len(tensors[name])}f", *tensors[name])
        header[name] = {"dtype": "F32", "shape": [len(tensors[name])], "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Registry(unittest.TestCase):
    def setUp(self):
        self.assertTrue(SINEW, "SINEW names no program")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sinew-models-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / "train.csv").write_text("x,y\n1,2\n3,4\n")
        (self.folder / "job.yaml").write_text("name: prices\ndata: {train: train.csv, columns: {target: y}}\n")

    def sinew(self, *words, code=0, **environment):
        done = subprocess.run([SINEW, *words], cwd=self.folder, text=True, capture_output=True, timeout=120,
                              env={**os.environ, **environment})
        self.assertEqual(done.returncode, code, f"{words}\n{done.stdout}\n{done.stderr}")
        return done.stdout if code in (0, 4) else done.stderr

    def json(self, *words, code=0):
        return json.loads(self.sinew(*words, "--format", "json", code=code))

    def run_dir(self, name, accuracy, weights, digest=None, test="t" * 64):
        run = self.folder / "runs" / "prices" / name
        (run / "model").mkdir(parents=True)
        (run / "job.yaml").write_bytes((self.folder / "job.yaml").read_bytes())
        (run / "resolved.yaml").write_bytes((self.folder / "job.yaml").read_bytes())
        (run / "environment.json").write_text(json.dumps({"sinew": "0.1.0", "libtorch": "2.13.0", "cpu": "x"}))
        (run / "metrics.jsonl").write_text(
            "".join(json.dumps({"step": i, "samples": i, "time": 1.5 * i, "val/accuracy": accuracy}) + "\n" for i in range(1, 4)))
        (run / "data.json").write_text(json.dumps(
            {"format": "sinew-data", "version": 1, "digest": "d" * 64, "parts": {"test": {"digest": test}}}))
        safetensors(run / "model" / "model.safetensors", weights)
        (run / "model" / "model.json").write_text("{}")
        (run / "report.json").write_text(json.dumps(
            {"status": "done", "exit_code": 0, "job": "prices", "started": 1.0, "seconds": 2.0, "steps": 3, "samples": 3,
             "epochs": 1.0, "digest": digest or hashlib.md5(name.encode()).hexdigest(),
             "best": {"metric": "val/accuracy", "value": accuracy, "step": 3},
             "last": {"val/accuracy": accuracy, "test/accuracy": accuracy}}))
        return run

    def test_register_promote_roll_back(self):
        big = [0.5] * 20000
        self.run_dir("20261121T000001Z-a", 0.8, {"frozen": big, "head": [1.0] * 8000})
        self.run_dir("20261121T000002Z-b", 0.7, {"frozen": big, "head": [2.0] * 8000})
        self.run_dir("20261121T000003Z-c", 0.9, {"frozen": big, "head": [3.0] * 8000})
        for version, end in enumerate("abc", 1):
            made = self.json("models", "register", f"runs/prices/20261121T00000{version}Z-{end}", "--model", "m")
            self.assertEqual(made["version"], version)
        self.assertEqual(self.json("models"), [{"model": "m", "versions": 3, "aliases": {"candidate": 3}}])
        self.assertTrue(self.json("models", "promote", "m/1")["done"])
        refused = self.json("models", "promote", "m/2", code=4)
        self.assertFalse(refused["done"])
        self.assertIn("test/accuracy of version 2 is 0.7", refused["why"])
        self.assertIn("stays 1", self.sinew("models", "promote", "m/2", code=4))
        self.assertTrue(self.json("models", "promote", "m@candidate")["done"])
        self.assertEqual(self.json("models", "show", "m")["version"], 3)
        self.assertEqual(self.json("models", "rollback", "m")["to"], 1)
        self.assertEqual(self.json("models", "show", "m@champion")["version"], 1)
        forced = self.json("models", "promote", "m/2", "--force")
        self.assertTrue(forced["done"] and forced["why"].startswith("forced, although"))
        shown = self.sinew("models", "show", "m/1")
        for part in ("run: run prices/20261121T000001Z-a", "code: sinew 0.1.0", "check finite: passed", "model/model.safetensors"):
            self.assertIn(part, shown)
        self.assertIn("metric test/accuracy", self.sinew("models", "diff", "m/1", "m/2"))

        # Content that versions share is stored once, and it stays when the runs are deleted.
        artifacts = self.folder / "runs" / ".sinew" / "artifacts"
        bytes_kept = sum(f.stat().st_size for f in artifacts.rglob("*") if f.is_file())
        self.assertLess(bytes_kept, 80000 + 3 * (32000 + 8000))
        shutil.rmtree(self.folder / "runs" / "prices")
        self.assertIn("21 of 21 files intact", self.sinew("models", "verify"))
        self.assertEqual(self.json("models", "gc")["removed"], 0)
        victim = next(f for f in artifacts.rglob("*") if f.is_file() and f.stat().st_size == 80000)
        victim.write_bytes(b"x" * 80000)
        self.assertIn("is damaged", self.sinew("models", "verify", "m/2", code=4))

    def holder(self, process):
        """Returns a lease holder for this process, in the form that base/lease_holder writes. The process must still
        exist, if only as a zombie."""
        began = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[19]
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return json.dumps({"host": socket.gethostname(), "numbers": boot + " " + os.readlink("/proc/self/ns/pid"),
                           "pid": process, "began": began})

    def hold_the_index(self, holder):
        with contextlib.closing(sqlite3.connect(self.folder / "runs/.sinew/store.db", isolation_level=None)) as store:
            store.execute("UPDATE lease SET holder = ?, fence = fence + 1, until = ? WHERE name = 'registry.index'",
                          (holder, time.monotonic() + 1000))

    def test_last_means_the_newest_run_on_disk(self):
        self.run_dir("20261121T000001Z-a", 0.8, {"w": [1.0]})
        self.sinew("models", "register", "last")
        self.run_dir("20261121T000002Z-b", 0.9, {"w": [2.0]})
        dead = subprocess.Popen(["sleep", "60"])
        holder = self.holder(dead.pid)
        dead.kill()
        dead.wait()
        self.hold_the_index(holder)
        self.assertIn("prices/2", self.sinew("models", "register", "last"))
        self.run_dir("20261121T000003Z-c", 0.95, {"w": [3.0]})
        self.hold_the_index(self.holder(os.getpid()))
        refused = self.sinew("models", "register", "last", code=1)
        self.assertIn("20261121T000003Z-c is not in the store yet", refused)
        self.assertIn(str(os.getpid()), refused)

    def test_gc_with_an_empty_store_removes_nothing(self):
        self.run_dir("a1", 0.8, {"w": [1.0]})
        self.sinew("models", "register", "a1", "--store", "elsewhere.db")
        self.assertIn("there is no store", self.sinew("models", "gc", code=1))
        self.assertFalse((self.folder / "runs/.sinew/store.db").exists())
        self.sinew("models", "list")  # creates a store
        self.assertIn("[ARTIFACTS_FOREIGN]", self.sinew("models", "gc", code=1))
        self.assertIn("7 of 7", self.sinew("models", "verify", "--store", "elsewhere.db"))

    def test_other_test_data_and_bad_weights_are_refused(self):
        self.run_dir("a1", 0.8, {"w": [1.0]})
        self.run_dir("b2", 0.9, {"w": [2.0]}, test="u" * 64)
        self.run_dir("c3", 0.95, {"w": [float("nan")]})
        for run in ("a1", "b2", "c3"):
            self.sinew("models", "register", f"runs/prices/{run}")
        self.assertTrue(self.json("models", "promote", "prices/1")["done"])
        self.assertIn("different test data", self.json("models", "promote", "prices/2", code=4)["why"])
        self.assertTrue(self.json("models", "promote", "prices/2", "--allow", "other-data")["done"])
        self.assertIn("infinite or NaN", self.json("models", "promote", "prices/3", code=4)["why"])

    def test_the_metric_shown_is_the_one_compared(self):
        run = self.run_dir("a1", 0.8, {"w": [1.0]})
        report = json.loads((run / "report.json").read_text())
        report["best"]["metric"] = "train/loss"  # this metric was not measured at the end
        (run / "report.json").write_text(json.dumps(report))
        self.assertIn("test/accuracy 0.8", self.sinew("models", "register", "runs/prices/a1"))
        self.assertIn("test/accuracy 0.8", self.sinew("models", "show", "prices"))
        self.assertIn("test/accuracy is 0.8", self.json("models", "promote", "prices")["why"])

    def test_errors_name_what_is_missing(self):
        (self.folder / "runs").mkdir()
        self.assertIn("no models yet", self.sinew("models"))
        for words in (("promote", "m"), ("show", "m/3"), ("register", "nothing"), ("rollback", "m")):
            self.assertIn("try:", self.sinew("models", *words, code=1))
        for words in (("promote",), ("dance",), ("list", "--margin", "x"), ("gc", "--root")):
            self.assertIn("try:", self.sinew("models", *words, code=2))

    def test_data_reports_what_changed(self):
        (self.folder / "d").mkdir()
        (self.folder / "d" / "one").write_text("1")
        self.sinew("data", "record", "d", "before.json")
        self.sinew("data", "diff", "before.json", "d")
        (self.folder / "d" / "two").write_text("2")
        self.assertEqual(self.json("data", "diff", "before.json", "d", code=4)["changes"], ["train: added path/two"])
        run = self.run_dir("a1", 0.8, {"w": [1.0]})
        status = json.loads(self.sinew("data", "status", "job.yaml", "--format", "json", code=4))
        self.assertEqual(status["against"], str(run.relative_to(self.folder)))
        self.assertIn("1 files, 12 B", self.sinew("data", "status", "train.csv"))
        self.assertIn("try:", self.sinew("data", "status", "nothing", code=1))

    def test_gc_frees_a_deleted_version(self):
        self.run_dir("a1", 0.8, {"w": [1.0]})
        self.run_dir("b2", 0.9, {"w": [2.0]})
        for run in ("a1", "b2"):
            self.sinew("models", "register", run)
        self.assertIn("is the candidate", self.sinew("models", "delete", "prices/2", code=1))
        self.assertIn("number", self.sinew("models", "delete", "prices", code=2))
        self.sinew("models", "delete", "prices/1")
        self.assertGreater(self.json("models", "gc")["removed"], 0)
        self.assertIn("7 of 7", self.sinew("models", "verify"))

    def test_names_send_no_control_characters_to_the_terminal(self):
        (self.folder / "d").mkdir()
        self.sinew("data", "record", "d", "before.json")
        (self.folder / "d" / "a\x1b[31mb").write_text("1")
        self.assertIn("added path/a?[31mb", self.sinew("data", "diff", "before.json", "d", code=4))
        self.run_dir("a1", 0.8, {"w": [1.0]})
        for words in (("register", "a1", "--model", "m\x1b[2J"), ("list",), ("show", "m\x1b[2J"), ("promote", "m\x1b[2J")):
            self.assertNotIn("\x1b", self.sinew("models", *words))

    def test_only_promote_makes_a_champion(self):
        self.run_dir("a1", 0.8, {"w": [1.0]})
        said = self.sinew("models", "register", "a1", "--alias", "champion", code=2)
        self.assertIn("try: sinew models register RUN, then sinew models promote MODEL@candidate", said)
        self.assertEqual(self.json("models", "list"), [])
        self.sinew("models", "register", "a1")
        self.assertIn("the alias release stays where it was", self.sinew("models", "register", "a1", "--alias", "release"))
        self.assertIn("try: sinew models list", self.sinew("models", "lst", code=2))

    def test_repro_compares_the_digests(self):
        worker = self.folder / "worker"
        worker.write_text(WORKER)
        worker.chmod(worker.stat().st_mode | stat.S_IXUSR)
        recorded = self.run_dir("a1", 0.8, {"w": [1.0]}, digest="1" * 32)
        again = self.folder / "again"
        shutil.copytree(recorded, again)
        (again / "data.json").unlink()
        environment = {"SINEW_WORKER": str(worker), "FAKE_RUN": str(again)}
        self.assertIn("same: same digest", self.sinew("repro", "a1", "--run-dir", "runs/new/x1", **environment))
        written = json.loads((self.folder / "runs/new/x1/data.json").read_text())
        self.assertEqual(written["parts"]["train"]["files"][0][3],
                         hashlib.sha256((self.folder / "train.csv").read_bytes()).hexdigest())

        report = json.loads((again / "report.json").read_text())
        (again / "report.json").write_text(json.dumps({**report, "digest": "2" * 32}))
        (again / "environment.json").write_text(json.dumps({"sinew": "0.1.0", "libtorch": "2.14.0", "cpu": "x"}))
        (recorded / "data.json").write_text((self.folder / "runs/new/x1/data.json").read_text())
        said = self.sinew("repro", "a1", "--run-dir", "runs/new/x2", code=4, **environment)
        self.assertIn("likely cause: the environment differs: libtorch was 2.13.0, is 2.14.0", said)
        self.assertIn("NOT the same", self.sinew("repro", "a1", "--against", "runs/new/x2", code=4))
        state = recorded / "checkpoints/step-00000002/state.json"
        state.parent.mkdir(parents=True)
        state.write_text(json.dumps({"control": [{"step": 1, "kind": "learning_rate", "value": 0.5, "reason": ""}]}))
        self.assertIn("[RUN_STEERED]", self.sinew("repro", "a1", code=1, **environment))
        recorded_report = json.loads((recorded / "report.json").read_text())
        (recorded / "report.json").write_text(json.dumps({**recorded_report, "status": "stopped"}))
        self.assertIn("[RUN_INCOMPLETE]", self.sinew("repro", "a1", code=1, **environment))
        (recorded / "report.json").write_text(json.dumps({**recorded_report, "steps": 9}))
        self.assertIn("[RUNS_NOT_COMPARABLE]", self.sinew("repro", "a1", "--against", "runs/new/x2", code=1))
        (recorded / "report.json").unlink()
        self.assertIn("[RUN_INCOMPLETE]", self.sinew("repro", "a1", code=1, **environment))


if __name__ == "__main__":
    unittest.main()
