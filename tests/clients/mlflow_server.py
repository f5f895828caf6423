"""MLflow's own server for a test, of the same version as the client. It runs in an environment of its own, build/mlflow,
which is made at the first use, because the packages of the server take several hundred MB.

SINEW_MLFLOW: the program `mlflow` of an environment that exists already.
"""
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import urllib.request

INSTALLING, STARTING, ENDING = 1200, 180, 30  # seconds
HOME = pathlib.Path(__file__).resolve().parents[2] / "build/mlflow"


def program(version):
    """Returns the path of the program. Raises AssertionError if it cannot be installed."""
    if given := os.environ.get("SINEW_MLFLOW"):
        return given
    wanted, ready = f"mlflow=={version}", HOME / "sinew-ready"
    if not ready.exists() or ready.read_text() != wanted:
        print(f"installing {wanted} into {HOME}", file=sys.stderr)
        for command in ([sys.executable, "-m", "venv", "--clear", HOME],
                        [HOME / "bin/pip", "install", "--quiet", "--disable-pip-version-check", wanted]):
            done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALLING)
            if done.returncode != 0:
                raise AssertionError(f"cannot install {wanted}: {done.stderr[-2000:]}")
        ready.write_text(wanted)
    return str(HOME / "bin/mlflow")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class MlflowServer:
    def __init__(self, folder, version):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.program, self.url = program(version), f"http://127.0.0.1:{free_port()}"

    def start(self):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
        environment.update(MLFLOW_SERVER_ENABLE_JOB_EXECUTION="false", MLFLOW_DISABLE_TELEMETRY="true", DO_NOT_TRACK="true")
        command = [self.program, "server", "--host", "127.0.0.1", "--port", self.url.rpartition(":")[2], "--workers", "1",
                   "--backend-store-uri", f"sqlite:///{self.folder}/mlflow.db", "--artifacts-destination", str(self.folder / "artifacts")]
        self.log = open(self.folder / "server.log", "wb")
        # The server starts workers, so it gets a process group of its own.
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT, env=environment, cwd=self.folder,
                                        start_new_session=True)
        deadline = time.monotonic() + STARTING
        while True:
            try:
                with urllib.request.urlopen(self.url + "/health", timeout=5):
                    return
            except OSError as error:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    raise AssertionError(f"MLflow's server did not start ({error}): {(self.folder / 'server.log').read_text()[-3000:]}") from error
                time.sleep(0.2)

    def stop(self):
        for sign in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, sign)
                self.process.wait(ENDING)
            except ProcessLookupError:
                pass
            except subprocess.TimeoutExpired:
                continue
        self.log.close()
