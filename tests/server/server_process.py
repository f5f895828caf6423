"""A `sinew server` for tests: it starts on a free port, can be killed, and can be started again on the same files."""
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import time
import urllib.error
import urllib.request

PATIENCE = 60  # seconds; a timeout far above the usual time


class Server:
    def __init__(self, sinew, root, *options, token=True):
        self.sinew, self.root, self.options = sinew, pathlib.Path(root), list(options)
        self.port, self.token, self.process = 0, None, None
        self.root.mkdir(parents=True, exist_ok=True)
        if token:
            self.token = self.add_token("tester", "admin")
        else:
            self.options.append("--no-auth")

    def add_token(self, name, role):
        subprocess.run([self.sinew, "server", "token", "remove", name, "--root", str(self.root)], capture_output=True)
        out = subprocess.run([self.sinew, "server", "token", "add", "--role", role, name, "--root", str(self.root)],
                             check=True, capture_output=True, text=True)
        return out.stdout.strip()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        """Starts the server. Returns the seconds until it listens."""
        began = time.monotonic()
        self.log = open(self.root / "server.err", "ab")
        self.process = subprocess.Popen(
            [self.sinew, "server", "--root", str(self.root), "--port", str(self.port), "--rate", "0", *self.options],
            stdout=subprocess.PIPE, stderr=self.log, text=True)
        text = ""
        while True:
            ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
            line = self.process.stdout.readline() if ready else ""
            text += line
            if not line:
                self.kill()
                raise AssertionError(f"no server: {text} {(self.root / 'server.err').read_text()}")
            found = re.search(r"^listening on https?://.*:(\d+)$", line)
            if found:
                self.port = int(found.group(1))
                return time.monotonic() - began

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)
        self.process.stdout.close()
        self.log.close()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        self.log.close()
        return code

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()

    def call(self, method, path, body=None, headers=(), token="own", timeout=PATIENCE):
        """Returns the status and the body of the response: parsed if it is JSON, otherwise its bytes."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=dict(headers))
        secret = self.token if token == "own" else token
        if secret:
            request.add_header("Authorization", "Bearer " + secret)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                status, kind, text = answer.status, answer.headers.get("content-type", ""), answer.read()
        except urllib.error.HTTPError as error:
            status, kind, text = error.code, error.headers.get("content-type", ""), error.read()
        return status, json.loads(text) if "json" in kind and text else text

    def environment(self):
        """Sets the environment variables for MLflow's client, as a user would."""
        os.environ["MLFLOW_TRACKING_URI"] = self.url
        os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "1"
        os.environ["GIT_PYTHON_REFRESH"] = "quiet"
        os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"
        os.environ["MLFLOW_DISABLE_TELEMETRY"] = os.environ["DO_NOT_TRACK"] = "true"
        if self.token:
            os.environ["MLFLOW_TRACKING_TOKEN"] = self.token
