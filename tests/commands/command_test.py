"""Tests runs of commands: what a command receives, what it leaves behind, and how it ends."""
import json
import os
import pathlib
import pty
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import urllib.request

from runner import PATIENCE, SINEW, Commands, lines_of, processes_with, wait_for

# Both folders have modules of the same name. tests/server is at the end of the path, so tests/commands comes first.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "server"))
from server_process import Server

NOBODY = 54321  # no user has this number


def pending_signals(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(dict(line.split(":", 1) for line in file)["ShdPnd"], 16)


SAVES = r"""
step=0
[ -n "$SINEW_RESUME_FROM" ] && step=$(cat "$SINEW_RESUME_FROM")
save() { echo $step > "$SINEW_CHECKPOINT_DIR/.new" && mv "$SINEW_CHECKPOINT_DIR/.new" "$SINEW_CHECKPOINT_DIR/step-$step"; }
"""


class Ends(Commands):
    def test_done_leaves_a_run_directory_like_a_training(self):
        done = self.run_script("""
echo hello
echo oops >&2
for i in 1 2 3; do echo "{\\"step\\": $i, \\"loss\\": 0.$i, \\"val_accuracy\\": 0.9$i}"; done""", "params.lr=0.1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("hello\n", done.stdout)
        self.assertIn("oops\n", done.stderr)
        self.assertNotIn('"loss"', done.stdout)
        self.assertEqual([(line["step"], line["train/loss"], line["val/accuracy"]) for line in self.metrics()],
                         [(1, 0.1, 0.91), (2, 0.2, 0.92), (3, 0.3, 0.93)])
        report = self.report()
        self.assertEqual((report["status"], report["exit_code"], report["steps"]), ("done", 0, 3))
        self.assertEqual(report["last"], {"train/loss": 0.3, "val/accuracy": 0.93})
        self.assertEqual(self.file("output/stderr.log").read_text(), "oops\n")
        self.assertIn("hello\n", self.file("output/stdout.log").read_text())
        self.assertTrue(list(pathlib.Path(self.run_directory).glob("events.out.tfevents.*")))
        events = [line["event"] for line in lines_of(self.file("log.jsonl"))]
        self.assertEqual(events.count("run-end"), 1)
        self.assertEqual(self.endings(), {1: ["done"]})
        self.assertEqual(self.status(), "done")

    def test_a_failure_reports_its_exit_code(self):
        done = self.run_script("exit 7")
        self.assertEqual(done.returncode, 1)
        self.assertIn("ended with exit code 7", done.stderr)
        self.assertEqual(self.report()["status"], "failed")
        self.assertIn("exit code 7", self.report()["error"])

    def test_a_failure_reports_its_signal(self):
        done = self.run_script("kill -SEGV $$")
        self.assertEqual(done.returncode, 1)
        self.assertIn("SIGSEGV", self.report()["error"])

    def test_an_error_names_what_cannot_be_started(self):
        done = self.sinew("run", "--run-dir", self.run_directory, "--", "no-such-program")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot start no-such-program: No such file or directory", done.stderr)
        self.assertNotIn("stderr.log", done.stderr)
        self.assertEqual(self.endings(), {1: ["no_start"]})
        done = self.sinew("run", "workdir=/no/such", "--run-dir", self.run_directory + "2", "--", "true")
        self.assertIn("working directory /no/such: No such file", done.stderr)

    def test_processes_that_it_leaves_behind_are_killed(self):
        tag = f"left-{os.getpid()}-{time.monotonic_ns()}"
        done = self.run_script(f"setsid bash -c 'trap \"\" TERM HUP; exec -a {tag} sleep 1000' >/dev/null 2>&1 &\nsleep 0.3")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(processes_with(tag), [])

    def test_a_json_log_is_one_object_a_line(self):
        done = self.sinew("run", "--log-format", "json", "--run-dir", self.run_directory, "--", "echo", "hi")
        events = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertIn(("output", "hi"), [(event["event"], event["text"]) for event in events if "text" in event])


class Retries(Commands):
    def test_a_crash_is_retried_as_often_as_the_job_says(self):
        done = self.run_script("[ $SINEW_ATTEMPT = 3 ] || kill -9 $$", "retries.crash=2", "retries.backoff=0.01s")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.endings(), {1: ["crash"], 2: ["crash"], 3: ["done"]})

    def test_retries_of_an_exit_code_are_counted_separately(self):
        done = self.run_script("exit 4", "retries.crash=5", "retries.exit=1", "retries.backoff=0.01s")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.endings(), {1: ["exit"], 2: ["exit"]})
        self.assertEqual(self.status(), "failed")

    def test_only_listed_exit_codes_are_retried(self):
        done = self.run_script("exit 4", "retries.exit=3", "retries.exit_codes=[5, 6]", "retries.backoff=0.01s")
        self.assertEqual(self.endings(), {1: ["exit"]})
        self.assertEqual(done.returncode, 1)

    def test_exit_75_continues_from_its_checkpoint(self):
        done = self.run_script(SAVES + """
for n in 1 2; do step=$((step+1)); echo "{\\"step\\": $step, \\"loss\\": 1}"; done
save
[ $step -ge 6 ] || exit 75""")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.endings(), {1: ["preempted"], 2: ["preempted"], 3: ["done"]})
        self.assertEqual([line["step"] for line in self.metrics()], [1, 2, 3, 4, 5, 6])

    def test_repeated_steps_are_recorded_once(self):
        done = self.run_script("""
for step in 1 2 3 4; do echo "{\\"step\\": $step, \\"loss\\": $SINEW_ATTEMPT}"; [ $step$SINEW_ATTEMPT = 31 ] && kill -9 $$; done
exit 0""",
                               "retries.crash=1", "retries.backoff=0.01s")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([(line["step"], line["train/loss"]) for line in self.metrics()], [(1, 2), (2, 2), (3, 2), (4, 2)])


    def test_constants_printed_first_do_not_hide_repeated_steps(self):
        done = self.run_script("""
echo '{"world_size": 4}'
for step in $(seq $((SINEW_ATTEMPT == 2 ? 3 : 1)) 5); do
  echo "{\\"step\\": $step, \\"loss\\": $SINEW_ATTEMPT}"; [ $step$SINEW_ATTEMPT = 41 ] && kill -9 $$
done
exit 0""", "retries.crash=1", "retries.backoff=0.01s")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([(line["step"], line.get("train/loss")) for line in self.metrics()],
                         [(0, None), (1, 1), (2, 1), (3, 2), (4, 2), (5, 2)])

    def test_an_evaluation_before_training_continues_deletes_nothing(self):
        done = self.run_script("""
echo "{\\"step\\": 0, \\"val_loss\\": $SINEW_ATTEMPT}"
for step in $(seq $((SINEW_ATTEMPT == 2 ? 3 : 1)) 5); do
  echo "{\\"step\\": $step, \\"loss\\": $SINEW_ATTEMPT}"; [ $step$SINEW_ATTEMPT = 41 ] && kill -9 $$
done
exit 0""", "retries.crash=1", "retries.backoff=0.01s")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([(line["step"], line.get("train/loss", line.get("val/loss"))) for line in self.metrics()],
                         [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (5, 2)])

    def test_an_attempt_that_dies_at_its_first_step_deletes_nothing(self):
        done = self.run_script("""
for step in $(seq $((SINEW_ATTEMPT > 1 ? 2 : 1)) 4); do
  echo "{\\"step\\": $step, \\"loss\\": $SINEW_ATTEMPT}"; case $step$SINEW_ATTEMPT in (31|22) kill -9 $$;; esac
done
exit 0""", "retries.crash=1", "retries.backoff=0.01s")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertEqual([(line["step"], line["train/loss"]) for line in self.metrics()], [(1, 1), (2, 1), (3, 1)])
        done = self.sinew("resume", self.run_directory)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([(line["step"], line["train/loss"]) for line in self.metrics()], [(1, 1), (2, 3), (3, 3), (4, 3)])

    def test_a_failure_to_start_processes_is_retried(self):
        root = os.geteuid() == 0  # the process limit does not bind root
        os.chown(self.folder, NOBODY if root else -1, -1)
        for limit in (1, 2, 3) if root else (1,):  # reached first by sinew, by its outer reaper, by its inner reaper
            self.run_directory = os.path.join(self.folder, f"run-{limit}")
            process = self.start("run", "retries.crash=1", "retries.backoff=0.01s", "--run-dir", self.run_directory, "--", "true",
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit)),
                                 **({"user": NOBODY} if root else {}))
            out, err = process.communicate(timeout=PATIENCE)
            self.assertEqual(self.endings(), {1: ["crash"], 2: ["crash"]}, err)
            self.assertIn("cannot start true: Resource temporarily unavailable", err)

    def test_ranks_that_saved_can_be_resumed_when_no_retry_is_left(self):
        done = self.run_script("[ $SINEW_ATTEMPT = 2 ] && exit 0; [ $RANK = 0 ] && exit 75; exec sleep 1000", "resources.nproc=2",
                               "retries.preempted=0")
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertEqual((self.status(), self.endings()), ("stopped", {1: ["preempted"]}))
        self.assertEqual(self.sinew("resume", self.run_directory).returncode, 0)
        self.assertEqual(self.endings(), {1: ["preempted"], 2: ["done"]})

    def test_a_finished_run_without_a_report_does_not_run_again(self):
        self.assertEqual(self.run_script("echo once").returncode, 0)
        self.file("report.json").unlink()
        self.assertEqual(self.status(), "interrupted")
        done = self.sinew("resume", self.run_directory)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.status(), self.endings()), ("done", {1: ["done"]}))
        self.assertEqual(self.file("output/stdout.log").read_text(), "once\n")

    def test_a_run_that_died_before_it_began_does_not_block_its_directory(self):
        os.makedirs(self.run_directory)
        self.file("job.yaml").write_text("command: [false]\n")
        self.assertEqual(self.run_script("true").returncode, 0)
        again = self.run_script("true")
        self.assertEqual(again.returncode, 2)
        self.assertIn("already holds a run", again.stderr)


