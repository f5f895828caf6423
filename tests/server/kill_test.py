"""Kills `sinew server` at random instants under load. Afterwards, everything that it acknowledged must be stored, and
nothing may be stored in part.

SINEW_LONG=1 makes a hundred kills instead of twenty. SINEW_SERVER_SEED repeats the choices of a run (not its instants).
"""
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from postgres import Postgres  # noqa: E402
from server_process import Server  # noqa: E402

SINEW = os.environ.get("SINEW", "sinew")
KILLS = 100 if os.environ.get("SINEW_LONG") else 20
MLFLOW = "/api/2.0/mlflow"


class Writer(threading.Thread):
    """Writes in a loop and remembers what the server acknowledged. A call that failed may or may not have taken effect.
    """

    def __init__(self, server, number):
        super().__init__(daemon=True)
        self.server, self.number = server, number
        self.ending = False
        self.failed = []
        self.points, self.tags, self.files = {}, {}, {}  # all that the server acknowledged
        self.run_id, self.step = None, 0

    def send(self, method, path, body):
        """Returns the response, or None if it is unknown whether the request was executed."""
        try:
            status, answer = self.server.call(method, path, body, timeout=10)
        except OSError:
            return None
        except Exception:  # an incomplete response
            return None
        if status != 200 and status != 201:
            if status < 500:
                self.failed.append((method, path, status, answer))
            return None
        return answer if answer else {}

    def run(self):
        while not self.ending:
            if self.run_id is None:
                answer = self.send("POST", MLFLOW + "/runs/create", {"experiment_id": "0", "run_name": f"w{self.number}"})
                self.run_id = answer and answer["run"]["info"]["run_id"]
            else:
                self.write_one()
            time.sleep(0.002)

    def write_one(self):
        self.step += 1
        step, value = self.step, float(self.step * 1000 + self.number)
        kind = step % 4
        if kind == 0:
            tag = {"run_id": self.run_id, "key": f"t{step}", "value": str(value)}
            if self.send("POST", MLFLOW + "/runs/set-tag", tag) is not None:
                self.tags[tag["key"]] = tag["value"]
        elif kind == 1:
            data = random.Random(step).randbytes(5000)
            if self.send("PUT", f"/api/v1/runs/{self.run_id}/files/f{step}", data) is not None:
                self.files[f"f{step}"] = data
        else:
            batch = {"run_id": self.run_id, "metrics": [{"key": "m", "value": value, "timestamp": 1, "step": step},
                                                        {"key": "n", "value": -value, "timestamp": 1, "step": step}]}
            if self.send("POST", MLFLOW + "/runs/log-batch", batch) is not None:
                self.points[step] = value


