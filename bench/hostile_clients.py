"""The clients of the row `hostile`, each kind in a process of its own.

usage: hostile_clients.py good SECONDS       a client that sends ordinary requests
       hostile_clients.py hostile SECONDS    clients that do what harms a server most, one for each token
Reads from stdin what hostile.py gives them, as JSON, and prints what they saw, as JSON.
"""
import collections
import http.client
import json
import os
import re
import socket
import sys
import threading
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

MLFLOW = "/api/2.0/mlflow"
PATIENCE = 120  # seconds that the good client waits for one answer
SLOW, IDLE = 4, 20  # connections of each hostile client that read slowly, and that do nothing


# ---- the good client -----------------------------------------------------------------------------------------------

def good(given, seconds):
    """Returns the milliseconds of each kind of request, and the refusals. Each kind has a connection of its own, so that
    a slow kind does not lower the number of the others."""
    run = given["own"]
    kinds = {"log a metric": lambda i: ("POST", MLFLOW + "/runs/log-metric", {"run_id": run, "key": "m", "value": i, "timestamp": i, "step": i}),
             "read a run": lambda i: ("GET", f"/api/v1/runs/{run}", None),
             "list a page": lambda i: ("GET", "/api/v1/runs?limit=50&key=score", None)}
    times, refusals = {kind: [] for kind in kinds}, {kind: collections.Counter() for kind in kinds}
    until = time.monotonic() + seconds
    with ThreadPoolExecutor(len(kinds)) as pool:
        for done in [pool.submit(repeat_good, given, make, until, times[kind], refusals[kind]) for kind, make in kinds.items()]:
            done.result()  # a client that got no answer fails the row
    return {"times": times, "refusals": sum(refusals.values(), collections.Counter())}


def repeat_good(given, make, until, times, refusals):
    place = urllib.parse.urlsplit(given["url"])
    connection, i = http.client.HTTPConnection(place.hostname, place.port, timeout=PATIENCE), 0
    while time.monotonic() < until:
        i += 1
        method, target, body = make(i)
        began = time.perf_counter()
        connection.request(method, target, body and json.dumps(body), {"Authorization": "Bearer " + given["token"]})
        answer = connection.getresponse()
        text = answer.read()
        times.append(1e3 * (time.perf_counter() - began))
        if answer.status != 200:
            refusals[said(answer.status, text)] += 1
        time.sleep(0.01)


def said(status, text):
    """Describes an answer: its status and, if it is an error, its code."""
    code = re.search(rb'"code": *"([A-Z_0-9]+)"', text)
    return f"{status} {code.group(1).decode()}" if code and status >= 400 else str(status)


# ---- the hostile clients -------------------------------------------------------------------------------------------

class Line:
    """A connection with a token. Every wait ends at `until`."""

    def __init__(self, where, token, until, buffer=None):
        self.token, self.until, self.rest = token, until, b""
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(5)
        self.socket.connect(where)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def request(self, method, target, body=None):
        data = b"" if body is None else json.dumps(body).encode()
        return (f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.token}\r\n"
                f"Content-Length: {len(data)}\r\n\r\n").encode() + data

    def send(self, *request):
        self.socket.sendall(self.request(*request))

    def receive(self):
        while time.monotonic() < self.until:
            try:
                piece = self.socket.recv(1 << 20)
            except socket.timeout:
                continue
            if not piece:
                raise ConnectionError("the server closed the connection")
            return piece
        raise TimeoutError("the time is over")

    def answer(self):
        """Reads one answer. Returns what it said."""
        while b"\r\n\r\n" not in self.rest:
            self.rest += self.receive()
        head, _, piece = self.rest.partition(b"\r\n\r\n")
        length, start = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head), b""
        left = int(length.group(1)) if length else 0
        while left > len(piece):
            left, start, piece = left - len(piece), (start + piece)[:4096], self.receive()
        self.rest = piece[left:]
        return said(int(head.split()[1]), start + piece[:left])