class Stops(Commands):
    SLOW = SAVES + """
trap 'save; exit 75' TERM
while [ $step -lt 20 ]; do step=$((step+1)); echo "{\\"step\\": $step, \\"loss\\": 1}"; if [ $step$SINEW_ATTEMPT = 51 ]; then sleep 1000 & wait; fi; done"""

    def test_a_command_that_saves_can_be_resumed(self):
        process = self.start_script(self.SLOW)
        self.wait_for_text("metrics.jsonl", '"step":5')
        code, out, err = self.end(process)
        self.assertEqual(code, 75, err)
        self.assertEqual(self.status(), "stopped")
        done = self.sinew("resume", self.run_directory)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line["step"] for line in self.metrics()], list(range(1, 21)))
        self.assertEqual(self.endings(), {1: ["preempted"], 2: ["done"]})
        again = self.sinew("resume", self.run_directory)
        self.assertIn("is done already", again.stdout)

    def test_a_command_that_does_not_save_ends_with_the_signal(self):
        process = self.start_script("echo up; exec sleep 1000")
        self.wait_for_text("output/stdout.log", "up")
        code, out, err = self.end(process, signal.SIGINT)
        self.assertEqual(code, 130, err)
        self.assertEqual((self.status(), self.endings()), ("stopped", {1: ["ended"]}))

    def test_a_command_that_ignores_the_signal_is_killed_after_its_grace(self):
        process = self.start_script("trap '' TERM\necho up\nwhile :; do sleep 0.1; done", "grace=0.2s")
        self.wait_for_text("output/stdout.log", "up")
        code, out, err = self.end(process)
        self.assertEqual(code, 143, err)
        self.assertIn("did not end within 0.2 s", err)

    def test_a_shell_in_front_that_dies_takes_no_grace_away(self):
        process = self.start_script("""
bash -c 'trap "sleep 0.3; echo 7 > $SINEW_CHECKPOINT_DIR/step-7; exit 75" TERM; echo up; while :; do sleep 0.01; done'
exit $?""")
        self.wait_for_text("output/stdout.log", "up")
        code, out, err = self.end(process)
        self.assertEqual(code, 143, err)
        self.assertEqual(self.file("checkpoints/step-7").read_text(), "7\n")

    def test_a_closed_terminal_ends_nothing_under_nohup(self):
        process = self.start("run", "--run-dir", self.run_directory, "--", self.script("echo up\nsleep 0.5\necho done"),
                             preexec_fn=lambda: [signal.signal(number, signal.SIG_IGN) for number in (signal.SIGHUP, signal.SIGCHLD)])
        self.wait_for_text("output/stdout.log", "up")
        code, out, err = self.end(process, signal.SIGHUP)
        self.assertEqual((code, self.status()), (0, "done"), err)

    def test_a_reader_that_reads_nothing_does_not_block_it(self):
        process = self.start_script("for i in $(seq 20000); do echo $i; done; echo up >&2; exec sleep 1000")
        self.wait_for_text("output/stderr.log", "up")  # although the test has not read the output of sinew
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=PATIENCE), 143)

    def test_a_slow_reader_does_not_block_it(self):
        process = self.start_script("exec yes 'a line that somebody reads slowly'")
        over = threading.Event()

        def read_slowly():
            while os.read(process.stdout.fileno(), 4096):
                over.wait(0.3)
        reader = threading.Thread(target=read_slowly)
        reader.start()
        try:
            wait_for(lambda: self.file("output/stdout.log").exists() and self.file("output/stdout.log").stat().st_size > 70_000, "output")
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=PATIENCE), 143)
        finally:
            process.kill()
            over.set()
            reader.join()

    def test_a_closed_terminal_leaves_it_its_grace(self):
        script = self.script("trap 'sleep 0.3; echo 7 > $SINEW_CHECKPOINT_DIR/step-7; exit 75' TERM\necho up\nwhile :; do sleep 0.01; done")
        shell, terminal = pty.fork()
        if shell == 0:
            os.execv("/bin/bash", ["bash", "--norc", "-i"])
        os.write(terminal, f"{SINEW} run --run-dir {self.run_directory} -- {script}\n".encode())
        self.wait_for_text("output/stdout.log", "up")
        os.close(terminal)
        wait_for(lambda: self.file("report.json").exists(), "the end")
        self.assertEqual((self.report()["exit_code"], self.file("checkpoints/step-7").read_text()), (75, "7\n"))
        os.waitpid(shell, 0)

    def test_a_second_signal_kills_at_once(self):
        process = self.start_script("trap '' TERM\necho up\nwhile :; do sleep 0.1; done", "grace=1000s")
        self.wait_for_text("output/stdout.log", "up")
        process.send_signal(signal.SIGTERM)
        self.wait_for_text("log.jsonl", '"terminate"')
        time.sleep(0.6)  # two signals within half a second count as one
        code, out, err = self.end(process)
        self.assertEqual(code, 143, err)

    def test_stop_and_ps_from_outside(self):
        process = self.start_script("echo up; exec sleep 1000")
        self.wait_for_text("output/stdout.log", "up")
        shown = self.sinew("ps", self.run_directory)
        self.assertIn("running", shown.stdout)
        self.assertRegex(shown.stdout, r"pid \d+  rank 0 .* sleep 1000")
        facts = json.loads(self.sinew("ps", self.run_directory, "--json").stdout)
        self.assertEqual([process["rank"] for process in facts["processes"]], [0])
        done = self.sinew("stop", self.run_directory)
        self.assertEqual((done.returncode, done.stdout), (0, f"{self.run_directory}: stopped\n"))
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 143)
        again = self.sinew("stop", self.run_directory)
        self.assertIn("was not running", again.stdout)

    def test_stop_of_a_sandboxed_run_kills_no_other_command(self):
        process = self.start_script("echo up; exec sleep 1000")
        self.wait_for_text("output/stdout.log", "up")
        forged = pathlib.Path(self.folder) / "forged"
        shutil.copytree(self.run_directory, forged)  # with attempts.jsonl, which names the command that runs
        (forged / "trained-in-sandbox").mkdir()
        done = self.sinew("stop", forged)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("was not running", done.stdout)
        facts = json.loads(self.sinew("ps", self.run_directory, "--json").stdout)
        self.assertEqual([process["rank"] for process in facts["processes"]], [0])
        self.end(process)

    def test_stop_now_works_while_sinew_is_stopped(self):
        process = self.start_script("trap '' TERM\necho up\nwhile :; do sleep 0.1; done", "grace=1000s")
        self.wait_for_text("output/stdout.log", "up")
        process.send_signal(signal.SIGSTOP)  # while it is suspended, the kernel merges signals of one kind
        stop = self.start("stop", self.run_directory, "--now")
        wait_for(lambda: pending_signals(process.pid) & 1 << signal.SIGTERM - 1, "the first signal")
        time.sleep(0.3)
        process.send_signal(signal.SIGCONT)
        self.assertEqual(stop.wait(timeout=PATIENCE), 0, stop.stderr.read())
        self.assertEqual(process.wait(timeout=PATIENCE), 143)

    def test_another_user_cannot_stop_it(self):
        process = self.start_script("echo up; exec sleep 1000")
        self.wait_for_text("output/stdout.log", "up")
        os.chmod(self.folder, 0o755)
        if os.geteuid() == 0:
            done = subprocess.run([SINEW, "stop", self.run_directory], capture_output=True, text=True, timeout=PATIENCE, user=NOBODY)
            self.assertIn(f"pid {process.pid} of another user", done.stderr)
            self.assertEqual(done.returncode, 1)
        # The lock names this test, which `sinew stop` must not signal.
        self.file(".lock").write_text(f"pid {os.getpid()} on {socket.gethostname()}\n")
        done = self.sinew("stop", self.run_directory, "--wait", "0")
        self.assertIn("the process that holds it was not found", done.stderr)
        self.end(process)

    def test_a_run_in_use_is_refused(self):
        process = self.start_script("echo up; exec sleep 1000")
        self.wait_for_text("output/stdout.log", "up")
        other = self.sinew("resume", self.run_directory)
        self.assertEqual(other.returncode, 1)
        self.assertIn("is in use by pid", other.stderr)
        self.end(process)


