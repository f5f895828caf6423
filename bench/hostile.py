"""Measures how long a client waits for the real server while hostile clients, which have tokens and may only read, send
it the most expensive requests that its limits allow. hostile_clients.py says what they do."""
import collections
import contextlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import contestants
from figures import figure, percentile

sys.path.insert(0, str(contestants.ROOT / "tests/server"))
from server_process import Server  # noqa: E402

HOSTILE, RUNS, BIG, POINTS = 8, 2000, 4, 400_000
MLFLOW = "/api/2.0/mlflow"
SETTLING = 2  # seconds after the start of the hostile clients before the measurement


def succeed(server, method, path, body, token="own"):
    status, answer = server.call(method, path, body, token=token)
    if status != 200:
        raise RuntimeError(f"{method} {path}: {status} {answer}")
    return answer


def new_run(server, name, tags=(), token="own"):
    body = {"experiment_id": "0", "run_name": name, "tags": [{"key": key, "value": value} for key, value in tags]}
    return succeed(server, "POST", MLFLOW + "/runs/create", body, token)["run"]["info"]["run_id"]


def filled(server, good):
    """Creates the runs. Returns their ids, the ids of those with many points, and the id of the good client's run."""
    begun = 1_800_000_000_000
    some = json.dumps({"series": {f"metric{i}": [[step, begun + step, (step * 37 + i) % 101 / 7] for step in range(100)]
                                  for i in range(10)}}).encode()

    def run(number):
        made = new_run(server, f"run {number} of a study", [("note", "a" * 2000), ("team", f"team {number % 7}")])
        params = [{"key": f"p{i}", "value": f"a value of {number * i % 97}"} for i in range(20)]
        score = {"key": "score", "value": number * 7919 % RUNS, "timestamp": begun, "step": 1}
        succeed(server, "POST", MLFLOW + "/runs/log-batch", {"run_id": made, "params": params, "metrics": [score]})
        succeed(server, "POST", f"/api/v1/runs/{made}/points", some)
        return made

    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(run, range(RUNS)))
    big, piece = runs[-BIG:], 50_000
    for first in range(0, POINTS, piece):
        points = [[step, begun + step, step * 7919 % 100_003 / 100_003] for step in range(first, first + piece)]
        body = json.dumps({"series": {"loss": points}}).encode()
        for made in big:
            succeed(server, "POST", f"/api/v1/runs/{made}/points", body)
    return {"runs": runs, "big": big, "own": new_run(server, "the good client's", token=good)}


@contextlib.contextmanager
def clients(kind, seconds, given):
    """Starts clients. Yields a function that waits for their end and returns what they saw."""
    process = subprocess.Popen([contestants.PYTHON, contestants.ROOT / "bench/hostile_clients.py", kind, str(seconds)],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ended():
        text, _ = process.communicate(timeout=seconds + contestants.PATIENCE)
        if process.returncode != 0:
            raise RuntimeError(f"the {kind} clients ended with {process.returncode}")
        return json.loads(text)

    try:
        process.stdin.write(json.dumps(given))
        process.stdin.close()
        process.stdin = None
        yield ended
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(60)


def measured(server, given, tokens, seconds, beside):
    """Runs the good client, beside the hostile ones or alone. Returns what it saw and what they saw."""
    with contextlib.ExitStack() as stack:
        hostile_end = None
        if beside:
            hostile_end = stack.enter_context(clients("hostile", seconds + SETTLING + 1, {**given, "tokens": tokens}))
            time.sleep(SETTLING)
        good = stack.enter_context(clients("good", seconds, given))()
        seen = collections.Counter(hostile_end()) if beside else collections.Counter()
    check_alive(server)
    return good, seen


def check_alive(server):
    """Raises RuntimeError unless the server runs and answers. Returns when it is idle again."""
    deadline = time.monotonic() + contestants.PATIENCE
    while time.monotonic() < deadline:
        if server.process.poll() is not None:
            raise RuntimeError(f"the server ended with {server.process.returncode}: {(server.root / 'server.err').read_text()[-2000:]}")
        began = time.monotonic()
        if server.call("GET", "/health")[0] == 200 and server.call("GET", "/api/v1/runs?limit=1000")[0] == 200 and time.monotonic() - began < 0.2:
            return
        time.sleep(0.2)
    raise RuntimeError("the server did not come to rest after the hostile clients had left")


def peak_mib(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) / 1024


def failures(server, seen):
    """Counts the answers with a status from 500 on. Returns two counts. The first is of what the clients saw, without a
    503 with a code of openapi.json. The second is of the access log, without 501 and 503. The log also has the answers
    for which no client waited."""
    described = json.loads((contestants.ROOT / "docs/reference/openapi.json").read_text())["components"]["responses"]["503"]
    documented = {f"503 {code}" for code in re.findall(r"[A-Z]+(?:_[A-Z]+)+", described["description"])}
    found = {said: count for said, count in seen.items() if re.match("5", said) and said not in documented}
    logged = collections.Counter(status for path in (server.root / ".sinew").glob("access.log*") for line in path.open()
                                 if (status := json.loads(line)["status"]) >= 500 and status not in (501, 503))
    return found, logged


def hostile(folder, quick):
    rounds, seconds = (2, 6) if quick else (3, 14)
    times, seen, refusals = {True: collections.defaultdict(list), False: collections.defaultdict(list)}, collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        server = Server(contestants.SINEW, pathlib.Path(scratch) / "runs")
        good = server.add_token("good", "submit")
        tokens = [server.add_token(f"hostile{i}", "read") for i in range(HOSTILE)]
        with server:
            given = {**filled(server, good), "url": server.url, "token": good}
            before = peak_mib(server)
            for turn in range(rounds):
                for beside in (False, True) if turn % 2 == 0 else (True, False):
                    saw, others = measured(server, given, tokens, seconds, beside)
                    for kind, values in saw["times"].items():
                        times[beside][kind] += values
                    refusals.update(saw["refusals"])
                    seen.update(others)
            peak, (found, logged) = peak_mib(server), failures(server, seen)
            if (code := server.stop()) != 0:
                raise RuntimeError(f"the server ended with {code}")
    return figures_of(times, seen, refusals, (before, peak), found, logged, f"{rounds} rounds of {seconds} s each way")


def figures_of(times, seen, refusals, memory, found, logged, rounds):
    figures = []
    for kind, beside in times[True].items():
        most, usual = percentile(beside, 0.99), percentile(times[False][kind], 0.99)
        figures.append(figure(f"p99 to {kind} beside {HOSTILE} hostile clients, times that alone", most / usual, 3, low=True,
                              detail=f"{most:.1f} ms over {usual:.1f} ms; {len(beside):,} and {len(times[False][kind]):,} requests"))
    figures[0]["detail"] += f"; {rounds}; {RUNS:,} runs, {BIG} of them with {POINTS:,} points"
    did = ", ".join(f"{said} {count:,}" for said, count in sorted(seen.items()))
    return [*figures,
            figure("requests of that client that were refused", sum(refusals.values()), 0, low=True,
                   detail=", ".join(f"{said} {count}" for said, count in refusals.items())),
            figure("peak memory of the server, MiB", memory[1], detail=f"{memory[0]:.0f} MiB before the hostile clients"),
            figure("answers from 500 on but the documented 503s", max(sum(found.values()), sum(logged.values())), 0, low=True,
                   detail=f"the hostile clients saw and did: {did}" + (f"; logged: {dict(logged)}" if logged else ""))]
