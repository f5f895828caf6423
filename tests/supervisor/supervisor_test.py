"""Runs `sinew train --workers N` with its real supervisor and coordinator, and workers that only pretend to train."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SINEW = os.environ.get("SINEW", str(ROOT / "build/plain/bin/sinew"))
FAKE = str(pathlib.Path(__file__).parent / "fake_worker.py")
LONG = 120  # a timeout; a test that passes does not wait for it


def wait_for(condition, seconds=LONG):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    return None


def processes_of(directory):
    """Returns the living processes whose arguments or environment name this run directory."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if entry.joinpath("stat").read_text().rsplit(")", 1)[1].split()[0] == "Z" or int(entry.name) == os.getpid():
                continue
            if str(directory).encode() in entry.joinpath("cmdline").read_bytes() + entry.joinpath("environ").read_bytes():
                found.append(int(entry.name))
        except (OSError, IndexError):
            continue
    return found


class Run:
    """One supervised run in its own directory."""

    def __init__(self, test, workers, *words, launcher=False, program=SINEW, **variables):
        self.test = test
        self.program = program
        self.how = ["--launcher", "env"] if launcher else ["--workers", str(workers)]
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        self.directory = self.path / "run"
        (self.path / "job.yaml").write_text("name: pretend\ndata: {train: x.csv}\n")
        self.errors = self.path / "errors"
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(
                self.command(*words), stdout=subprocess.DEVNULL, stderr=errors, cwd=self.path,
                env={**os.environ, "SINEW_WORKER": FAKE, **variables})

    def command(self, *words):
        return [str(self.program), "train", str(self.path / "job.yaml"), "--run-dir", str(self.directory), *self.how, *words]

    def __enter__(self):
        return self

    def __exit__(self, *rest):
        self.process.kill()
        self.process.wait(LONG)
        left = wait_for(lambda: not processes_of(self.directory))
        self.test.assertTrue(left, f"left behind: {processes_of(self.directory)}")
        self.folder.cleanup()

    def sinew(self, *words):
        return subprocess.run([SINEW, *words], capture_output=True, text=True, timeout=LONG, cwd=self.path)

    def file(self):
        try:
            return json.loads((self.directory / "coordinator.json").read_text())
        except (OSError, ValueError):
            return {}

    def status(self):
        done = self.sinew("ps", str(self.directory), "--json")
        return json.loads(done.stdout) if done.returncode == 0 else {"members": []}

    def pids(self):
        """Returns the process ids of the members that compute."""
        return {member["pid"] for member in self.status()["members"] if member["phase"] == "computing" and member["in_view"]}

    def wait_computing(self, count, without=()):
        def there():
            pids = self.pids()
            return pids if len(pids) == count and not pids & set(without) else None
        pids = wait_for(there)
        self.test.assertIsNotNone(pids, self.said())
        return pids

    def ends(self, code):
        try:
            self.process.wait(LONG)
        except subprocess.TimeoutExpired:
            self.test.fail("did not end: " + self.said())
        self.test.assertEqual(self.process.returncode, code, self.said())
        self.test.assertTrue(wait_for(lambda: not processes_of(self.directory)), processes_of(self.directory))

    def started(self):
        return [json.loads(line) for line in (self.directory / "started").read_text().splitlines()]

    def said(self):
        log = self.directory / "coordinator.log"
        return self.errors.read_text() + (log.read_text() if log.exists() else "")


