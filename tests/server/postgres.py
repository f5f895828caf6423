"""Starts a PostgreSQL server for one test, which clients reach by a socket in its own folder. PostgreSQL refuses to run
as root, so a test that runs as root starts it as user postgres."""
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

PATIENCE = 120


def program(name):
    given = os.environ.get("SINEW_POSTGRES_BIN")
    found = [pathlib.Path(given) / name] if given else sorted(pathlib.Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    if not found:
        raise AssertionError(f"no {name} below /usr/lib/postgresql: install postgresql, or set SINEW_POSTGRES_BIN")
    return str(found[-1])


class Postgres:
    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="sinew-postgres-")
        self.prefix = []
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self.prefix = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--pdeathsig=QUIT"]
        data = self.folder + "/data"
        subprocess.run([*self.prefix, program("initdb"), "-D", data, "-A", "trust", "-U", "sinew", "-E", "UTF8", "--locale=C.UTF-8",
                        "--no-sync"], check=True, capture_output=True, timeout=PATIENCE, cwd="/")
        self.process = subprocess.Popen([*self.prefix, program("postgres"), "-D", data, "-k", self.folder, "-c", "listen_addresses="],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")
        end = time.monotonic() + PATIENCE
        while subprocess.run([program("pg_isready"), "-q", "-h", self.folder], timeout=PATIENCE).returncode != 0:
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError("PostgreSQL did not start")
            time.sleep(0.05)
        return self

    @property
    def url(self):
        return f"postgresql://sinew@/postgres?host={self.folder}"

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(PATIENCE)
        shutil.rmtree(self.folder, ignore_errors=True)