def requests_of(runs, big):
    """Returns the most expensive requests that the limits allow."""
    order = [f"metrics.metric{i} DESC" for i in range(10)] + [f"params.p{i} ASC" for i in range(20)] + ["tags.note DESC"]
    matching = " AND ".join(["tags.note ILIKE '" + "%a" * 45 + "%'"] * 200)
    missing = " AND ".join(f"params.p{i % 20} LIKE '%_v%l%_e%o%'" for i in range(100)) + " AND tags.note LIKE '" + "%a" * 45 + "%b'"
    listed = lambda name, ids: "".join(f"&{name}={run}" for run in ids)
    search = lambda **more: ("POST", MLFLOW + "/runs/search", {"experiment_ids": ["0"], "max_results": 50_000, **more})
    return [search(order_by=(order * 2)[:50]),
            search(filter=matching),
            ("GET", f"{MLFLOW}/metrics/get-history?metric_key=loss&max_results=100000&run_id={big[0]}"),
            ("GET", f"{MLFLOW}/metrics/get-history-bulk-interval?metric_key=loss&max_results=2500" + listed("run_ids", big * 25)),
            ("GET", "/api/v1/overlay?key=metric3&points=20000" + listed("run", runs[:100])),
            search(filter=missing, order_by=order),
            ("GET", f"{MLFLOW}/metrics/get-history-bulk?metric_key=loss&max_results=25000" + listed("run_id", big * 25)),
            ("GET", "/api/v1/overlay?key=loss&points=2000" + listed("run", big * 75)),
            ("GET", "/api/v1/runs?limit=10000" + "".join(f"&key=metric{i}" for i in range(10))),
            ("GET", "/api/v1/overlay?key=loss&points=500000" + listed("run", big)),
            ("GET", "/metrics")]


class Hostile:
    """A hostile client. One thread sends expensive requests and abandons some, another holds slow and idle connections."""

    def __init__(self, given, number, until, seen):
        self.token, self.number, self.until, self.seen, self.lock = given["tokens"][number], number, until, seen, threading.Lock()
        place = urllib.parse.urlsplit(given["url"])
        self.where = (place.hostname, place.port)
        self.requests = requests_of(given["runs"], given["big"])
        self.threads = [threading.Thread(target=self.repeat, args=(act,), daemon=True) for act in (self.ask, self.hold)]

    def line(self, **more):
        return Line(self.where, self.token, self.until, **more)

    def saw(self, what, count=1):
        with self.lock:
            self.seen[what] += count

    def repeat(self, act):
        turn = self.number
        while time.monotonic() < self.until:
            try:
                act(turn)
            except TimeoutError:
                self.saw("unfinished")
            except OSError:
                self.saw("closed")
                time.sleep(0.05)
            turn += 1

    def ask(self, turn):
        request = self.requests[turn % len(self.requests)]
        with self.line() as line:
            line.send(*request)
            self.saw(line.answer())
        with self.line() as line:  # leaves while the server works
            line.send(*self.requests[(turn + 3) % len(self.requests)])
            time.sleep(0.05)
            self.saw("abandoned")
        with self.line() as line:  # leaves in the middle of a request
            whole = line.request("POST", MLFLOW + "/runs/search", {"filter": "x" * 50_000})
            line.socket.sendall(whole[:len(whole) // (2 if turn % 2 else 1000)])
            self.saw("half a request")
        if turn % 3 == 0:
            with self.line() as line:  # asks for many answers at once, and reads only some of them
                line.socket.sendall(b"".join(line.request(*self.requests[2]) for _ in range(30)))
                for _ in range(3):
                    self.saw(line.answer())

    def hold(self, _):
        """Holds connections for some seconds. Reads one byte at a time of a large answer from each slow one."""
        slow, idle = [], []
        try:
            for i in range(IDLE):
                idle.append(self.line())
                if i % 2:
                    idle[-1].send("GET", "/api/v1/models?limit=1")
                    self.saw(idle[-1].answer())
            for i in range(SLOW):
                slow.append(self.line(buffer=4096))
                slow[-1].send(*self.requests[-2] if i % 2 else self.requests[2])
                slow[-1].socket.setblocking(False)
            end = min(self.until, time.monotonic() + 10)
            while time.monotonic() < end:
                for line in slow:
                    try:
                        line.socket.recv(1)
                    except BlockingIOError:
                        pass
                time.sleep(0.05)
            self.saw("read byte by byte", len(slow))
        finally:
            for line in slow + idle:
                line.socket.close()


def hostile(given, seconds):
    """Returns how often the clients saw each answer, and how often they did each thing."""
    os.nice(10)  # real hostile clients would have machines of their own
    until, seen = time.monotonic() + seconds, [collections.Counter() for _ in given["tokens"]]
    clients = [Hostile(given, number, until, seen[number]) for number in range(len(seen))]
    threads = [thread for client in clients for thread in client.threads]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until + 20 - time.monotonic()))
    return sum(seen, collections.Counter())


if __name__ == "__main__":
    kind, length = sys.argv[1:]
    print(json.dumps({"good": good, "hostile": hostile}[kind](json.load(sys.stdin), float(length))))