class Promoter(threading.Thread):
    """Makes versions and moves an alias forward and back. Tracks which versions the alias may point to."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.ending, self.wrong = server, False, []
        self.may_be = {0}  # versions that the alias may point to now
        self.newest = 0

    def send(self, method, path, body):
        try:
            return self.server.call(method, path, body, timeout=10)
        except Exception:
            return None, None

    def run(self):
        while not self.ending:
            status, answer = self.send("POST", MLFLOW + "/model-versions/create",
                                       {"name": "m", "source": "s3://b/s", "tags": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}]})
            if status == 200:
                self.newest = int(answer["model_version"]["version"])
                self.move(self.newest)
            time.sleep(0.01)

    def move(self, to):
        was = set(self.may_be)
        self.may_be = was | {to}
        expected = next(iter(was)) if len(was) == 1 else None
        body = {"version": to} if expected is None else {"version": to, "expected": expected}
        status, answer = self.send("PUT", "/api/v1/models/m/aliases/champion", body)
        if status == 200:
            self.may_be = {to}
        elif status is not None and status < 500:
            self.wrong.append((status, answer, was, to))


class Kills(unittest.TestCase):
    def test_nothing_acknowledged_is_lost(self):
        self.story(KILLS)

    def test_nothing_acknowledged_is_lost_with_postgresql(self):
        with Postgres() as postgres:
            self.story(KILLS // 4, "--store", postgres.url)

    def story(self, kills, *options):
        seed = int(os.environ.get("SINEW_SERVER_SEED", random.randrange(1 << 30)))
        rng = random.Random(seed)
        with tempfile.TemporaryDirectory() as folder, self.subTest(seed=seed):
            server = Server(SINEW, pathlib.Path(folder) / "runs", *options)
            server.start()
            self.assertEqual(server.call("POST", MLFLOW + "/registered-models/create", {"name": "m"})[0], 200)
            threads = [Writer(server, i) for i in range(4)] + [Promoter(server)]
            for thread in threads:
                thread.start()
            starts = []
            for _ in range(kills):
                time.sleep(rng.uniform(0.02, 0.6))
                server.kill()
                starts.append(server.start())
            time.sleep(0.3)
            for thread in threads:
                thread.ending = True
            for thread in threads:
                thread.join(60)
            for writer in threads[:-1]:
                self.check_writer(server, writer)
            self.check_versions(server, threads[-1])
            self.assertEqual(server.stop(), 0)
            print(f"{kills} kills, {sum(len(w.points) + len(w.tags) + len(w.files) for w in threads[:-1])} writes acknowledged, "
                  f"{threads[-1].newest} versions; listening again after {max(starts):.2f} s at most", file=sys.stderr)

    def check_writer(self, server, writer):
        self.assertEqual(writer.failed, [])
        self.assertGreater(len(writer.points), 0)
        for key, sign in (("m", 1), ("n", -1)):
            status, answer = server.call("GET", f"/api/v1/runs/{writer.run_id}/metrics/{key}?points=1000000")
            there = {step: value for step, _, value in answer["points"]}
            self.assertEqual(len(there), len(answer["points"]), "a point twice")
            for step, value in writer.points.items():
                self.assertEqual(there.get(step), sign * value, f"step {step} was acknowledged")
            if sign == 1:
                both = there
        self.assertEqual({step: -value for step, value in there.items()}, both, "a batch by halves")
        run = server.call("GET", f"/api/v1/runs/{writer.run_id}")[1]
        for key, value in writer.tags.items():
            self.assertEqual(run["tags"].get(key), value)
        for name, data in writer.files.items():
            self.assertEqual(server.call("GET", f"/api/v1/runs/{writer.run_id}/files/{name}"), (200, data))

    def check_versions(self, server, promoter):
        self.assertEqual(promoter.wrong, [])
        self.assertGreater(promoter.newest, 0)
        model = server.call("GET", "/api/v1/models/m")[1]
        versions = [v["version"] for v in model["versions"]]
        self.assertEqual(versions, list(range(len(versions), 0, -1)), "numbers without a gap")
        self.assertTrue(all(v["tags"] == {"a": "1", "b": "2"} for v in model["versions"]), "half a version")
        self.assertIn(model["aliases"].get("champion", {"version": 0})["version"], promoter.may_be)
        self.assertGreaterEqual(len(versions), promoter.newest)


class Places(unittest.TestCase):
    def test_a_store_has_only_one_server(self):
        with tempfile.TemporaryDirectory() as folder:
            with Server(SINEW, pathlib.Path(folder) / "runs") as first:
                second = Server(SINEW, pathlib.Path(folder) / "runs")
                with self.assertRaises(AssertionError) as caught:
                    second.start()
                self.assertIn("SERVER_ALREADY_RUNNING", str(caught.exception))
                self.assertIn(str(first.process.pid), str(caught.exception))
                self.assertEqual(first.call("GET", "/api/v1/ready")[0], 200)
                self.assertRegex(first.call("GET", "/version")[1].decode(), r"^\d+\.\d+\.\d+$")
            with Server(SINEW, pathlib.Path(folder) / "runs") as third:  # the first server released the store
                self.assertEqual(third.call("GET", "/health"), (200, b"OK"))

    def test_a_damaged_or_unwritable_store_is_reported(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder) / "runs"
            server = Server(SINEW, root)
            (root / ".sinew" / "store.db").write_bytes(b"this is no database" * 100)
            with self.assertRaises(AssertionError) as caught:
                server.start()
            self.assertIn("try:", str(caught.exception))

    def test_ten_thousand_idle_connections_and_others_are_served(self):
        import resource
        import socket
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        count = min(10_000, hard - 500)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count + 500), hard))
        with tempfile.TemporaryDirectory() as folder, Server(SINEW, pathlib.Path(folder) / "runs", "--connections-each", "20000") as server:
            idle = []
            try:
                for _ in range(count):
                    idle.append(socket.create_connection(("127.0.0.1", server.port), timeout=60))
                for _ in range(50):
                    self.assertEqual(server.call("GET", "/api/v1/runs")[0], 200)
                # Uses the newest connection: the connections were silent, so the server may have closed the oldest ones
                # by now.
                idle[-1].sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                self.assertIn(b"200 OK", idle[-1].recv(1000))
                resident = pathlib.Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]
                print(f"{count} idle connections: {int(resident) * 4096 / count / 1024:.1f} KiB each", file=sys.stderr)
            finally:
                for one in idle:
                    one.close()
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    def test_a_token_works_as_a_password_until_it_is_removed(self):
        import base64
        with tempfile.TemporaryDirectory() as folder, Server(SINEW, pathlib.Path(folder) / "runs") as server:
            pair = base64.b64encode(b"anybody:" + server.token.encode()).decode()
            self.assertEqual(server.call("GET", "/api/v1/runs", token=None, headers={"Authorization": "Basic " + pair})[0], 200)
            reader = server.add_token("reader", "read")
            deadline = time.monotonic() + 20
            while server.call("GET", "/api/v1/runs", token=reader)[0] != 200:
                self.assertLess(time.monotonic(), deadline, "a new token lets nobody in")
            subprocess.run([SINEW, "server", "token", "remove", "reader", "--root", str(server.root)], check=True)
            while server.call("GET", "/api/v1/runs", token=reader)[0] != 401:
                self.assertLess(time.monotonic(), deadline, "a token that was removed lets somebody in")

    def test_without_tokens_only_this_machine_is_served(self):
        with tempfile.TemporaryDirectory() as folder, Server(SINEW, pathlib.Path(folder) / "runs", token=False) as server:
            self.assertEqual(server.call("GET", "/api/v1/runs")[0], 200)
            for headers in ({"Host": "evil.example"}, {"Host": "localhost.evil.example"},
                            {"Host": "127.0.0.1.evil.example"}, {"Origin": "http://evil.example"}):
                self.assertEqual(server.call("GET", "/api/v1/runs", headers=headers)[0], 403, headers)

    def test_tls_by_a_certificate(self):
        import ssl
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = pathlib.Path(folder) / "cert.pem", pathlib.Path(folder) / "key.pem"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                            "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2",
                            "-out", certificate, "-keyout", key], check=True, capture_output=True)
            options = ["--tls-cert", str(certificate), "--tls-key", str(key)]
            with Server(SINEW, pathlib.Path(folder) / "runs", *options) as server:
                request = urllib.request.Request(f"https://127.0.0.1:{server.port}/api/v1/runs",
                                                 headers={"Authorization": "Bearer " + server.token})
                trusted = ssl.create_default_context(cafile=str(certificate))
                with urllib.request.urlopen(request, timeout=60, context=trusted) as answer:
                    self.assertEqual(answer.status, 200)
                status, answer = server.call("GET", "/api/v1/runs")  # without TLS
                self.assertEqual((status, "https://" in answer["hint"]), (400, True), answer)
            wrong = Server(SINEW, pathlib.Path(folder) / "others", "--tls-cert", str(certificate), "--tls-key", str(certificate))
            with self.assertRaises(AssertionError) as refused:
                wrong.start()
            self.assertIn("cannot use the key", str(refused.exception))

    def test_a_server_that_ends_finishes_its_requests(self):
        import http.client
        with tempfile.TemporaryDirectory() as folder, Server(SINEW, pathlib.Path(folder) / "runs") as server:
            headers = {"Authorization": "Bearer " + server.token}
            deadline = time.monotonic() + 60  # the indexer writes this event shortly after the start
            while not any(event["id"] == "registry.index" for event in server.call("GET", "/api/v1/events?after=0")[1]["events"]):
                self.assertLess(time.monotonic(), deadline)
            after = server.call("GET", "/api/v1/events?after=0")[1]["after"]
            waiting = []
            for path, more in ((f"/api/v1/events?wait=60&after={after}", {}), (f"/api/v1/events?after={after}", {"Accept": "text/event-stream"})):
                connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
                connection.request("GET", path, headers={**headers, **more})
                waiting.append((connection, connection.getresponse()))
            half = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            run = server.call("POST", MLFLOW + "/runs/create", {"experiment_id": "none"})
            self.assertEqual(run[0], 404)
            half.putrequest("PUT", "/api/v1/runs/none/files/a")
            for name, value in {**headers, "Content-Length": "1000"}.items():
                half.putheader(name, value)
            half.endheaders(b"some")
            self.assertEqual(server.stop(), 0)
            poll, stream = [response.read() for _, response in waiting]
            self.assertEqual(json.loads(poll), {"events": [], "after": after})
            self.assertEqual(stream, b"")
            for connection in [connection for connection, _ in waiting] + [half]:
                connection.close()

    def test_a_second_signal_ends_it_at_once(self):
        import socket
        with tempfile.TemporaryDirectory() as folder, Server(SINEW, pathlib.Path(folder) / "runs") as server:
            run = server.call("POST", MLFLOW + "/runs/create", {"experiment_id": "0"})[1]["run"]["info"]["run_id"]
            path = f"/api/v1/runs/{run}/files/a"
            self.assertEqual(server.call("PUT", path, bytes(50_000_000))[0], 201)
            lazy = socket.create_connection(("127.0.0.1", server.port), timeout=60)  # an unfinished response
            lazy.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode())
            self.assertTrue(lazy.recv(1))
            server.process.send_signal(signal.SIGTERM)
            deadline = time.monotonic() + 60
            while True:  # waits until the server no longer listens, which shows that it is ending
                try:
                    socket.create_connection(("127.0.0.1", server.port), timeout=60).close()
                except OSError:
                    break
                self.assertLess(time.monotonic(), deadline)
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(60), -signal.SIGTERM)
            lazy.close()
            server.process.stdout.close()
            server.log.close()

    def test_the_first_token_is_in_a_private_file_and_no_log_has_it(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder) / "runs"
            root.mkdir()
            process = subprocess.Popen([SINEW, "server", "--root", str(root), "--port", "0"], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            printed = ""
            try:
                while "listening on" not in printed:
                    line = process.stdout.readline()
                    self.assertTrue(line, printed)
                    printed += line
                secret = (root / ".sinew/admin-token").read_text().strip()
                self.assertEqual(oct((root / ".sinew/admin-token").stat().st_mode & 0o777), "0o600")
                self.assertEqual(oct((root / ".sinew").stat().st_mode & 0o777), "0o700")
                url = re.search(r"http://\S+", printed).group(0)
                request = urllib.request.Request(url + "/api/v1/runs?name=x", headers={"Authorization": f"Bearer {secret}"})
                with urllib.request.urlopen(request, timeout=60) as answer:
                    self.assertEqual(answer.status, 200)
            finally:
                process.terminate()
                said = printed + "".join(process.communicate(timeout=60))
            log = (root / ".sinew/access.log").read_text()
            entry = json.loads(log.splitlines()[-1])
            self.assertEqual((entry["token"], entry["path"], entry["status"]), ("admin", "/api/v1/runs", 200))
            for text in (said, log, (root / ".sinew/tokens.json").read_text()):
                self.assertNotIn(secret, text)

    def test_an_unusable_address_or_a_wrong_option_is_reported(self):
        for options, said in ((["--address", "0.0.0.0"], "TLS"), (["--address", "0.0.0.0", "--no-auth"], "no-auth"),
                              (["--port", "99999"], "port"), (["--what"], "[OPTION_UNKNOWN]"), (["what"], "[OPTION_INVALID]"),
                              (["token", "add", "x"], "--role"), (["token"], "add NAME"),
                              (["--store", "postgresql://me:secret@127.0.0.1/db"], "[STORE_PASSWORD_VISIBLE]")):
            out = subprocess.run([SINEW, "server", *options], capture_output=True, text=True, timeout=60)
            self.assertEqual(out.returncode, 2, out)
            self.assertIn(said, out.stderr)


if __name__ == "__main__":
    unittest.main()
