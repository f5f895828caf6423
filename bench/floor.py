"""Measures how many operations the store and the server do in a second, and how long requests take on a full store.
The programs store_bench and web_bench measure; their sources describe each figure."""
import json
import os
import subprocess
import tempfile

import contestants
from figures import figure

HARD_LIMIT_S = 1800


def said(program, folder, rows, runs):
    """Runs a benchmark program. Returns what it measured as {row: {counter: value}}, with times in milliseconds."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        environment = dict(os.environ, SINEW_BENCH_RUNS=str(runs), SINEW_BENCH_DIR=scratch)
        done = subprocess.run([contestants.BIN / program, "--benchmark_format=json", f"--benchmark_filter=^({'|'.join(rows)})"],
                              capture_output=True, text=True, env=environment, timeout=HARD_LIMIT_S, check=True)
    measured = {row["name"]: row for row in json.loads(done.stdout)["benchmarks"]}
    for name, row in measured.items():
        if row.get("error_occurred") or row.get("errors"):
            raise RuntimeError(f"{program}: {name} failed: {row.get('error_message', '')}")
    return measured


def row_of(measured, name):
    """Returns the row with this name. In the file, a suffix of the name tells how often the row was repeated."""
    return next(row for full, row in measured.items() if full.split("/iterations")[0] == name or full.split("/real_time")[0] == name)


def store(folder, quick):
    """Measures creating and finishing runs, and writing points, on a SQLite file and a private PostgreSQL server."""
    runs = 200 if quick else 2000
    measured = said("store_bench", folder, ["SqliteRuns", "RawSqliteRuns/4", "PostgresRuns", "RawPostgresRuns/4",
                                            "SqliteSinglePoints", "SqliteBulk", "RemoveFiles"], runs)
    rate = lambda name: row_of(measured, name)["per_second"]
    apart = row_of(measured, "SqliteRuns/4")
    fused = row_of(measured, "SqliteRunsFused/4")
    return [figure("SQLite: durable runs per second, 4 processes", fused["per_second"], 2500, detail="one write finishes a run and creates the next"),
            figure("SQLite: syncs per run", fused["syncs_each"], 2, low=True),
            figure("SQLite: durable runs per second, 4 processes, two writes per run", apart["per_second"],
                   detail=f"{apart['syncs_each']:.2f} syncs per run; plain SQLite, one row per run: {rate('RawSqliteRuns/4'):,.0f}"),
            figure("SQLite: durable runs per second, 32 processes", rate("SqliteRunsFused/32"), detail="no write failed as locked"),
            figure("PostgreSQL: durable runs per second, 4 processes", rate("PostgresRunsFused/4"), 1000,
                   detail=f"two writes per run: {rate('PostgresRuns/4'):,.0f}; plain statements: {rate('RawPostgresRuns/4'):,.0f}"),
            figure("points per second, one write for a run of 50 metrics x 500 points", rate("SqliteBulk"), 500_000, detail=f"{runs} runs"),
            figure("points per second, one point per write, 64 threads", rate("SqliteSinglePoints/64"))]


def server(folder, quick):
    """Measures requests over HTTP, on a store with 2,000 runs of 50 metrics and 500 points."""
    measured = said("web_bench", folder, [".*"], 2000)
    ms = lambda name: row_of(measured, name)["real_time"]
    rate = lambda name: row_of(measured, name)["points_per_second"]
    return [figure("list of 2,000 runs, ms", ms("list_all"), 200, low=True),
            figure("list of 2,000 runs with two metrics of each, ms", ms("list_all_with_two_metrics"), 200, low=True),
            figure("overlay of a metric of 100 runs, ms", ms("overlay_of_100"), 500, low=True, detail="500 points of each"),
            figure("MLflow search by a metric over 2,000 runs, ms", ms("mlflow_search_of_100"), detail="100 runs with all they have in the answer"),
            figure("/metrics, ms", ms("metrics_page"), detail="500 running runs, 20,000 series"),
            figure("points a second, a thousand a request", rate("bulk_points"), detail="JSON, one connection"),
            figure("points a second, one a request, one connection", rate("single_points/real_time/threads:1"),
                   detail="MLflow's log-metric; each durable before its answer"),
            figure("points a second, one a request, 8 connections", rate("single_points/real_time/threads:8"))]
