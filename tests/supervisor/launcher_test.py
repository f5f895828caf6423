"""Tests processes that a launcher started (`sinew train --launcher env`) and `sinew join`, with workers that train
nothing."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

from supervisor_test import FAKE, LONG, SINEW, Run, wait_for


def torchrun(rank, size, local_size):
    return {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank % local_size),
            "LOCAL_WORLD_SIZE": str(local_size)}


def slurm(rank, size, nodes):
    return {"SLURM_STEP_ID": "0", "SLURM_PROCID": str(rank), "SLURM_NTASKS": str(size), "SLURM_LOCALID": "0",
            "SLURM_NODEID": str(rank), "SLURM_STEP_NUM_TASKS": str(size), "SLURM_STEP_TASKS_PER_NODE": f"1(x{nodes})"}


class Launched(Run):
    """A run of several ranks. The base class has the process of rank 0; `others` has those of the other ranks."""

    def __init__(self, test, size, variables, *words):
        self.others = []
        super().__init__(test, 0, *words, launcher=True, **variables(0))
        for rank in range(1, size):
            with open(self.errors, "ab") as errors:
                self.others.append(subprocess.Popen(
                    self.command(*words), stdout=subprocess.DEVNULL, stderr=errors, cwd=self.path,
                    env={**os.environ, "SINEW_WORKER": FAKE, **variables(rank)}))

    def __exit__(self, *rest):
        for other in self.others:
            other.kill()
            other.wait(LONG)
        super().__exit__(*rest)

    def all_end(self, code):
        self.ends(code)
        for other in self.others:
            self.test.assertEqual(other.wait(LONG), code, self.said())


class Launcher(unittest.TestCase):
    def test_all_ranks_train_and_end_with_the_same_code(self):
        with Launched(self, 3, lambda rank: torchrun(rank, 3, 3)) as run:
            run.wait_computing(3)
            self.assertEqual(run.status()["wanted"], 3)
            started = run.started()
            self.assertEqual(len(started), 3)
            for worker in started:
                self.assertEqual((worker["group"]["local_workers"], worker["group"]["link_listen"]), (3, "127.0.0.1"))
                self.assertEqual(worker["job"], str(run.path / "job.yaml"))
                self.assertEqual(worker["job_text"], (run.path / "job.yaml").read_text())
            (run.directory / "finish").touch()
            run.all_end(0)
            self.assertEqual(len(run.started()), 3, "nobody is started anew at the end")

    def test_each_process_keeps_its_worker_alive(self):
        with Launched(self, 3, lambda rank: torchrun(rank, 3, 3)) as run:
            before = run.wait_computing(3)
            for victim in sorted(before):
                os.kill(victim, signal.SIGKILL)
                pids = run.wait_computing(3, without=[victim])
                self.assertTrue(before - {victim} <= pids, run.said())
                before = pids
                self.assertTrue(run.started()[-1]["resume"])
            run.process.send_signal(signal.SIGINT)
            run.all_end(75)

    def test_a_signal_to_all_ends_all(self):
        with Launched(self, 2, lambda rank: torchrun(rank, 2, 2), "--tls") as run:
            run.wait_computing(2)
            self.assertTrue(run.file()["url"].startswith("https://"))
            for process in [*run.others, run.process]:
                process.send_signal(signal.SIGTERM)
            run.all_end(75)

    def test_scale_starts_more_workers_beside_the_first_process(self):
        with Launched(self, 2, lambda rank: torchrun(rank, 2, 2)) as run:
            before = run.wait_computing(2)
            run.sinew("scale", str(run.directory), "4")
            self.assertTrue(before < run.wait_computing(4))
            run.sinew("scale", str(run.directory), "1")
            self.assertEqual(run.wait_computing(2), before, "those of the launcher stay")
            (run.directory / "finish").touch()
            run.all_end(0)

    def test_the_coordinator_listens_at_an_address_that_others_reach(self):
        with Launched(self, 2, lambda rank: slurm(rank, 2, 2), "--listen", "127.0.0.2") as run:
            run.wait_computing(2)
            self.assertTrue(run.file()["url"].startswith("http://127.0.0.2:"))
            self.assertEqual({worker["group"]["local_workers"] for worker in run.started()}, {1})
            (run.directory / "finish").touch()
            run.all_end(0)

    def test_the_same_command_resumes_the_run(self):
        with Launched(self, 2, lambda rank: torchrun(rank, 2, 2), "--resume") as run:
            run.wait_computing(2)
            run.process.send_signal(signal.SIGTERM)
            run.all_end(75)
            again = [subprocess.Popen(run.command("--resume"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                      cwd=run.path, env={**os.environ, "SINEW_WORKER": FAKE, **torchrun(rank, 2, 2)})
                     for rank in (1, 0)]  # coordinator.json of the ended run still exists; rank 1 must not use it
            run.process, run.others = again[1], again[:1]
            run.wait_computing(2)
            (run.directory / "finish").touch()
            run.all_end(0)

    def test_each_join_adds_one_worker(self):
        with Run(self, 1) as run:
            run.wait_computing(1)
            with open(run.errors, "ab") as errors:
                joined = [subprocess.Popen([SINEW, "join", str(run.directory)], stdout=subprocess.DEVNULL, stderr=errors,
                                           env={**os.environ, "SINEW_WORKER": FAKE, **torchrun(rank, 4, 2)})
                          for rank in (2, 3)]
            try:
                run.wait_computing(3)
                self.assertEqual([worker["group"]["local_workers"] for worker in run.started()], [1, 2, 2])
                (run.directory / "finish").touch()
                run.ends(0)
                self.assertEqual([process.wait(LONG) for process in joined], [0, 0])
            finally:
                for process in joined:
                    process.kill()
                    process.wait(LONG)

    def test_a_join_waits_for_a_run_that_begins(self):
        with tempfile.TemporaryDirectory() as folder:
            directory = pathlib.Path(folder) / "run"
            directory.mkdir()
            (pathlib.Path(folder) / "job.yaml").write_text("name: pretend\ndata: {train: x.csv}\n")
            variables = {**os.environ, "SINEW_WORKER": FAKE}
            errors = open(pathlib.Path(folder) / "errors", "w+b")
            joined = subprocess.Popen([SINEW, "join", str(directory)], stdout=subprocess.DEVNULL, stderr=errors, env=variables)
            run = None
            said = lambda: (pathlib.Path(folder) / "errors").read_text()
            try:
                self.assertTrue(wait_for(lambda: "waiting until the run in" in said()), said())
                run = subprocess.Popen([SINEW, "train", str(pathlib.Path(folder) / "job.yaml"), "--run-dir", str(directory),
                                        "--workers", "1"], stdout=subprocess.DEVNULL, stderr=errors, env=variables)
                started = directory / "started"
                self.assertTrue(wait_for(lambda: started.exists() and len(started.read_text().splitlines()) == 2), said())
                (directory / "finish").touch()
                self.assertEqual([run.wait(LONG), joined.wait(LONG)], [0, 0], said())
                for words in (["join", str(directory)],
                              ["train", str(pathlib.Path(folder) / "job.yaml"), "--run-dir", str(directory), "--launcher", "env"]):
                    late = subprocess.run([SINEW, *words], capture_output=True, text=True, timeout=LONG,
                                          env={**variables, **torchrun(1, 2, 2)})
                    self.assertEqual(late.returncode, 0, late.stderr)
                    self.assertIn("is over; it ended with exit code 0", late.stderr)
                bounded = pathlib.Path(folder) / "nothing"
                bounded.mkdir()
                never = subprocess.run([SINEW, "join", str(bounded), "--wait", "1"], capture_output=True, text=True, timeout=LONG)
                self.assertEqual(never.returncode, 1)
                self.assertIn("[COORDINATOR_NOT_UP]", never.stderr)
            finally:
                for process in (joined, run):
                    if process:
                        process.kill()
                        process.wait(LONG)
                errors.close()

    def test_a_joined_worker_that_fails_is_replaced(self):
        with Run(self, 1) as run:
            own = run.wait_computing(1)
            with open(run.errors, "ab") as errors:
                joined = subprocess.Popen([SINEW, "join", str(run.directory)], stdout=subprocess.DEVNULL, stderr=errors,
                                          env={**os.environ, "SINEW_WORKER": FAKE})
            try:
                for _ in range(2):
                    victim = (run.wait_computing(2) - own).pop()
                    (run.directory / f"exit-{victim}").write_text("1")
                    run.wait_computing(2, without=[victim])
                    self.assertIsNone(joined.poll(), run.said())
                (run.directory / "finish").touch()
                run.ends(0)
                self.assertEqual(joined.wait(LONG), 0)
            finally:
                joined.kill()
                joined.wait(LONG)


class Alone(unittest.TestCase):
    """One process that finds no coordinator, or whose options are wrong."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        self.directory = self.path / "run"
        self.directory.mkdir()
        (self.path / "job.yaml").write_text("data: {train: x.csv}\n")

    def command(self, *words):
        return [SINEW, "train", str(self.path / "job.yaml"), "--run-dir", str(self.directory), *words]

    def ends(self, code, said, variables, *words):
        done = subprocess.run(self.command(*words), capture_output=True, text=True, timeout=LONG, cwd=self.path,
                              env={**os.environ, **variables})
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(said, done.stderr)
        self.assertIn("  try: ", done.stderr)

    def write_file(self, **fields):
        # Writes a new file and renames it, as the coordinator does.
        text = json.dumps({"url": "http://127.0.0.1:1", "secret": "x", "pid": 1, "version": 2, "incarnation": 0, **fields})
        (self.directory / "new").write_text(text)
        os.replace(self.directory / "new", self.directory / "coordinator.json")

    def test_without_a_coordinator_the_wait_ends(self):
        words = ("--launcher", "env", "--wait", "1")
        self.ends(1, f"no coordinator came up in {self.directory} within 1 s", torchrun(1, 2, 2), *words)
        for fields in ({}, {"exit_code": 0}, {"url": ""}):  # files of an earlier attempt
            self.write_file(**fields)
            self.ends(1, "no coordinator came up", torchrun(1, 2, 2), *words)

    def test_a_run_that_began_and_ended_meanwhile_gives_its_exit_code(self):
        self.write_file(exit_code=0, incarnation=3)
        process = subprocess.Popen(self.command("--launcher", "env"), stderr=subprocess.DEVNULL, cwd=self.path,
                                   env={**os.environ, **torchrun(1, 2, 2)})
        try:
            # The process takes the first incarnation that it finds for an earlier attempt. The test does not know which
            # one that is, so it writes new ones until the process ends.
            for incarnation in range(4, 4 + 10 * LONG):
                self.write_file(exit_code=3, incarnation=incarnation)
                if wait_for(lambda: process.poll() is not None, 0.1):
                    break
            self.assertEqual(process.wait(LONG), 3)
        finally:
            process.kill()
            process.wait(LONG)

    def test_wrong_options_are_refused(self):
        launch = ("--launcher", "env")
        self.ends(2, "no launcher started this", {}, *launch)
        self.ends(2, "--launcher is env, not 'slurm'", torchrun(0, 2, 2), "--launcher", "slurm")
        self.ends(2, "contradict each other", torchrun(0, 2, 2), *launch, "--workers", "2")
        self.ends(2, "RANK is a whole number from 0 to 1, not '2'", torchrun(2, 2, 2), *launch)
        self.ends(2, "LOCAL_WORLD_SIZE is not set", {"RANK": "0", "WORLD_SIZE": "2"}, *launch)
        self.ends(2, "SLURM_PROCID is a whole number", {**slurm(0, 2, 2), "SLURM_PROCID": "first"}, *launch)
        done = subprocess.run([SINEW, "train", "job.yaml", *launch], capture_output=True, text=True, timeout=LONG,
                              cwd=self.path, env={**os.environ, **torchrun(0, 2, 2)})
        self.assertEqual((done.returncode, "--launcher needs --run-dir" in done.stderr), (2, True), done.stderr)


if __name__ == "__main__":
    unittest.main()
