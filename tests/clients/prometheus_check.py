"""Reads /metrics of `sinew server` with Prometheus' own parser (the package prometheus-client).

The environment variable SINEW names the program.
"""
import json
import math
import os
import pathlib
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "server"))
from server_process import Server  # noqa: E402

from prometheus_client.parser import text_string_to_metric_families  # noqa: E402

SINEW = os.environ.get("SINEW", "sinew")
MLFLOW = "/api/2.0/mlflow"
# Names of runs. MLflow allows fewer characters in the key of a metric, so each run has a metric of its number.
HOSTILE = ['plain', 'with "quotes"', 'back\\slash', 'new\nline', 'ünï', '}{=,"']


class Prometheus(unittest.TestCase):
    def test_runs_metrics_and_the_server(self):
        with tempfile.TemporaryDirectory() as folder, Server(SINEW, pathlib.Path(folder) / "runs") as server:
            runs = {}
            for number, name in enumerate(HOSTILE):
                run = server.call("POST", MLFLOW + "/runs/create", {"experiment_id": "0", "run_name": name})[1]
                runs[name] = run["run"]["info"]["run_id"]
                for value, step in ((1, 1), ("NaN" if name == "plain" else 0.25, 2)):
                    body = {"run_id": runs[name], "key": f"m/ü{number}", "value": value, "timestamp": 1, "step": step}
                    self.assertEqual(server.call("POST", MLFLOW + "/runs/log-metric", body)[0], 200)
            done = server.call("POST", MLFLOW + "/runs/create", {"experiment_id": "0"})[1]["run"]["info"]["run_id"]
            server.call("POST", MLFLOW + "/runs/update", {"run_id": done, "status": "FINISHED"})
            self.assertEqual(server.call("GET", "/metrics", token=None)[0], 401)
            status, text = server.call("GET", "/metrics")
            self.assertEqual(status, 200)
            families = {family.name: family for family in text_string_to_metric_families(text.decode())}
            states = {s.labels["state"]: s.value for s in families["sinew_runs"].samples}
            self.assertEqual((states["running"], states["finished"]), (len(HOSTILE), 1))
            shown = {s.labels["name"]: s for s in families["sinew_run_metric"].samples}
            self.assertEqual(set(shown), set(HOSTILE))
            for name, sample in shown.items():
                self.assertEqual(sample.labels["run"], runs[name])
                self.assertEqual(sample.labels["metric"], f"m/ü{HOSTILE.index(name)}")
                self.assertTrue(sample.value == 0.25 or (name == "plain" and math.isnan(sample.value)))
            self.assertGreater(families["sinew_http_requests"].samples[0].value, 10)

    def test_what_a_run_has_spent(self):
        with tempfile.TemporaryDirectory() as folder, Server(SINEW, pathlib.Path(folder) / "runs") as server:
            run = pathlib.Path(folder) / "runs/drill/20261129T000000Z-abcd"
            run.mkdir(parents=True)
            report = {"status": "done", "steps": 30, "samples": 960, "time": {"lanes": 2, "forward": 1.5, "backward": 3.25},
                      "resources": {"cpu_seconds": 4.5, "disk_written_bytes": 4096}, "memory_bytes": {"parameters": 640},
                      "attempt": {"steps": 30, "flops": 36300000}}
            (run / "report.json").write_text(json.dumps(report))
            (run / "resolved.yaml").write_text("name: drill\n")
            families = {}

            def shown():
                text = server.call("GET", "/metrics")[1].decode()
                families.update({family.name: family for family in text_string_to_metric_families(text)})
                return [s for s in families["sinew_run_info"].samples if s.labels["state"] == "finished"]

            end = time.monotonic() + 60
            while not shown():
                self.assertLess(time.monotonic(), end, "the index has not found the run")
                time.sleep(0.1)
            info = families["sinew_run_info"].samples[0].labels
            self.assertEqual(info["experiment"], "drill")
            value = lambda name, **labels: [s.value for s in families[name].samples if s.labels == {"run": info["run"], **labels}]
            for stage, seconds in report["time"].items():
                if stage != "lanes":
                    self.assertEqual(value("sinew_run_stage_seconds", stage=stage), [seconds], stage)
            self.assertEqual(value("sinew_run_samples"), [report["samples"]])
            self.assertEqual(value("sinew_run_cpu_seconds"), [report["resources"]["cpu_seconds"]])
            self.assertEqual(value("sinew_run_disk_written_bytes"), [report["resources"]["disk_written_bytes"]])
            self.assertEqual(value("sinew_run_flops"), [report["attempt"]["flops"]])
            self.assertEqual(value("sinew_run_memory_bytes", kind="parameters"), [report["memory_bytes"]["parameters"]])
            self.assertEqual(families["sinew_run_stage_seconds"].type, "counter")


if __name__ == "__main__":
    unittest.main()
