"""Trains under budgets of time: what the last step is worth, and that a budget changes no bit of the training."""
import json
import os
import pathlib
import signal
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import sinew_process as sp

NEVER = 1_000_000  # steps that no budget of these tests reaches


class Budget(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def job(self, steps=NEVER, data="split: {val: 0.1, test: 0.1}"):
        job = sp.write_job(self.path, steps, "early_stopping: {monitor: val/loss, patience: 1000000}\n")
        job.write_text(job.read_text().replace("split: {val: 0.1}", data).replace("cosine, warmup: 10st", "constant"))
        return job

    def log(self, run):
        return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]

    def test_the_last_step_is_validated_and_the_model_is_tested(self):
        run = self.path / "run"
        sp.run("train", self.job(), "--run-dir", run, "budget.time=10s", "trainer.eval_interval=4s", check=3)
        report = sp.report(run)
        self.assertEqual(report["status"], "budget")
        for name in ("val/loss", "test/loss"):
            self.assertIn(name, report["last"])
        events = {record["event"]: record for record in self.log(run)}
        self.assertIn("budget_short", events)
        self.assertTrue(any(", the last:" in record["text"] for record in self.log(run) if record["event"] == "evaluation")
                        or report["best"]["step"] == report["steps"])
        sp.run("eval", run, check=0)
        # the model is that of the best step, also if that is the last one
        best = json.loads(sp.run("eval", run, "--split", "val", "--json", check=0).stdout)
        self.assertEqual(best["metrics"]["loss"], report["best"]["value"])

    def test_a_run_has_a_trace_of_its_sixth_to_tenth_step(self):
        run, copy = self.path / "run", self.path / "trace.json"
        sp.run("train", self.job(steps=20), "--run-dir", run, "trainer.lanes=2", check=0)
        sp.run("trace", run, "-o", copy, check=0)
        events = json.loads(copy.read_text())["traceEvents"]
        spans = [event for event in events if event["ph"] == "X"]
        self.assertEqual([event["name"] for event in spans if event["cat"] == "step"], [f"step {step}" for step in range(5, 10)])
        self.assertEqual({event["args"]["name"] for event in events if event["ph"] == "M"}, {"steps", "lane 0", "lane 1"})
        self.assertLessEqual({"forward", "backward", "optimizer"}, {event["name"] for event in spans})
        self.assertEqual(json.loads(sp.run("trace", run, check=0).stdout), json.loads(copy.read_text()))
        for row in {event["tid"] for event in spans}:  # what one row shows does not overlap
            ends = 0
            for event in sorted((event for event in spans if event["tid"] == row), key=lambda event: (event["ts"], event["dur"])):
                self.assertGreaterEqual(event["ts"], ends - 1e-3)
                ends = event["ts"] + event["dur"]
        (run / "trace.json").unlink()
        self.assertIn("TRACE_NONE", sp.run("trace", run, check=1).stderr)

    def test_a_budget_and_a_resume_change_no_bit(self):
        short, whole = self.path / "short", self.path / "whole"
        job = self.job()
        sp.run("train", job, "--run-dir", short, "--ledger", "budget.time=2s", check=3)
        steps = sp.report(short)["steps"] + 50
        sp.run("resume", short, "--ledger", f"trainer.max_duration={steps}st", "budget.time=10m", check=0)
        sp.run("train", job, "--run-dir", whole, "--ledger", f"trainer.max_duration={steps}st", check=0)
        self.assertEqual(sp.digests(short), sp.digests(whole))
        self.assertEqual(sp.report(short)["best"], sp.report(whole)["best"])

    def test_a_schedule_fits_a_time_for_any_workers(self):
        job = self.job()
        for workers in (1, 3):
            run = self.path / f"run{workers}"
            words = ("train", job, "--run-dir", run, "--workers", workers, "scheduler=cosine", "trainer.max_duration=12s", "logging.interval=1st")
            sp.run(*words, check=0)
            rates = [json.loads(line).get("train/learning_rate") for line in (run / "metrics.jsonl").read_text().splitlines()]
            rates = [rate for rate in rates if rate is not None]
            self.assertGreater(len(rates), 10)
            self.assertLess(rates[-1], 0.2 * rates[0])
            control = json.loads((run / "checkpoints/last/state.json").read_text())["control"]
            self.assertIn("schedule_steps", [entry["kind"] for entry in control])

    def test_a_group_keeps_the_budget_with_the_same_bits(self):
        group, alone = self.path / "group", self.path / "alone"
        job = self.job()
        sp.run("train", job, "--run-dir", group, "--ledger", "--workers", 3, "budget.time=20s", check=3)
        report = sp.report(group)
        self.assertGreater(report["steps"], 0)
        self.assertIn("test/loss", report["last"])
        sp.run("train", job, "--run-dir", alone, "--ledger", f"trainer.max_duration={report['steps']}st", check=0)
        of_group, of_alone = sp.digests(group), sp.digests(alone)
        self.assertEqual(of_group.keys(), of_alone.keys())
        last = report["steps"]  # the state of `alone` knows the evaluation of its last step, which its job asks for
        self.assertEqual({step: digest for step, digest in of_group.items() if step != last},
                         {step: digest for step, digest in of_alone.items() if step != last})

    def test_a_run_without_an_evaluation_gets_one_at_its_end(self):
        run = self.path / "run"
        job = self.job(data="split: {test: 0.1}\n  val: {images: %s/val-images, labels: %s/val-labels}" % (self.path, self.path))
        sp.write_idx(self.path, "val", 50, 2)
        sp.run("train", job, "--run-dir", run, "budget.time=8s", "trainer.eval_interval=1000000st", check=3)
        self.assertTrue((run / "model" / "model.safetensors").exists())
        self.assertIn("val/loss", sp.report(run)["last"])


    def test_a_run_keeps_to_its_money_and_goes_on_with_more(self):
        run = self.path / "run"
        # 8 s at this price
        done = sp.run("train", self.job(), "--run-dir", run, "budget.cost=0.008", "budget.price=3.6", "budget.time=1h", check=3)
        report = sp.report(run)
        self.assertEqual(report["status"], "budget")
        self.assertAlmostEqual(report["cost"], report["seconds"] / 1000, places=12)
        self.assertIn("test/loss", report["last"])
        self.assertIn("budget.cost", done.stdout + done.stderr)
        again = sp.run("resume", run, f"trainer.max_duration={report['steps'] + 5}st", "budget.cost=10", check=0)
        self.assertIn("; cost ", again.stdout + again.stderr)
        self.assertGreater(sp.report(run)["cost"], report["cost"], "earlier attempts count")

    def test_a_given_power_limits_the_energy(self):
        run = self.path / "run"
        sp.run("train", self.job(), "--run-dir", run, "budget.energy=0.001", "budget.watts=450", check=3)  # 8 s
        report = sp.report(run)
        self.assertAlmostEqual(report["energy_kwh"], report["seconds"] * 450 / 3.6e6, places=12)
        self.assertNotIn("cost", report)

    def test_an_energy_is_measured_or_refused(self):
        run = self.path / "run"
        if [path for path in pathlib.Path("/sys/class/powercap").glob("intel-rapl:?/energy_uj") if os.access(path, os.R_OK)]:
            sp.run("train", self.job(), "--run-dir", run, "budget.energy=0.0002", check=3)  # 8 s at 90 W
            self.assertGreater(sp.report(run)["energy_kwh"], 0)
            return
        refused = sp.run("train", self.job(), "--run-dir", run, "budget.energy=1", check=1)
        self.assertIn("ENERGY_NOT_MEASURED", refused.stderr)
        self.assertIn("budget.watts", refused.stderr)

    def test_a_cost_without_a_price_is_refused(self):
        refused = sp.run("train", self.job(), "--run-dir", self.path / "run", "budget.cost=1", check=2)
        self.assertIn("budget.cost needs budget.price", refused.stderr)


