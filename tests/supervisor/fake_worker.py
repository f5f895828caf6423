#!/usr/bin/env python3
"""Takes the place of sinew-worker in tests of the programs around it: joins the group and reports ten steps a second,
but trains nothing. FAKE_* variables and files in the run directory tell it how to misbehave."""
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import struct
import sys
import time
import urllib.parse
import uuid

PULSE_SECONDS = 0.1
PATIENCE_SECONDS = 60
leaving = False
TASK = json.loads(pathlib.Path(sys.argv[1]).read_text())


def on_term(number, frame):
    global leaving
    leaving = True


class Refused(Exception):
    pass


def connection_to(address):
    """Returns a connection to the address. With TLS, accepts any certificate: the tests of the real workers cover the
    verification."""
    if address.scheme == "http":
        return http.client.HTTPConnection(address.hostname, address.port, timeout=10)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return http.client.HTTPSConnection(address.hostname, address.port, timeout=10, context=context)


def note_work(step, shard):
    """Posts on the activity board (src/base/activity_board.h) that the only lane computes this shard of 32 samples."""
    with open(TASK["activity_board"], "r+b", buffering=0) as board:
        board.write(struct.pack("7q", 1, 1, step, shard, 2, 32 * shard, 32))


def note_error(text):
    """Posts an error and, after a byte 0, its hint."""
    with open(TASK["activity_board"], "r+b", buffering=0) as board:
        for index, part in enumerate(text.split("\0")):
            board.seek(256 * 64 + index * 2048)
            board.write(part.encode())


class Worker:
    def __init__(self, job, directory):
        self.directory = pathlib.Path(directory)
        self.incarnation = uuid.uuid4().hex
        self.view, self.requests, self.requests_key, self.knows_end = None, [], "", False
        self.finished, self.taken, self.introduce = None, 0, False
        self.phase, self.proof = "waiting", ""
        resolved = self.directory / "resolved.yaml"
        if not resolved.exists():
            shutil.copyfile(job, self.directory / f"resolved.{os.getpid()}")
            os.replace(self.directory / f"resolved.{os.getpid()}", resolved)
        begun = self.directory / "begun"
        if not begun.exists():
            begun.write_text("")
        self.began = begun.stat().st_mtime

    def step(self):
        step = max(0, int(10 * (time.time() - self.began)))
        stuck = int(os.environ.get("FAKE_STUCK", "0"))  # stays at this step for ever and claims to compute shard 3
        if not stuck or step < stuck:
            return step
        note_work(stuck, 3)
        return stuck

    def introduction(self):
        return {"address": f"fake:{os.getpid()}", "host": socket.gethostname(), "pid": os.getpid(),
                "identity": {"job": "job", "machine": "machine", "probe": "probe"},
                **({"proof": self.proof} if self.proof else {})}

    def call(self, path, body):
        """Returns the coordinator's response. Tries again until the timeout, each time at its current address."""
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            try:
                where = json.loads(pathlib.Path(TASK["group"]["coordinator_file"]).read_text())
                connection = connection_to(urllib.parse.urlsplit(where["url"]))
                try:
                    connection.request("POST", path, json.dumps(body), {"Authorization": "Bearer " + where["secret"]})
                    answer = connection.getresponse()
                    text = answer.read()
                finally:
                    connection.close()
                if answer.status == 200:
                    return json.loads(text)
                if answer.status < 500:
                    raise Refused(text)
            except (OSError, ValueError, http.client.HTTPException):
                pass
            time.sleep(0.02)
        sys.exit(76)

    def own_entry(self):
        return next((member for member in (self.view or {}).get("members", []) if member["id"] == self.id), None)

    def is_leader(self):
        computing = [member["id"] for member in (self.view or {}).get("members", []) if not member.get("joining")]
        return bool(computing) and (self.view.get("leader") or computing[0]) == self.id

    def end(self, code):
        """Ends the run, as the leader. Writes the report first, as a real worker does."""
        if self.finished is None and "FAKE_NO_REPORT" not in os.environ:
            report = {"status": "stopped" if code else "done", "exit_code": code, "started": time.time(), "steps": self.step()}
            new = self.directory / f"report.{os.getpid()}"
            new.write_text(json.dumps(report))
            os.replace(new, self.directory / "report.json")
        self.finished = code

    def heartbeat(self):
        generation = (self.view or {}).get("generation", 0)
        said = {"id": self.id, "incarnation": self.incarnation, "known_view": generation, "acting_view": generation,
                "requests_key": self.requests_key,
                "phase": self.phase, "step": self.step(), "durable_step": 0, "speed": 10.0, "knows_end": self.knows_end,
                "taken_requests": self.taken}
        if self.finished is not None:
            said["finished"] = self.finished
        if self.introduce:
            said["introduction"] = self.introduction()
            if self.view:
                said["view"] = self.view
            self.introduce = False
        return said

    def hear(self, reply):
        if reply.get("introduce"):
            self.introduce = True
            return
        self.view = reply.get("view", self.view)
        if "requests" in reply:
            self.requests = reply["requests"]
        self.requests_key = reply.get("requests_key", self.requests_key)
        if "fenced" in reply:
            sys.exit(75 if leaving else 76)
        if "finished" in reply and not self.knows_end:
            self.knows_end, self.finished = True, self.finished if self.finished is not None else None
            self.code = reply["finished"]

    def decide(self):
        entry = self.own_entry()
        if entry and entry.get("joining"):
            self.phase = "caught_up"
        elif entry:
            self.phase = "leaving" if leaving else "computing"
        elif leaving:
            sys.exit(75)
        if not self.is_leader():
            return
        for request in self.requests:
            self.taken = max(self.taken, request["number"])
            if request["kind"] == "stop":
                self.end(75)
            with open(self.directory / "requests", "a") as file:
                file.write(json.dumps(request) + "\n")
        self.requests = []
        last = int(os.environ.get("FAKE_STEPS", "0"))
        if (last and self.step() >= last) or (self.directory / "finish").exists():
            self.end(0)

    def run(self):
        joined = self.call("/v2/join", {**self.introduction(), "incarnation": self.incarnation})
        self.id, self.proof = joined["id"], joined.get("proof", "")
        while True:
            self.hear(self.call("/v2/heartbeat", self.heartbeat()))
            if self.knows_end:
                self.call("/v2/heartbeat", self.heartbeat())
                sys.exit(self.code)
            self.decide()
            order = self.directory / f"exit-{os.getpid()}"
            if order.exists():
                os._exit(int(order.read_text()))
            time.sleep(PULSE_SECONDS)


def main():
    signal.signal(signal.SIGTERM, on_term)
    job, directory = TASK["job"], TASK["run_directory"]
    assert TASK["task"] == "train" and "group" in TASK, TASK
    with open(pathlib.Path(directory) / "started", "a") as file:
        file.write(json.dumps({"pid": os.getpid(), **TASK}) + "\n")
    if "FAKE_WORK" in os.environ:
        note_work(*map(int, os.environ["FAKE_WORK"].split()))
    if "FAKE_ERROR" in os.environ:
        note_error(os.environ["FAKE_ERROR"].replace("\\0", "\0"))
    fate = os.environ.get("FAKE_FATE", "")
    if fate.startswith("exit "):
        sys.exit(int(fate.split()[1]))
    if fate.startswith("signal "):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), int(fate.split()[1]))
        time.sleep(60)
    try:
        Worker(job, directory).run()
    except Refused as error:
        print(f"refused: {error}", file=sys.stderr)
        sys.exit(2 if "COORDINATOR_TOKEN_" in str(error) else 1)


if __name__ == "__main__":
    main()
