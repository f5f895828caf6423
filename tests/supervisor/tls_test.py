"""Tests a run whose processes use TLS: the supervisor, the coordinator, users' commands, workers of other machines."""
import http.client
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import unittest
import urllib.parse

from supervisor_test import FAKE, LONG, SINEW, Run, wait_for


class Tls(unittest.TestCase):
    def place(self, run):
        url = run.file()["url"]
        self.assertTrue(url.startswith("https://127.0.0.1:"), url)
        return urllib.parse.urlsplit(url)

    def test_a_run_and_the_commands_of_users(self):
        with Run(self, 2, "--tls") as run:
            first = run.wait_computing(2)
            self.place(run)
            self.assertEqual(run.sinew("scale", str(run.directory), "3").returncode, 0)
            self.assertTrue(first < run.wait_computing(3))
            shown = run.sinew("ps", str(run.directory))
            self.assertIn("3 of 3 workers", shown.stdout, shown.stderr)
            (run.directory / "finish").touch()
            run.ends(0)

    def test_a_client_without_tls_gets_an_error(self):
        with Run(self, 1, "--tls") as run:
            run.wait_computing(1)
            place = self.place(run)
            connection = http.client.HTTPConnection(place.hostname, place.port, timeout=LONG)
            connection.request("POST", "/v2/scale", '{"workers":9}', {"Authorization": "Bearer " + run.file()["secret"]})
            answer = connection.getresponse()
            self.assertEqual(answer.status, 400)
            self.assertIn(b"HTTP_TLS_REQUIRED", answer.read())
            connection.close()
            self.assertEqual(run.status()["wanted"], 1)

    def test_unfinished_handshakes_block_nobody(self):
        with Run(self, 2, "--tls") as run:
            run.wait_computing(2)
            place = self.place(run)
            strangers = []
            for i in range(100):
                strangers.append(socket.create_connection((place.hostname, place.port), LONG))
                strangers[-1].sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[:i % 12])
            self.assertEqual(run.sinew("control", str(run.directory), "stop").returncode, 0)
            run.ends(75)
            for stranger in strangers:
                stranger.close()

    def test_a_run_that_began_with_tls_resumes_with_tls(self):
        with Run(self, 1, "--tls") as run:
            run.wait_computing(1)
            first = run.file()
            os.kill(first["pid"], signal.SIGKILL)
            self.assertTrue(wait_for(lambda: run.file()["pid"] != first["pid"]), run.said())
            self.place(run)
            run.process.kill()
            run.ends(-signal.SIGKILL)
            with open(run.errors, "ab") as errors:
                run.process = subprocess.Popen(
                    [SINEW, "resume", str(run.directory), "--workers", "2"], stdout=subprocess.DEVNULL, stderr=errors,
                    cwd=run.path, env={**os.environ, "SINEW_WORKER": FAKE})
            run.wait_computing(2)
            self.place(run)

    def test_a_worker_of_another_machine_joins_by_address_and_secret(self):
        with Run(self, 1, "--tls") as run:
            run.wait_computing(1)
            (run.path / "secret").write_text(run.file()["secret"] + "\n")
            elsewhere = run.path / "run-elsewhere"  # begins like the run's name, so that processes_of finds leftovers
            with open(run.errors, "ab") as errors:
                joined = subprocess.Popen(
                    [SINEW, "join", run.file()["url"], "--secret-file", str(run.path / "secret"),
                     str(run.path / "job.yaml"), str(elsewhere)], stdout=subprocess.DEVNULL, stderr=errors,
                    cwd=run.path, env={**os.environ, "SINEW_WORKER": FAKE})
            try:
                run.wait_computing(2)
                self.assertEqual(oct((elsewhere / "coordinator.json").stat().st_mode & 0o777), "0o600")
                (run.directory / "finish").touch()
                run.ends(0)
                self.assertEqual(joined.wait(LONG), 0, run.said())
            finally:
                joined.kill()
                joined.wait(LONG)

    def join(self, run, token, directory):
        """Returns a `sinew join` of another machine with this token."""
        (run.path / "token").write_text(token)
        return subprocess.Popen(
            [SINEW, "join", run.file()["url"], "--secret-file", str(run.path / "token"), str(run.path / "job.yaml"),
             str(directory)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=run.path,
            env={**os.environ, "SINEW_WORKER": FAKE})

    def test_a_worker_of_another_machine_joins_by_a_token_until_it_is_revoked(self):
        with Run(self, 1, "--tls") as run:
            own = run.wait_computing(1)
            made = run.sinew("token", "create", str(run.directory), "--expires", "1h")
            token = made.stdout.strip()
            ident = token.split(".")[1]
            self.assertIn(f"token {ident}, valid until", made.stderr)
            self.assertNotIn(run.file()["secret"], made.stdout + made.stderr)
            elsewhere = run.path / "run-elsewhere"
            joined = self.join(run, made.stdout, elsewhere)
            try:
                run.wait_computing(2)
                self.assertIn(ident, run.sinew("ps", str(run.directory)).stdout)
                self.assertIn(token, (elsewhere / "coordinator.json").read_text())
                for words, code in ((("scale", str(elsewhere), "3"), "COORDINATOR_NOT_ALLOWED"),
                                    (("control", str(elsewhere), "stop"), "COORDINATOR_NOT_ALLOWED"),
                                    (("token", "create", str(elsewhere)), "TOKEN_NEEDS_SECRET"),
                                    (("token", "revoke", str(elsewhere), ident), "TOKEN_NEEDS_SECRET")):
                    self.assertIn(f"[{code}]", run.sinew(*words).stderr)
                done = run.sinew("token", "revoke", str(run.directory), ident)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stdout, f"{ident} is revoked; these members had it: [0-9]+\n")
                self.assertIn("no member has it now", run.sinew("token", "revoke", str(run.directory), "0123456789abcdef").stdout)
                said = joined.communicate(timeout=LONG)[1]
                self.assertEqual(joined.returncode, 2, said)
                self.assertIn("COORDINATOR_TOKEN_REVOKED", said)
                self.assertEqual(run.wait_computing(1), own)
                first = run.file()["pid"]
                os.kill(first, signal.SIGKILL)
                self.assertTrue(wait_for(lambda: run.file().get("pid") != first and run.status()["members"]), run.said())
                joined = self.join(run, made.stdout, elsewhere)
                said = joined.communicate(timeout=LONG)[1]
                self.assertEqual(joined.returncode, 2, said)
                self.assertIn("COORDINATOR_TOKEN_REVOKED", said)
                (run.directory / "finish").touch()
                run.ends(0)
            finally:
                joined.kill()
                joined.wait(LONG)

    def test_an_expired_token_is_refused_with_the_way_to_a_new_one(self):
        with Run(self, 1, "--tls") as run:
            run.wait_computing(1)
            token = run.sinew("token", "create", str(run.directory), "--expires", "1ms").stdout
            joined = self.join(run, token, run.path / "run-elsewhere")
            said = joined.communicate(timeout=LONG)[1]
            self.assertEqual(joined.returncode, 2, said)
            self.assertIn("COORDINATOR_TOKEN_EXPIRED", said)
            self.assertIn("sinew token create", said)
            (run.directory / "finish").touch()
            run.ends(0)

    def test_join_sends_no_secret_in_the_clear_to_another_machine(self):
        with tempfile.TemporaryDirectory() as folder:
            secret = pathlib.Path(folder) / "secret"
            secret.write_text("0" * 64)
            out = subprocess.run([SINEW, "join", "http://192.0.2.1:1", "--secret-file", str(secret), "job.yaml", folder],
                                 capture_output=True, text=True, timeout=LONG)
            self.assertEqual(out.returncode, 2, out)
            self.assertIn("--insecure", out.stderr)


if __name__ == "__main__":
    unittest.main()