class Limits(Commands):
    def test_the_budget_ends_it_with_exit_code_3(self):
        done = self.run_script("exec sleep 1000", "budget.time=0.3s")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(self.status(), "budget")

    def test_money_ends_it_as_time_does(self):
        done = self.run_script("exec sleep 1000", "budget.cost=0.0001", "budget.price=1.2")  # 0.3 s
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertEqual(self.status(), "budget")
        self.assertIn("budget.cost is used up", done.stdout + done.stderr)

    def test_an_attempt_that_takes_too_long_is_a_timeout(self):
        done = self.run_script("[ $SINEW_ATTEMPT = 2 ] || exec sleep 1000", "budget.attempt=0.5s", "retries.timeout=1",
                               "retries.backoff=0.01s", "grace=5s")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.endings(), {1: ["timeout"], 2: ["done"]})

    def test_running_out_of_memory_differs_from_other_deaths(self):
        hungry = "exec python3 -c 'import time; x = bytearray(400 << 20); x[::4096] = b\"a\" * len(x[::4096]); time.sleep(1000)'"
        done = self.run_script(hungry, "resources.memory=120MiB", "retries.crash=3", "grace=1s")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.endings(), {1: ["out_of_memory"]}, done.stderr)

    def test_an_attempt_that_cannot_begin_leaves_no_group(self):
        few_files = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
        process = self.start("run", "resources.nproc=64", "resources.memory=1GiB", "--run-dir", self.run_directory, "--", "true",
                             preexec_fn=few_files)
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 1, out)
        self.assertIn("cannot create a pipe", err)
        self.assertEqual(self.endings(), {1: ["failed"]})
        groups = lines_of(self.file("attempts.jsonl"))[0]["groups"]
        self.assertEqual([group for group in groups if os.path.exists(group)], [])

    def test_a_met_objective_ends_it_as_done(self):
        done = self.run_script("""
for i in 1 2 3; do echo "{\\"step\\": $i, \\"val_accuracy\\": 0.$((i*3))}"; done
exec sleep 1000""", "objective=val/accuracy >= 0.9")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.report()["objective"], {"text": "val/accuracy >= 0.9", "met": True, "value": 0.9})
        self.assertIn("objective met: val/accuracy is 0.9, at least 0.9", done.stdout)

    def test_no_improvement_ends_it_as_done(self):
        done = self.run_script("""
for loss in 3 2 4 NaN 5; do echo "{\\"step\\": $((++i)), \\"val\\": {\\"loss\\": $loss}}"; done
exec sleep 1000""", "early_stopping={monitor: val/loss, patience: 3}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.report()["best"], {"metric": "val/loss", "value": 2, "step": 2})


class Tells(Commands):
    def told(self, *overrides, env=None, script="env -0", before=()):
        done = self.sinew("run", *overrides, "--run-dir", self.run_directory, *before, "--", "bash", "-c", script, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = self.file("output/stdout.log").read_text()
        return dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)

    def test_its_environment(self):
        told = self.told("params={lr: 0.1, kind: small, fast: true}", "env={GREETING: 'hi {params.kind}'}",
                         "resources.cpus=1.5", env={"SINEW_RANK": "9", "RANK": "9"})
        self.assertEqual((told["SINEW_PARAM_LR"], told["SINEW_PARAM_KIND"], told["SINEW_PARAM_FAST"]), ("0.1", "small", "true"))
        self.assertEqual(json.loads(told["SINEW_PARAMS"]), {"lr": 0.1, "kind": "small", "fast": True})
        self.assertEqual((told["GREETING"], told["OMP_NUM_THREADS"], told["SINEW_ATTEMPT"]), ("hi small", "1", "1"))
        self.assertEqual((told["RANK"], told["WORLD_SIZE"], told["LOCAL_RANK"]), ("0", "1", "0"))
        self.assertNotIn("SINEW_RANK", told)
        self.assertEqual(told["SINEW_RUN_DIR"], self.run_directory)
        self.assertTrue(os.path.isdir(told["SINEW_CHECKPOINT_DIR"]))
        self.assertNotIn("SINEW_RESUME_FROM", told)
        self.assertNotIn("MLFLOW_TRACKING_URI", told)

    def test_a_secret_is_passed_on_and_not_stored(self):
        done = self.run_script('[ "$TOKEN" = sesame ] && exit $((SINEW_ATTEMPT == 1 ? 3 : 0))', "env={TOKEN: '${SECRET}'}", env={"SECRET": "sesame"})
        self.assertIn("exit code 3", self.report()["error"], done.stderr)
        kept = [path for path in pathlib.Path(self.run_directory).rglob("*") if path.is_file() and b"sesame" in path.read_bytes()]
        self.assertEqual(kept, [])
        resumed = self.sinew("resume", self.run_directory)
        self.assertIn("SECRET", resumed.stderr)
        self.assertIn("[SPEC_UNSET_VARIABLE]", resumed.stderr)
        self.assertEqual(self.sinew("resume", self.run_directory, env={"SECRET": "sesame"}).returncode, 0)

    def test_a_server_is_passed_on(self):
        told = self.told(before=("--server", "http://127.0.0.1:1"))
        self.assertEqual(told["MLFLOW_TRACKING_URI"], "http://127.0.0.1:1")
        self.assertNotIn("MLFLOW_RUN_ID", told)

    def test_a_server_that_indexes_the_run_takes_what_its_client_logs(self):
        server = Server(SINEW, os.path.join(self.folder, "runs"))
        server.start()
        self.addCleanup(server.kill)
        self.run_directory = os.path.join(self.folder, "runs", "job", "one")
        pathlib.Path(self.folder, "log.py").write_text("""
import json, os, urllib.request
print("\\n" + json.dumps({"step": 1, "loss": 4}), flush=True)
for key, value, time, step in [("own", 0.25, 1000, 2), ("own", 0.5, 2000, 3), ("best: of 5/a-b.c", 7, 1000, 2), ("time", 9, 1000, 2), ("bad", "NaN", 1, 0)]:
    point = {"run_id": os.environ["MLFLOW_RUN_ID"], "key": key, "value": value, "timestamp": time, "step": step}
    urllib.request.urlopen(urllib.request.Request(
        os.environ["MLFLOW_TRACKING_URI"] + "/api/2.0/mlflow/runs/log-metric", json.dumps(point).encode(),
        {"Authorization": "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"], "Content-Type": "application/json"}))
""")
        told = self.told(before=("--server", server.url), script=f"env -0; exec python3 {self.folder}/log.py", env={"MLFLOW_TRACKING_TOKEN": server.token})
        asked = urllib.request.Request(f"{server.url}/api/2.0/mlflow/runs/get?run_id={told['MLFLOW_RUN_ID']}",
                                       headers={"Authorization": f"Bearer {server.token}"})
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
            data = json.load(answer)["run"]["data"]
        self.assertEqual({tag["key"]: tag["value"] for tag in data["tags"]}["sinew.directory"], "job/one")
        self.assertIn(("own", 0.5, 3), [(metric["key"], metric["value"], metric["step"]) for metric in data["metrics"]])
        # the run directory has these metrics, too, and not a second time those that the command printed
        self.assertEqual(lines_of(self.file("mlflow.jsonl")), [
            {"step": 0, "samples": 0, "time": 0.001, "bad": "NaN"},
            {"step": 2, "samples": 0, "time": 1, "best: of 5/a-b.c": 7, "mlflow/time": 9, "own": 0.25},
            {"step": 3, "samples": 0, "time": 2, "own": 0.5}])
        shown = json.loads(self.sinew("runs", "show", self.run_directory, "--format", "json").stdout)
        self.assertEqual((shown["best"]["own"], shown["best_step"]["own"]), (0.5, 3))
        self.assertEqual(shown["last"]["train/loss"], 4)

    def test_metrics_that_a_server_no_longer_gives_are_reported(self):
        server = Server(SINEW, os.path.join(self.folder, "runs"))
        server.start()
        self.addCleanup(server.kill)
        self.run_directory = os.path.join(self.folder, "runs", "job", "one")
        self.told(before=("--server", server.url), script=f"env -0; kill -9 {server.process.pid}", env={"MLFLOW_TRACKING_TOKEN": server.token})
        texts = "".join(line["text"] for line in lines_of(self.file("log.jsonl")))
        self.assertIn("the run directory lacks metrics that were logged at " + server.url, texts)

    def test_a_refusal_of_a_server_is_reported_and_blocks_nothing(self):
        server = Server(SINEW, os.path.join(self.folder, "runs"))
        server.start()
        self.addCleanup(server.kill)
        told = self.told(before=("--server", server.url), env={"MLFLOW_TRACKING_TOKEN": "none"})
        self.assertNotIn("MLFLOW_RUN_ID", told)
        self.assertIn("refuses the token", "".join(line["text"] for line in lines_of(self.file("log.jsonl"))))

    def test_ranks(self):
        done = self.run_script('echo "$RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT" > $SINEW_RUN_DIR/rank-$RANK',
                               "resources.nproc=3")
        self.assertEqual(done.returncode, 0, done.stderr)
        told = [self.file(f"rank-{rank}").read_text() for rank in range(3)]
        self.assertEqual([line.split(" at ")[0] for line in told], ["0 of 3", "1 of 3", "2 of 3"])
        self.assertEqual(len({line.split(" at ")[1] for line in told}), 1)

    def test_one_rank_that_fails_ends_the_others(self):
        done = self.run_script("[ $RANK = 1 ] && exit 5; exec sleep 1000", "resources.nproc=3")
        self.assertEqual(done.returncode, 1)
        self.assertIn("rank 1 ended with exit code 5", self.report()["error"])
        self.assertIn("/output/rank-1.stderr.log", self.report()["hint"])

    def test_parameters_are_filled_into_the_command(self):
        job = pathlib.Path(self.folder) / "job.yaml"
        job.write_text("name: say\ncommand: [echo, '{params.a}-{b}', 3, '{\"a\": 1}']\nparams: {a: 1}\n")
        done = self.sinew("train", str(job), "params.a=x y", "--run-dir", self.run_directory)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('x y-{b} 3 {"a": 1}\n', done.stdout)

    def test_arguments_of_several_lines(self):
        done = self.sinew("run", "--run-dir", self.run_directory, "--", "bash", "-c", "echo one\necho 'two\t$HOME'")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.file("output/stdout.log").read_text(), "one\ntwo\t$HOME\n")

    def test_a_run_is_named_after_its_command(self):
        pathlib.Path(self.folder, "go.now.sh").write_text("true")
        for words, name in ((["sh", "-c", "echo 1.5 > a.txt"], "sh"), (["sh", "./go.now.sh"], "go.now"), (["/bin/true"], "true")):
            done = self.sinew("run", "--", *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(pathlib.Path(self.folder, "runs", name).is_dir(), done.stdout)

    def test_metrics_in_a_file(self):
        done = self.run_script("""
echo '{"step": 1, "loss": 1}'
for i in 1 2 3; do echo "{\\"step\\": $i, \\"loss\\": Infinity}" >> $SINEW_METRICS_FILE; done
echo broken >> $SINEW_METRICS_FILE""", "metrics=file")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line["train/loss"] for line in self.metrics()], ["Infinity"] * 3)
        self.assertIn('{"step": 1, "loss": 1}', done.stdout)
        self.assertIn("a line looks like metrics", done.stderr)

    def test_lines_that_are_not_metrics_are_never_fatal(self):
        done = self.run_script(r"""
echo '{"step": 1, "loss": '
echo '{"step": -1, "loss": 1}'
echo '{"msg": "hello", "level": 3}'
head -c 100000 /dev/urandom
printf '\n{"step": 2, "loss": 0.25}'""")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn((2, 0.25), [(line["step"], line.get("train/loss")) for line in self.metrics()])
        self.assertIn('{"msg": "hello", "level": 3}\n', done.stdout)


    def test_a_progress_bar_is_shown_while_it_moves(self):
        process = self.start_script(r'''printf '\r 1%%\r 2%%\r{"step": 1, "loss": 0.5}\r 3%%'; exec sleep 1000''')
        self.wait_for_text("metrics.jsonl", '"train/loss":0.5')
        code, out, err = self.end(process)
        self.assertIn(" 1%\n", out)
        self.assertNotIn(" 2%", out, "not all that pass are shown")
        self.assertEqual(self.file("output/stdout.log").read_bytes(), b'\r 1%\r 2%\r{"step": 1, "loss": 0.5}\r 3%')


class Refused(Commands):
    def test_a_command_has_no_model(self):
        job = pathlib.Path(self.folder) / "job.yaml"
        job.write_text("command: [true]\nmodel: mlp\noptimizer: {lr: 1}\n")
        done = self.sinew("train", str(job))
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"job\.yaml:2:1: model .*\[SPEC_NO_EFFECT\]")
        self.assertRegex(done.stderr, r"job\.yaml:3:1: optimizer .*\[SPEC_NO_EFFECT\]")

    def test_wrong_usage(self):
        for words in ((), ("--",), ("--name",), ("true",), ("--nope", "--", "true"), ("params.a", "--", "true")):
            done = self.sinew("run", *words)
            self.assertEqual(done.returncode, 2, words)
            self.assertTrue(done.stderr, words)


if __name__ == "__main__":
    unittest.main()