class Supervisor(unittest.TestCase):
    def test_a_run_ends_with_its_code_and_leaves_no_process(self):
        with Run(self, 3) as run:
            run.wait_computing(3)
            self.assertEqual(oct(run.directory.joinpath("coordinator.json").stat().st_mode & 0o777), "0o600")
            (run.directory / "finish").touch()
            run.ends(0)
            self.assertEqual(run.file()["exit_code"], 0)
            self.assertEqual(len(run.started()), 3, "nobody is started anew at the end")
            ps = run.sinew("ps", str(run.directory))
            self.assertEqual(ps.returncode, 1)
            self.assertIn("[RUN_NOT_RUNNING]", ps.stderr)

    def test_a_killed_worker_is_replaced_and_the_others_stay(self):
        with Run(self, 3) as run:
            before = run.wait_computing(3)
            victim = sorted(before)[1]
            os.kill(victim, signal.SIGKILL)
            after = run.wait_computing(3, without=[victim])
            self.assertEqual(len(after & before), 2, run.said())
            self.assertIn(f"(pid {victim}) was killed by SIGKILL at step", run.errors.read_text())
            self.assertTrue(run.started()[3]["resume"])
            self.assertFalse(run.started()[0]["resume"])

    def test_a_worker_that_must_rejoin_is_restarted(self):
        with Run(self, 2) as run:
            before = run.wait_computing(2)
            victim = min(before)
            (run.directory / f"exit-{victim}").write_text("76")
            after = run.wait_computing(2, without=[victim])
            self.assertEqual(len(after & before), 1)
            self.assertIn("joins again", run.errors.read_text())

    def test_a_killed_coordinator_is_replaced_and_the_workers_stay(self):
        with Run(self, 2) as run:
            before = run.wait_computing(2)
            first = run.file()
            os.kill(first["pid"], signal.SIGKILL)
            self.assertTrue(wait_for(lambda: run.file()["pid"] != first["pid"]), run.said())
            second = run.file()
            self.assertEqual((second["incarnation"], second["secret"]), (first["incarnation"] + 1, first["secret"]))
            self.assertEqual(run.wait_computing(2), before, run.said())
            (run.directory / "finish").touch()
            run.ends(0)

    def test_a_program_that_was_replaced_restarts_its_coordinator(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(shutil.copy(SINEW, folder))
            with Run(self, 2, program=program) as run:
                before = run.wait_computing(2)
                program.unlink()
                program.write_text("#!/bin/false\n")
                program.chmod(0o755)
                first = run.file()
                os.kill(first["pid"], signal.SIGKILL)
                self.assertTrue(wait_for(lambda: run.file()["incarnation"] > first["incarnation"] and run.pids()), run.said())
                self.assertEqual(run.wait_computing(2), before, run.said())
                (run.directory / "finish").touch()
                run.ends(0)

    def test_a_worker_that_cannot_be_started_is_tried_again(self):
        with tempfile.TemporaryDirectory() as folder:
            worker = pathlib.Path(shutil.copy(FAKE, folder))
            with Run(self, 2, SINEW_WORKER=str(worker)) as run:
                before = run.wait_computing(2)
                away = worker.rename(worker.with_suffix(".away"))
                victim = min(before)
                os.kill(victim, signal.SIGKILL)
                self.assertTrue(wait_for(lambda: "sinew tries again" in run.errors.read_text()), run.said())
                self.assertEqual(run.wait_computing(1), before - {victim}, "the other lives")
                away.rename(worker)
                run.wait_computing(2, without=[victim])
                (run.directory / "finish").touch()
                run.ends(0)

    def test_scale_and_ps(self):
        with Run(self, 1) as run:
            first = run.wait_computing(1)
            done = run.sinew("scale", str(run.directory), "3")
            self.assertEqual(done.returncode, 0, done.stderr)
            three = run.wait_computing(3)
            self.assertTrue(first < three)
            shown = run.sinew("ps", "--root", str(run.path), "last")
            self.assertEqual(shown.returncode, 0, shown.stderr)
            self.assertIn("3 of 3 workers, step ", shown.stdout)
            for pid in three:
                self.assertIn(f" {pid} ", shown.stdout)
            self.assertIn("\nlast decisions (times in UTC):\n", shown.stdout)
            self.assertIn("computing*", shown.stdout)
            run.sinew("scale", str(run.directory), "1")
            self.assertEqual(run.wait_computing(1), first, "the newest leave")
            self.assertTrue(wait_for(lambda: len(run.status()["members"]) == 1))
            (run.directory / "finish").touch()
            run.ends(0)

    def test_a_second_supervisor_is_refused(self):
        with Run(self, 2) as run:
            before = run.wait_computing(2)
            done = run.sinew("resume", str(run.directory), "--workers", "2")
            self.assertEqual(done.returncode, 1)
            self.assertIn("sinew ps", done.stderr)
            self.assertEqual(run.pids(), before)

    def test_a_joiner_can_see_that_the_run_has_a_ledger_before_its_first_step(self):
        with Run(self, 1, "--ledger") as run:  # these workers write no ledger
            run.wait_computing(1)
            self.assertTrue((run.directory / "ledger.jsonl").exists())
        with Run(self, 1) as run:
            run.wait_computing(1)
            self.assertFalse((run.directory / "ledger.jsonl").exists())

    def test_control_reaches_the_leader(self):
        with Run(self, 2) as run:
            run.wait_computing(2)
            for wish, kind, value in (("lr=0.5", "learning_rate", 0.5), ("checkpoint", "checkpoint", 0),
                                      ("batch-size=128", "batch_size", 128)):
                done = run.sinew("control", str(run.directory), wish, "--reason", "a test")
                self.assertEqual(done.returncode, 0, done.stderr)
                taken = wait_for(lambda: [json.loads(line) for line in self.requests(run) if f'"{kind}"' in line])
                self.assertTrue(taken, run.said())
                self.assertEqual((taken[0]["value"], taken[0]["reason"]), (value, "a test"))
            run.sinew("control", str(run.directory), "stop")
            run.ends(75)
            self.assertEqual(run.file()["exit_code"], 75)

    @staticmethod
    def requests(run):
        path = run.directory / "requests"
        return path.read_text().splitlines() if path.exists() else []

    def test_the_first_signal_stops_orderly(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with Run(self, 2) as run:
                run.wait_computing(2)
                run.process.send_signal(number)
                run.ends(75)
                self.assertEqual(len(run.started()), 2)

    def test_the_second_signal_stops_at_once(self):
        with Run(self, 2) as run:
            pids = run.wait_computing(2)
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)  # no worker takes the stop request
            run.process.send_signal(signal.SIGINT)
            self.assertTrue(wait_for(lambda: "once more stops at once" in run.errors.read_text()))
            time.sleep(0.6)  # two signals within half a second would count as one
            run.process.send_signal(signal.SIGINT)
            run.ends(130)

    def test_a_signal_that_arrives_twice_for_one_request_counts_once(self):
        """timeout(1) signals the process and then its whole group."""
        for number in (signal.SIGINT, signal.SIGTERM):
            with Run(self, 2) as run:
                pids = run.wait_computing(2)
                for pid in pids:
                    os.kill(pid, signal.SIGSTOP)  # so that the run does not end between the two signals
                run.process.send_signal(number)
                time.sleep(0.05)
                run.process.send_signal(number)
                time.sleep(0.2)
                for pid in pids:
                    os.kill(pid, signal.SIGCONT)
                run.ends(75)

    def test_a_signal_to_all_processes_gives_the_runs_own_code(self):
        """Service managers and Slurm signal every process of a run. The test does so while the run trains (delay None),
        and shortly after it was told to finish."""
        for delay in (None, 0.0, 0.05, 0.15, 0.4):
            with Run(self, 3) as run:
                run.wait_computing(3)
                if delay is not None:
                    (run.directory / "finish").touch()
                    time.sleep(delay)
                for pid in {run.process.pid, *processes_of(run.directory)}:
                    try:
                        os.kill(pid, signal.SIGTERM)
                    except ProcessLookupError:
                        pass
                run.process.wait(LONG)
                code = run.process.returncode
                self.assertIn(code, (75,) if delay is None else (0, 75), run.said())
                self.assertEqual(run.file()["exit_code"], code, run.said())

    def test_a_limit_of_cpu_time_ends_the_run_with_its_name(self):
        with Run(self, 1, FAKE_FATE=f"signal {int(signal.SIGXCPU)}") as run:
            run.ends(1)
            self.assertIn("the limit of CPU time (ulimit -t) ends every worker", run.errors.read_text())

    def test_the_report_quotes_the_error_of_the_worker(self):
        with Run(self, 2, FAKE_FATE="exit 1", FAKE_ERROR=r"x.csv has no column y [DATA_NO_COLUMN]\0look at x.csv") as run:
            run.ends(1)
            report = json.loads((run.directory / "report.json").read_text())
            self.assertIn("ended with an error: x.csv has no column y [DATA_NO_COLUMN]", report["error"])
            self.assertEqual(report["hint"], "look at x.csv")

    def test_damaged_files_of_a_coordinator_do_not_block_a_resume(self):
        with Run(self, 1) as run:
            run.wait_computing(1)
            run.process.send_signal(signal.SIGTERM)
            run.ends(75)
            before = run.file()
            (run.directory / "coordinator.json").write_text('{"version": 2, "url": "http')
            (run.directory / "view.json").write_text("{}")
            with open(run.errors, "ab") as errors:
                run.process = subprocess.Popen(
                    [SINEW, "resume", str(run.directory), "--workers", "2"], stdout=subprocess.DEVNULL, stderr=errors,
                    cwd=run.path, env={**os.environ, "SINEW_WORKER": FAKE})
            run.wait_computing(2)
            self.assertGreater(run.file()["incarnation"], before["incarnation"])
            self.assertTrue((run.directory / "coordinator.json.damaged").exists())
            (run.directory / "finish").touch()
            run.ends(0)

    def test_files_of_killed_writes_are_removed_at_the_next_start(self):
        with Run(self, 1) as run:
            run.wait_computing(1)
            run.process.send_signal(signal.SIGTERM)
            run.ends(75)
            left = run.directory / f".report.json.{run.process.pid}-7.tmp"
            other = run.directory / ".somebody.tmp"
            for file in (left, other):
                file.write_text("half")
            with open(run.errors, "ab") as errors:
                run.process = subprocess.Popen(
                    [SINEW, "resume", str(run.directory), "--workers", "1"], stdout=subprocess.DEVNULL, stderr=errors,
                    cwd=run.path, env={**os.environ, "SINEW_WORKER": FAKE})
            run.wait_computing(1)
            self.assertEqual((left.exists(), other.exists()), (False, True))
            (run.directory / "finish").touch()
            run.ends(0)

    # A real worker gives up its death signal once it is a member: drills/elect_test.py.
    def test_no_process_with_a_death_signal_outlives_the_supervisor(self):
        with Run(self, 3) as run:
            run.wait_computing(3)
            run.process.kill()
            run.ends(-signal.SIGKILL)

    def test_workers_that_crash_at_once_stop_the_run(self):
        with Run(self, 1, FAKE_FATE=f"signal {int(signal.SIGSEGV)}") as run:
            run.ends(1)
            self.assertIn("3 workers in a row died at step 0, the last killed by SIGSEGV", run.errors.read_text())
            self.assertEqual(len(run.started()), 3)

    def test_a_shard_that_kills_is_named(self):
        for number, how in ((signal.SIGSEGV, "SIGSEGV"), (signal.SIGKILL, "SIGKILL: perhaps out of memory")):
            with Run(self, 1, FAKE_WORK="412 3", FAKE_FATE=f"signal {int(number)}") as run:
                run.ends(1)
                self.assertIn("step 412, shard 3 (samples 96 to 127 in the order of epoch 2) killed 3 workers in turn "
                              f"({how}, {how}, {how}): the run is stopped", run.errors.read_text())
                self.assertEqual(len(run.started()), 3)

    def test_a_worker_that_blocks_the_run_is_named_then_killed(self):
        with Run(self, 1, "--hang-after", "1s", FAKE_STUCK="15") as run:
            run.ends(1)
            said = run.errors.read_text()
            self.assertRegex(said, r"nothing has moved for \d+ s after step 15: worker 1 \(pid \d+\) is at step 15, shard 3")
            self.assertIn("is stopped: it has been at step 15, shard 3", said)
            self.assertIn("killed 3 workers in turn (no end, no end, no end)", said)

    def test_a_job_that_is_not_understood_ends_with_2(self):
        with Run(self, 3, FAKE_FATE="exit 2") as run:
            run.ends(2)

    def test_an_error_ends_with_1(self):
        with Run(self, 1, FAKE_FATE="exit 1") as run:
            run.ends(1)
            self.assertEqual(len(run.started()), 1)
            # no worker lived to write the report, so the supervisor wrote it
            report = json.loads((run.directory / "report.json").read_text())
            self.assertEqual((report["status"], report["exit_code"]), ("failed", 1))

    def test_a_resumed_run_gives_new_member_numbers(self):
        with Run(self, 1) as run:
            run.wait_computing(1)
            first = run.status()
            run.process.kill()
            run.ends(-signal.SIGKILL)
            with open(run.errors, "ab") as errors:
                run.process = subprocess.Popen(
                    [SINEW, "resume", str(run.directory), "--workers", "2"], stdout=subprocess.DEVNULL, stderr=errors,
                    cwd=run.path, env={**os.environ, "SINEW_WORKER": FAKE})
            run.wait_computing(2)
            second = run.status()
            self.assertGreater(second["view"]["generation"], first["view"]["generation"])
            self.assertGreater(min(m["id"] for m in second["members"]), max(m["id"] for m in first["members"]))
            (run.directory / "finish").touch()
            run.ends(0)


class Chaos(unittest.TestCase):
    def test_other_bits_end_with_4(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            (path / "job.yaml").write_text("name: pretend\ndata: {train: x.csv}\n")
            (path / "calm").mkdir()
            shutil.copyfile(path / "job.yaml", path / "calm" / "resolved.yaml")
            # The workers of the disturbed run write no ledger.
            ledger = [json.dumps({"step": step, "digest": f"{step:032x}"}) for step in range(1, 41)]
            (path / "calm" / "ledger.jsonl").write_text("\n".join(ledger) + "\n")
            done = subprocess.run(
                [SINEW, "chaos", "job.yaml", "--seed", "1", "--events", "1", "--kill-every", "1s", "--workers", "2",
                 "--against", "calm", "--run-dir", "both"],
                capture_output=True, text=True, timeout=LONG, cwd=path,
                env={**os.environ, "SINEW_WORKER": FAKE, "FAKE_STEPS": "40"})
            self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
            self.assertIn("NOT the same: 0 of 40 steps have the same digest, 40 are missing", done.stdout)


class Refusals(unittest.TestCase):
    def refused(self, code, words, *command):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "none").mkdir()
            done = subprocess.run([SINEW, *command], capture_output=True, text=True, timeout=LONG, cwd=folder)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(words, done.stderr)
        self.assertIn("  try: ", done.stderr)
        self.assertNotIn("bug in sinew", done.stderr)

    def test_wrong_options_are_refused(self):
        self.refused(2, "--workers is a whole number from 1 to 4096, not '0'", "train", "job.yaml", "--workers", "0")
        self.refused(2, "not 'many'", "train", "job.yaml", "--workers", "many")
        self.refused(2, "the number of workers", "scale", "last", "3x")
        self.refused(2, "a run cannot be asked for", "control", "last", "dance")
        self.refused(2, "lr takes a factor from 1e-9 to 1e6, not 'nan' [OPTION_INVALID]", "control", "last", "lr=nan")
        self.refused(2, "from 1 to 1e9, not '1.5' [OPTION_INVALID]", "control", "last", "batch-size=1.5")
        self.refused(2, "needs --seed", "chaos", "job.yaml")
        self.refused(2, "--kill-every takes a duration", "chaos", "job.yaml", "--kill-every", "inf")
        self.refused(2, "--hang-after takes a duration", "train", "job.yaml", "--hang-after", "soon")
        self.refused(2, "[ARGUMENT_MISSING]", "coordinator")
        self.refused(2, "there is no nowhere", "coordinator", "nowhere", "--workers", "2")
        self.refused(1, "", "ps", "none")

    def test_chaos_refuses_a_run_without_a_ledger(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "job.yaml").write_text("data: {train: x.csv}\n")
            done = subprocess.run([SINEW, "chaos", "job.yaml", "--seed", "1", "--against", "."], capture_output=True,
                                  text=True, timeout=LONG, cwd=folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("has no ledger.jsonl to compare with", done.stderr)

    def test_a_chaos_plan_depends_only_on_its_seed(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "job.yaml").write_text("data: {train: x.csv}\n")

            def plan(seed):
                done = subprocess.run([SINEW, "chaos", "job.yaml", "--seed", seed, "--dry-run"], capture_output=True,
                                      text=True, timeout=LONG, cwd=folder)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(len(done.stdout.splitlines()), 10)
                return done.stdout
            self.assertEqual(plan("1"), plan("1"))
            self.assertNotEqual(plan("1"), plan("2"))
            self.assertEqual(os.listdir(folder), ["job.yaml"])


if __name__ == "__main__":
    unittest.main()