class Plan(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        self.scratch = self.path / "scratch"
        self.scratch.mkdir()
        self.env = {"TMPDIR": str(self.scratch)}

    def plan(self, *words):
        return json.loads(sp.run("plan", *words, "--json", check=0, env=self.env).stdout)

    def test_a_plan_counts_what_the_job_asks_for_and_leaves_nothing(self):
        job = sp.write_job(self.path, 500)
        before = sorted(path for path in self.path.rglob("*"))
        plan = self.plan(job, "--time", "2s", "--price", "3600", "--within", "1h")
        self.assertEqual(sorted(path for path in self.path.rglob("*")), before)
        self.assertEqual((plan["steps"], plan["evaluation_count"], plan["batch_size"]), (500, 25, 32))
        self.assertEqual(plan["train_samples"], 300)
        for name in ("seconds", "memory_bytes", "cost", "steps_within"):
            self.assertLess(plan[name]["low"], plan[name]["expected"], name)
            self.assertLess(plan[name]["expected"], plan[name]["high"], name)
        self.assertAlmostEqual(plan["cost"]["expected"], plan["seconds"]["expected"])
        self.assertGreater(plan["step_flops"], 0)
        run = self.path / "run"
        sp.run("train", job, "--run-dir", run, check=0)
        self.assertIn(f" {plan['parameters']} parameters", (run / "log.jsonl").read_text())
        memory = sp.report(run)["memory_bytes"]
        self.assertEqual(memory["parameters"], plan["memory_bytes_by_part"]["parameters"])
        self.assertEqual(memory["optimizer"], plan["memory_bytes_by_part"]["optimizer"])

    def test_a_plan_compares_machines_of_a_table(self):
        job = sp.write_job(self.path, 500)
        table = self.path / "machines.yaml"
        table.write_text(sp.run("plan", "--print-machines", check=0).stdout)
        table.write_text(table.read_text().replace("price_per_hour: {on_demand: 0.357}", "price_per_hour: {on_demand: 3.57}"))
        plan = self.plan(job, "--time", "2s", "--machines", table, "--spend", "0.5", "--retrain", "nightly", "trainer.precision=fp32")
        machines = {machine["name"]: machine for machine in plan["machines"]}
        self.assertGreaterEqual(len(machines), 20)
        for machine in machines.values():
            if machine["fits"]:
                self.assertLess(machine["seconds"]["low"], machine["seconds"]["high"], machine["name"])
        cpu = machines["c7i.2xlarge"]
        self.assertAlmostEqual(cpu["cost_on_demand"]["expected"], cpu["seconds"]["expected"] * 3.57 / 3600)
        self.assertIn("cost_a_month", cpu)
        self.assertEqual(machines["ct5lp-hightpu-1t"]["why_not"], "no figure for fp32")
        self.assertIn("seconds_a_month", plan)
        self.assertEqual(list(self.scratch.iterdir()), [])

    def test_a_mistake_in_a_table_is_found_before_the_job_is_measured(self):
        table = self.path / "machines.yaml"
        table.write_text("date: 2026-01-01\ncurrency: USD\nmachines:\n  - {name: a, cors: 3}\n")
        refused = sp.run("plan", sp.write_job(self.path, 500), "--machines", table, env=self.env)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("machines.yaml:4:", refused.stderr)
        self.assertIn("'cors'", refused.stderr)
        self.assertEqual(sp.run("plan", sp.write_job(self.path, 500), "--spend", "3").returncode, 2)

    def test_a_job_that_cannot_train_is_refused_as_in_a_training(self):
        job = sp.write_job(self.path, 500)
        refused = sp.run("plan", job, "data.train.images=/nowhere", env=self.env)
        self.assertEqual(refused.returncode, sp.run("train", job, "--run-dir", self.path / "run", "data.train.images=/nowhere").returncode)
        self.assertIn("/nowhere", refused.stderr)
        self.assertEqual(list(self.scratch.iterdir()), [])

    def test_a_plan_can_be_confined(self):
        job = sp.write_job(self.path, 300)
        plan = self.plan(job, "--sandbox", "--time", "2s")
        self.assertEqual(plan["steps"], 300)
        self.assertEqual(list(self.scratch.iterdir()), [])

    def test_a_plan_says_what_it_leaves_out(self):
        job = sp.write_job(self.path, 300, "workers: {max: 3}\nearly_stopping: {monitor: val/loss}\n")
        notes = "; ".join(self.plan(job, "--time", "1s", "budget.training=40st")["notes"])
        for part in ("one worker", "early_stopping", "budget.training ends the training after step 40"):
            self.assertIn(part, notes)

    def test_a_killed_plan_leaves_nothing(self):
        job = sp.write_job(self.path, NEVER)
        os.environ["TMPDIR"] = str(self.scratch)
        self.addCleanup(os.environ.pop, "TMPDIR", None)
        process = sp.start("plan", job, "--time", "60s")
        self.assertTrue(sp.wait_for(lambda: list(self.scratch.glob("*/metrics.jsonl"))))
        sp.kill(process)
        self.assertTrue(sp.wait_for(lambda: not list(self.scratch.iterdir())))

    def test_a_stopped_plan_leaves_nothing(self):
        job = sp.write_job(self.path, NEVER)
        for sig in (signal.SIGINT, signal.SIGTERM):
            os.environ["TMPDIR"] = str(self.scratch)
            self.addCleanup(os.environ.pop, "TMPDIR", None)
            process = sp.start("plan", job, "--time", "60s")
            self.assertTrue(sp.wait_for(lambda: list(self.scratch.glob("*/metrics.jsonl"))))
            process.send_signal(sig)
            _, said = process.communicate(timeout=60)
            self.assertIn("PLAN_STOPPED", said)
            self.assertEqual(list(self.scratch.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
