"""Tests trainings on a machine that gives them too little: closed streams, few open files, a small stack, no directory.
"""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

import sinew_process as sp


class Limits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        cls.job = sp.write_job(cls.path, 60)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def shell(self, before, *words, **options):
        """Runs sinew from a shell that first runs `before`."""
        return subprocess.run(["bash", "-c", before + '; exec "$@"', "shell", *sp.command(*words)], capture_output=True, text=True,
                              timeout=300, **options)

    def assert_refused(self, done, code, text):
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(f"[{code}]", done.stderr)
        self.assertIn(text, done.stderr)
        self.assertIn("  try: ", done.stderr)
        self.assertLessEqual(len(done.stderr.splitlines()), 2)

    def test_closed_streams_change_no_file(self):
        for streams in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
            for workers in ([], ["--workers", "2"]):
                directory = pathlib.Path(tempfile.mkdtemp(dir=self.path)) / "run"
                done = self.shell(f"exec {streams}", "train", self.job, "--run-dir", directory, "--ledger", *workers)
                self.assertEqual(done.returncode, 0, (streams, done.stderr))
                self.assertRegex((directory / ".lock").read_text(), r"^pid \d+ on .*\n$", streams)
                for name in ("log.jsonl", "metrics.jsonl", "ledger.jsonl"):
                    for line in (directory / name).read_text().splitlines():
                        self.assertIsInstance(json.loads(line), dict, (streams, name))
                for events in directory.glob("events*"):
                    self.assertNotIn(b"samples/s", events.read_bytes(), streams)

    def test_few_open_files_are_refused(self):
        for limit in (8, 16):
            for workers in ([], ["--workers", "2"]):
                done = self.shell(f"ulimit -n {limit}", "train", self.job, "--run-dir", self.path / "files", *workers)
                self.assert_refused(done, "LIMIT_TOO_LOW", f"only {limit} files")
        done = self.shell("ulimit -Sn 16", "train", self.job, "--run-dir", self.path / "soft-files", "--workers", "2")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_small_stack_is_refused(self):
        done = self.shell("ulimit -s 256", "train", self.job, "--run-dir", self.path / "stack")
        self.assert_refused(done, "LIMIT_TOO_LOW", "256 KiB")
        for workers in ([], ["--workers", "2"]):
            done = self.shell("ulimit -Ss 256", "train", self.job, "--run-dir", self.path / f"soft-stack-{len(workers)}",
                              "trainer.lanes=2", *workers)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_too_little_address_space_is_refused(self):
        for workers in ([], ["--workers", "2"]):
            done = self.shell("ulimit -v 400000", "train", self.job, "--run-dir", self.path / f"space-{len(workers)}", *workers)
            self.assert_refused(done, "LIMIT_TOO_LOW", "400000 KiB")

    def test_cpu_time_that_ends_every_worker_ends_the_run(self):
        done = self.shell("ulimit -t 1", "train", self.job, "--run-dir", self.path / "cpu", "--workers", "1",
                          "trainer.max_duration=10000000st", "checkpoint.interval=1000000st")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("the limit of CPU time (ulimit -t) ends every worker", done.stderr)
        self.assertIn("ulimit -t", sp.report(self.path / "cpu")["error"])

    def test_a_removed_working_directory_is_named(self):
        gone = tempfile.mkdtemp(dir=self.path)
        done = self.shell(f"rmdir {gone}", "train", self.job, cwd=gone)
        self.assert_refused(done, "WORKING_DIRECTORY_REMOVED", "working directory")

    def test_no_home_and_no_tmpdir(self):
        done = self.shell("unset HOME; export TMPDIR=/no/such/directory", "train", self.job, "--run-dir", self.path / "home",
                          "--workers", "2")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_record_file_that_cannot_be_written_stops_no_checkpoint(self):
        directory = self.path / "unwritable"
        (directory / "ledger.jsonl").mkdir(parents=True)
        done = sp.run("train", self.job, "--run-dir", directory, "--ledger", "--workers", "2", check=0)
        self.assertIn("ledger.jsonl", done.stdout + done.stderr)
        self.assertTrue((directory / "checkpoints" / "step-00000060").is_dir(), done.stdout + done.stderr)

    def test_the_report_quotes_a_worker_that_failed_early(self):
        directory = self.path / "early"
        done = sp.run("train", self.job, f"data.train.images={self.path}/none", "--run-dir", directory, "--workers", "2")
        self.assertEqual(done.returncode, 1, done.stderr)
        report = sp.report(directory)
        self.assertIn(f"{self.path}/none", report["error"])
        self.assertRegex(report["error"], r"\[[A-Z_]+\]")

    def test_timeout_stops_the_run_with_a_checkpoint(self):
        for workers in ([], ["--workers", "2"]):
            directory = self.path / f"timeout-{len(workers)}"
            done = subprocess.run(["timeout", "--preserve-status", "4",
                                   *sp.command("train", self.job, "--run-dir", directory, "trainer.max_duration=100000st", *workers)],
                                  capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 75, done.stderr)
            report = sp.report(directory)
            self.assertEqual((report["status"], report["exit_code"]), ("stopped", 75))
            self.assertTrue((directory / "checkpoints" / f"step-{report['steps']:08d}").is_dir())

    def test_a_signal_to_all_processes_gives_the_code_of_the_report(self):
        codes = set()
        for number, delay in enumerate((0.0, 0.4, 0.8, 1.2)):
            directory = self.path / f"all-{number}"
            process = sp.start("train", self.job, "--run-dir", directory, "--ledger", "--workers", "2", "trainer.max_duration=400st")
            self.assertTrue(sp.wait_for(lambda: sp.step_of(directory) > 5 or process.poll() is not None))
            time.sleep(delay)
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
            pids = [process.pid, *map(int, children.read_text().split())] if process.poll() is None else []
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGTERM)
                except ProcessLookupError:
                    pass
            process.wait(120)
            process.stderr.close()
            codes.add(process.returncode)
            self.assertEqual(process.returncode, sp.report(directory)["exit_code"])
            self.assertIn(process.returncode, (0, 75))
        self.assertTrue(codes)


if __name__ == "__main__":
    unittest.main()
