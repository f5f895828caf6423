"""Tests the parts of `sinew train` and `sinew inspect` that need no tensor half. SINEW names the program."""
import fcntl
import json
import os
import pathlib
import pty
import struct
import subprocess
import tempfile
import unittest

SINEW = os.environ.get("SINEW", "build/plain/bin/sinew")


class Plain(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def sinew(self, *arguments, **environment):
        return subprocess.run([os.path.abspath(SINEW), *arguments], cwd=self.path, capture_output=True, timeout=60,
                              env={"PATH": os.environ["PATH"], **environment})


class Pack(Plain):
    def test_the_printed_lines_are_a_job_with_the_same_data_options(self):
        for i in range(8):
            image = self.path / "images" / "ab"[i % 2] / f"{i}.bmp"
            image.parent.mkdir(parents=True, exist_ok=True)
            pixels = bytes([i, 7 * i, 100 + i, 0]) * 12
            image.write_bytes(b"BM" + struct.pack("<IIIIiiHHIIiiII", 54 + 48, 0, 54, 40, 4, 3, 1, 32, 0, 48, 0, 0, 0, 0) + pixels)
        options = "normalize: none, on_corrupt: skip, augment: {flip: 0.5, scale: [0.9, 1.1]}, image: {channels: 1, size: [3, 4]}"
        (self.path / "job.yaml").write_text(f"data: {{format: image_folder, train: images, split: {{val: 0.25}}, {options}}}\n")
        folder = 'a "new" $folder'
        done = self.sinew("data", "pack", "job.yaml", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.decode().split("no longer needed:\n")[1]
        for line in ("  format: webdataset\n", "  normalize: none\n", "  on_corrupt: skip\n", "    flip: 0.5\n", "    scale: [0.9, 1.1]\n",
                     "    channels: 1\n", "    size: [3, 4]\n"):
            self.assertIn(line, lines)
        self.assertNotIn("split", lines)
        (self.path / "packed.yaml").write_text(lines)
        again = self.sinew("data", "pack", "packed.yaml", "again")
        self.assertEqual(again.returncode, 0, again.stderr)
        tars = sorted(file.name for file in (self.path / folder).glob("*.tar"))
        self.assertEqual(tars, ["train-000000.tar", "val-000000.tar"])
        for name in tars:
            self.assertEqual((self.path / folder / name).read_bytes(), (self.path / "again" / name).read_bytes())


class Begin(Plain):
    """A worker that dies before it writes resolved.yaml has done nothing, so the run can begin again in the same
    directory."""

    def setUp(self):
        super().setUp()
        worker = self.path / "worker"
        worker.write_text("#!/bin/sh\ncat \"$1\"\nexit 1\n")
        worker.chmod(0o755)
        for name in ("a", "b"):
            (self.path / f"{name}.csv").write_text("x,y\n1,a\n2,b\n" if name == "a" else "x,y\n5,a\n7,b\n8,b\n")
            self.job(name)
        self.run_directory = self.path / "run"

    def job(self, name, more=""):
        (self.path / f"{name}.yaml").write_text(
            f"data: {{train: {name}.csv, columns: {{target: y}}}}\n{more}")

    def train(self, job, *words):
        return self.sinew("train", f"{job}.yaml", "--run-dir", "run", *words, SINEW_WORKER=str(self.path / "worker"))

    def test_a_run_that_never_began_begins_again_with_the_current_job(self):
        self.assertEqual(self.train("a").returncode, 1)
        data = json.loads((self.run_directory / "data.json").read_text())
        for words in ((), ("--resume",)):
            done = self.train("b", *words)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(b'"task":"train","job":"b.yaml","job_text":"data: {train: b.csv', done.stdout)
            self.assertIn("b.csv", (self.run_directory / "job.yaml").read_text())
            self.assertNotEqual(json.loads((self.run_directory / "data.json").read_text())["digest"], data["digest"])
            self.assertEqual(self.train("a", *words).returncode, 1)
            self.assertEqual(json.loads((self.run_directory / "data.json").read_text()), data)

    def test_a_run_that_has_begun_is_left_alone(self):
        self.train("a")
        (self.run_directory / "resolved.yaml").write_text((self.path / "a.yaml").read_text())
        for words, said in (((), b"already holds a run"), (("--resume",), b"changed since the run")):
            done = self.train("b", *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)
            self.assertIn("a.csv", (self.run_directory / "job.yaml").read_text())
        self.assertIn(b'"job":"run/resolved.yaml"', self.train("a", "--resume").stdout)

    def test_a_run_that_is_about_to_begin_is_left_alone(self):
        self.train("a")
        with open(self.run_directory / ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = self.train("b")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("a.csv", (self.run_directory / "job.yaml").read_text())


class Init(Plain):
    def setUp(self):
        super().setUp()
        (self.path / "a.csv").write_text("x,y\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(40)))
        (self.path / "unclear.csv").write_text("a,b\n" + "".join(f"{i},{i * i % 7}\n" for i in range(40)))

    def worker(self, script):
        worker = self.path / "worker"
        worker.write_text("#!/bin/sh\n" + script)
        worker.chmod(0o755)
        return {"SINEW_WORKER": str(worker)}

    def test_the_next_command_is_named_only_if_the_first_step_works(self):
        done = self.sinew("init", "a.csv", **self.worker("echo sinew: boom; exit 1\n"))
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"the first step of job.yaml fails:\nsinew: boom", done.stderr)
        self.assertNotIn(b"next:", done.stdout)
        done = self.sinew("init", "a.csv", "--force",
                          **self.worker("echo 'model mlp'; echo 'step        the first    loss 0.7 of 32 samples'\n"))
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertIn(b"its first step works: loss 0.7 of 32 samples\nnext: sinew train job.yaml\n", done.stdout)

    def test_a_person_is_asked_for_an_unclear_target(self):
        alone = self.sinew("init", "unclear.csv", **self.worker("exit 0\n"))
        self.assertEqual(alone.returncode, 1)
        self.assertIn(b"--target", alone.stderr)
        here, there = pty.openpty()
        process = subprocess.Popen([os.path.abspath(SINEW), "init", "unclear.csv"], cwd=self.path, stdin=there, stdout=there,
                                   stderr=there, env={"PATH": os.environ["PATH"], **self.worker("exit 0\n")})
        os.close(there)
        os.write(here, b"c\nb\n")
        shown = b""
        while True:
            try:
                piece = os.read(here, 4096)
            except OSError:  # the terminal is closed
                break
            if not piece:
                break
            shown += piece
        self.assertEqual(process.wait(60), 0, shown)
        os.close(here)
        self.assertEqual(shown.count(b"column to predict: "), 3, "the message, and two questions: " + str(shown))
        self.assertIn(b"has no column 'c'", shown)
        self.assertIn(b"target: b", (self.path / "job.yaml").read_bytes())


class Inspect(Plain):
    """A tensor's name comes from a file of any origin, so `sinew inspect` must not print its control characters."""

    def test_names_hold_no_control_characters(self):
        names = ["plain.weight", "\x1b]0;title\x07", "a\x1b[2Jb\r\tc\x7f", "\u009b31m", "line\nbreak"]
        header = {name: {"dtype": "F32", "shape": [1], "data_offsets": [4 * i, 4 * i + 4]}
                  for i, name in enumerate(names)}
        text = json.dumps(header).encode()
        path = self.path / "hostile.safetensors"
        path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(4 * len(names)))
        done = self.sinew("inspect", path.name)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertIn(b"plain.weight", done.stdout)
        self.assertIn(b"a?[2Jb??c?", done.stdout)
        bad = [byte for byte in done.stdout if (byte < 0x20 and byte != 0x0A) or byte == 0x7F]
        self.assertEqual(bad, [])
        self.assertNotIn("\u009b", done.stdout.decode())
        self.assertEqual(len(done.stdout.splitlines()), 1 + len(names))

    def test_an_error_holds_no_control_characters(self):
        (self.path / "a\x1b]0;title\x07\u009b31m.pt2").write_bytes(b"PK\x03\x04 no archive")
        done = self.sinew("inspect", "a\x1b]0;title\x07\u009b31m.pt2")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(b"a?]0;title??31m.pt2", done.stderr)
        self.assertEqual([byte for byte in done.stderr if (byte < 0x20 and byte != 0x0A) or byte == 0x7F], [])
        self.assertNotIn("\u009b", done.stderr.decode())
        self.assertIn(b"\n  try: ", done.stderr)


class Runs(Plain):
    def setUp(self):
        super().setUp()
        for number, (status, loss) in enumerate((("done", 0.5), ("done", 0.25), ("failed", 0.75))):
            folder = self.path / "runs" / "a" / f"20261101T00000{number}Z-000{number}"
            folder.mkdir(parents=True)
            (folder / "resolved.yaml").write_text(f"name: a\noptimizer:\n  lr: {0.1 * (number + 1):.1f}\n")
            (folder / "metrics.jsonl").write_text(
                json.dumps({"step": 1, "samples": 8, "time": 1.8e9, "val/loss": loss}) + "\n")
            (folder / "report.json").write_text(json.dumps({"format": 1, "status": status, "exit_code": 0, "job": "a"}))

    def rows(self, *words):
        done = self.sinew("runs", *words, "--format", "csv", "--columns", "run")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return [line[-4:] for line in done.stdout.decode().split("\n")[1:-1]]

    def test_a_list_is_filtered_and_sorted(self):
        self.assertEqual(self.rows(), ["0002", "0001", "0000"])
        self.assertEqual(self.rows("--sort", "val/loss"), ["0001", "0000", "0002"])
        self.assertEqual(self.rows("--where", "val/loss<0.7", "--where", "optimizer.lr >= 0.2"), ["0001"])
        self.assertEqual(self.rows("--where", "status!=done"), ["0002"])
        self.assertEqual(self.rows("--limit", "1"), ["0002"])
        table = self.sinew("runs", "--columns", "run,val/loss", "--sort", "val/loss").stdout.decode().splitlines()
        self.assertEqual(table[0].split(), ["run", "val/loss"])
        self.assertEqual(table[1].split(), ["20261101T000001Z-0001", "0.2500"])
        none = self.sinew("runs", "--where", "val/loss<0")
        self.assertIn(b"none of 3 runs", none.stdout)
        wrong = self.sinew("runs", "--where", "vall/loss<0")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn(b"did you mean 'val/loss'", wrong.stderr)

    def test_a_deleted_run_comes_back(self):
        self.assertEqual(self.sinew("runs", "delete", "0001").returncode, 0)
        self.assertEqual(self.rows(), ["0002", "0000"])
        self.assertEqual(self.rows("--deleted"), ["0001"])
        back = self.sinew("runs", "restore", "0001")
        self.assertEqual((back.returncode, back.stdout), (0, b"runs/a/20261101T000001Z-0001 is back\n"))
        self.assertEqual(self.rows(), ["0002", "0001", "0000"])
        self.sinew("runs", "delete", "0001")
        self.sinew("runs", "delete", "0002")
        self.assertEqual(self.sinew("runs", "gc", "0002").stdout, b"1 run removed for good\n")
        self.assertEqual(self.rows("--deleted"), ["0001"])
        self.assertEqual(self.sinew("runs", "gc").stdout, b"1 run removed for good\n")
        self.assertEqual(self.sinew("runs", "restore", "0001").returncode, 1)
        self.assertEqual(self.rows(), ["0000"])


if __name__ == "__main__":
    unittest.main()
