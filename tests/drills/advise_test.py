"""Limits trainings from outside, and compares what `sinew advise` says with the limit that was planted."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import copies_test
import sinew_process as sp

BUSY = 4  # programs that compete for the core of the training

# Makes each picture take 4 ms longer to open.
SLOW_FILES = copies_test.OTHER_FILES.replace("#include <string.h>", "#include <string.h>\n#include <unistd.h>").replace(
    "  size_t length = strlen(path);", "  size_t length = strlen(path);\n  if (length > 4 && strcmp(path + length - 4, \".png\") == 0) usleep(4000);")


class Advise(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def advice(self, run):
        advice = json.loads(sp.run("advise", run, "--json", check=0).stdout)
        self.assertAlmostEqual(sum(part["share"] for part in advice["parts"]), 1)
        self.assertEqual(advice["limits"][0], advice["parts"][0]["limit"])
        return advice, {part["limit"]: part["share"] for part in advice["parts"]}

    def stages(self, run):
        report = json.loads((run / "report.json").read_text())
        lanes = report["time"].pop("lanes")
        self.assertAlmostEqual(sum(report["time"].values()) / lanes, report["seconds"], delta=0.2)
        return report["time"]

    def test_slow_files_make_a_training_wait_for_samples(self):
        copies_test.write_images(self.path / "images")
        (self.path / "job.yaml").write_text(f"""
name: slow
model: {{name: mlp, hidden: [16]}}
data: {{format: image_folder, train: {{path: {self.path}/images}}, on_corrupt: skip, prefetch: {{threads: 1}}, normalize: none, image: {{channels: 1, size: [8, 8]}}}}
trainer: {{max_duration: 60st, batch_size: 30, shards: 6, precision: fp32}}
optimizer: {{name: sgd, lr: 0.05}}
""")
        source, library = self.path / "open.c", self.path / "libslow.so"
        source.write_text(SLOW_FILES)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        run = self.path / "run"
        sp.run("train", self.path / "job.yaml", "--run-dir", run, check=0, env={"LD_PRELOAD": str(library)})
        advice, shares = self.advice(run)
        self.assertEqual(advice["limits"][0], "input-bound", advice)
        self.assertGreater(shares["input-bound"], 0.5)
        self.assertEqual(advice["parts"][0]["stage"], "read")
        self.assertTrue(advice["remedies"][0]["keeps_result"])
        for remedy in advice["remedies"]:
            self.assertLessEqual(remedy["faster"]["low"], remedy["faster"]["expected"])
            self.assertLessEqual(remedy["faster"]["expected"], remedy["faster"]["high"])
        threads = [option for remedy in advice["remedies"] for option in remedy["options"]]
        self.assertEqual([option.split("=")[0] for option in threads if "prefetch" in option], ["data.prefetch.threads"])
        self.assertRegex(sp.run("advise", run, check=0).stdout, r"^input-bound \(read\), \d+ %: the lanes waited for samples .* of it to read, mostly waiting")

    def test_a_training_that_overfits_learns_when_it_could_have_ended(self):
        sp.write_idx(self.path, "train", 400, 1)
        labels = bytearray((self.path / "train-labels").read_bytes())
        for i in range(8, len(labels), 3):
            labels[i] = (labels[i] + i) % 5
        (self.path / "train-labels").write_bytes(labels)
        (self.path / "job.yaml").write_text(f"""
name: overfits
model: {{name: mlp, hidden: [64]}}
data:
  format: idx
  train: {{images: {self.path}/train-images, labels: {self.path}/train-labels}}
  split: {{val: 0.3}}
trainer: {{max_duration: 60ep, batch_size: 16, eval_interval: 1ep, precision: fp32}}
optimizer: {{name: adamw, lr: 3e-3}}
""")
        long, short = self.path / "long", self.path / "short"
        said = sp.run("train", self.path / "job.yaml", "--run-dir", long, check=0).stdout
        self.assertEqual(said.count("90 % likely that no better val/loss comes"), 1)
        report = sp.report(long)
        forecasts = report["forecasts"]
        self.assertEqual(len(forecasts["made"]), 3)
        self.assertEqual(forecasts["best"], report["best"]["value"])
        self.assertTrue(all(made["low"] <= made["high"] <= made["best"] for made in forecasts["made"]), forecasts)
        self.assertIn("<h2>Forecasts</h2>", (long / "report.html").read_text())
        advice, _ = self.advice(long)
        remedy = next(one for one in advice["remedies"] if one["what"].startswith("stop after epoch "))
        self.assertIn("early_stopping.monitor=val/loss", remedy["options"])
        sp.run("train", self.path / "job.yaml", *remedy["options"], "--run-dir", short, check=0)
        shorter = sp.report(short)
        self.assertEqual(shorter["best"], report["best"], "the best model stays the same")
        self.assertEqual(f"stop after epoch {shorter['epochs']:g}:", remedy["what"].split(" 90 %")[0])
        self.assertFalse([one for one in self.advice(short)[0]["remedies"] if one["what"].startswith("stop after")])

    def test_a_job_is_changed_and_measured_again(self):
        job = sp.write_job(self.path, 100000)
        text = job.read_text().replace("split: {val: 0.1}", "split: {val: 0.9}  # many").replace("eval_interval: 20st", "eval_interval: 1st, eval_batch_size: 1")
        job.write_text(text)
        done = sp.run("advise", job, "--time", "4s", "--apply", "--json", check=0)
        advice = json.loads(done.stdout)
        self.assertTrue(any(one["name"].startswith("convolution") and one["flops"] > 0 for one in advice["operators"]), advice)
        self.assertGreater(advice["machine"]["peak_flops"], 0)
        self.assertIn("convolutions.0", [layer["name"] for layer in advice["model"]["layers"]])
        self.assertLess(advice["model"]["flops_per_second"], 2 * advice["machine"]["peak_flops"])
        changes = {change["key"]: change for change in advice["applied"]["changes"]}
        self.assertEqual(changes["trainer.eval_interval"]["before"], "1st")
        self.assertIsInstance(advice["applied"]["measured"], float)
        better = self.path / "job.advised.yaml"
        self.assertEqual(advice["applied"]["file"], str(better))
        changed = better.read_text()
        self.assertIn("split: {val: 0.9}  # many", changed)
        self.assertIn("# trainer.eval_interval: evaluate less often\ntrainer: ", changed)
        self.assertEqual(job.read_text(), text)
        self.assertEqual(sp.run("validate", better).returncode, 0)
        self.assertEqual(sorted(path.name for path in self.path.glob("*.yaml")), ["job.advised.yaml", "job.yaml"])
        refused = sp.run("advise", job, "--apply")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("exists already", refused.stderr)

    def test_overrides_and_early_stopping(self):
        job = sp.write_job(self.path, 100000)
        job.write_text(job.read_text().replace("split: {val: 0.1}", "split: {val: 0.9}  # many").replace("eval_interval: 20st", "eval_interval: 20st, eval_batch_size: 1") + "early_stopping: {monitor: val/loss, patience: 3}\n")
        output = self.path / "faster.yaml"
        words = ("advise", job, "trainer.eval_interval=1st", "--time", "3s", "--apply", "--output", output)
        kept = sp.run(*words, check=0)
        self.assertNotIn("trainer.eval_interval:", kept.stdout, "fewer evaluations may end the training later")
        output.unlink(missing_ok=True)
        changed = sp.run(*words, "--change-result", check=0)
        self.assertRegex(changed.stdout, r"trainer\.eval_interval: 1st -> \d+st")
        self.assertIn("# many", output.read_text())
        self.assertRegex(output.read_text(), r"eval_interval: \d+st, eval_batch_size")

    def test_a_confined_job(self):
        job = sp.write_job(self.path, 100000)
        job.write_text(job.read_text().replace("split: {val: 0.1}", "split: {val: 0.9}").replace("eval_interval: 20st", "eval_interval: 1st, eval_batch_size: 1"))
        done = sp.run("advise", job, "--time", "2s", "--apply", "--sandbox", check=0)
        self.assertIn("measured: ", done.stdout)
        self.assertTrue((self.path / "job.advised.yaml").exists())

    def test_apply_needs_a_job(self):
        refused = sp.run("advise", "last", "--apply", "--root", self.path)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("need a job file", refused.stderr)

    def test_other_programs_starve_a_training(self):
        job = sp.write_job(self.path, 3000)
        core = {min(os.sched_getaffinity(0))}
        bind = lambda: os.sched_setaffinity(0, core)
        for _ in range(BUSY):
            busy = subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=bind)
            self.addCleanup(busy.wait)
            self.addCleanup(busy.kill)
        run = self.path / "run"
        done = subprocess.run(sp.command("train", job, "--run-dir", run, "budget.time=6s"), capture_output=True, text=True,
                              timeout=300, preexec_fn=bind)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        advice, _ = self.advice(run)
        self.assertEqual(advice["limits"][0], "starved", advice)
        self.assertIn("end other programs on this machine", [one["what"] for one in advice["remedies"]])

    def test_the_stages_of_workers_add_up_to_the_duration(self):
        job = sp.write_job(self.path, 200)
        alone, group = self.path / "alone", self.path / "group"
        sp.run("train", job, "--run-dir", alone, "--ledger", check=0)
        sp.run("train", job, "--run-dir", group, "--ledger", "--workers", 3, check=0)
        self.assertEqual(sp.digests(group), sp.digests(alone))
        of_one, of_three = self.stages(alone), self.stages(group)
        for stage in ("startup", "forward", "backward", "optimizer", "evaluation", "digest", "loop", "finish"):
            self.assertGreater(of_one[stage], 0, stage)
            self.assertGreater(of_three[stage], 0, stage)
        self.assertEqual(of_one["member_wait"], 0)
        self.assertGreater(of_three["member_wait"], 0)

    def test_layers_and_bytes_of_a_group(self):
        job, steps, batch = sp.write_job(self.path, 100), 100, 32
        reports = {}
        for workers in (1, 3):
            run = self.path / str(workers)
            sp.run("train", job, "--run-dir", run, "--workers", workers, check=0)
            reports[workers] = json.loads((run / "report.json").read_text())
        alone, group = reports[1], reports[3]
        self.assertEqual(alone["layers"], group["layers"], "the layers of a step do not depend on who computes it")
        layers = {layer["name"]: layer for layer in alone["layers"]}
        self.assertEqual(layers["convolutions.0"]["flops"], 2 * (2 * 9 * 1 * 4 * 64 * batch), "the pictures have no gradient")
        self.assertEqual(layers["convolutions.1"]["flops"], 3 * (2 * 9 * 4 * 8 * 16 * batch))
        self.assertEqual(layers["output"]["flops"], 3 * (2 * 8 * 2 * 2 * 5 * batch))
        whole = alone["flops_per_step"] * alone["samples"] / batch
        self.assertAlmostEqual(alone["attempt"]["flops"] / whole, 1, delta=1e-6)
        self.assertLess(group["attempt"]["flops"], whole, "others have computed a part of it")
        self.assertGreater(group["attempt"]["flops"], 0)
        self.assertEqual((alone["resources"]["network_sent_bytes"], alone["resources"]["network_received_bytes"]), (0, 0))
        gradients = steps * group["attempt"]["gradient_bytes"]
        for way in ("sent", "received"):
            self.assertGreater(group["resources"][f"network_{way}_bytes"], gradients / 10, way)
            self.assertLess(group["resources"][f"network_{way}_bytes"], gradients * 30, way)
        said = sp.run("advise", self.path / "1", check=0).stdout
        self.assertRegex(said, r"a step takes \S+FLOP; a lane made \S+FLOP/s in forward and backward passes, \S+FLOP/s in all its time")
        self.assertRegex(said, r"%  convolutions\.1: \S+FLOP, \S+B, 288 parameters")

    def test_an_experiment_in_a_run_that_is_watched(self):
        job = sp.write_job(self.path, 1_000_000)
        calm, asked = self.path / "calm", self.path / "asked"
        rarely = ["checkpoint.interval=2000st", "trainer.eval_interval=2000st", "logging.interval=500st", "--ledger"]
        process = sp.start("train", job, *rarely, "--run-dir", asked, "--workers", 2)
        self.addCleanup(sp.kill, process)
        self.assertTrue(sp.wait_for(lambda: len(sp.computing(asked)) == 2, pause=0.2))
        for request in ("experiment", "checkpoint.interval=3000st", "data.prefetch.threads=3"):
            sp.run("control", asked, request, check=0)
        for refused in ("checkpoint.interval=2ep", "checkpoint.interval=soon", "data.prefetch.threads=0", "experiment=3"):
            self.assertEqual(sp.run("control", asked, refused).returncode, 2, refused)
        live = subprocess.Popen(sp.command("advise", asked, "--live"), stdout=subprocess.PIPE, text=True)
        self.addCleanup(live.kill)

        def made():
            lines = (asked / "log.jsonl").read_text().split("\n")[:-1]
            return [event["text"] for event in map(json.loads, lines) if event["event"] == "experiment"]
        self.assertTrue(sp.wait_for(made, 200, pause=0.2), (asked / "log.jsonl").read_text())
        self.assertIn("a step took", made()[0])
        self.assertIn("so far, until step ", sp.run("advise", asked, check=0).stdout)
        sp.run("control", asked, "stop", check=0)
        self.assertEqual(process.wait(120), 75)
        said = live.communicate(timeout=120)[0]
        self.assertEqual(live.returncode, 0)
        self.assertRegex(said, r"(?m)^step \d+, the last \d+ s$")
        self.assertIn("time of ", said)
        self.assertFalse((asked / "accounts.json").exists())
        found = {one["condition"]: one for one in sp.report(asked)["experiments"]}
        self.assertEqual(found["usual"]["ratio"], 1)
        self.assertNotIn("samples_ready", found, "with several workers, nobody waits for samples")
        self.assertIn("experiment with the steps", sp.run("advise", asked, check=0).stdout)
        steps = sp.report(asked)["steps"]
        alone = sp.start("train", job, *rarely, "--run-dir", calm)
        self.addCleanup(sp.kill, alone)
        self.assertTrue(sp.wait_for(lambda: sp.step_of(calm) >= steps, 300, pause=0.1))
        alone.terminate()
        self.assertEqual(alone.wait(60), 75)
        self.assertNotIn("experiments", sp.report(calm))
        digests = sp.digests(calm)
        self.assertEqual(sp.digests(asked), {step: digests[step] for step in range(1, steps + 1)}, "an experiment changes no bit")
        self.assertEqual(sp.run("advise", job, "--live").returncode, 2)

    def test_there_is_no_advice_without_a_record(self):
        job = sp.write_job(self.path, 5)
        run = self.path / "run"
        sp.run("train", job, "--run-dir", run, check=0)
        report = json.loads((run / "report.json").read_text())
        del report["time"]
        (run / "report.json").write_text(json.dumps(report))
        refused = sp.run("advise", run)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("has no record of where its time went [ADVISE_NO_RECORD]", refused.stderr)


if __name__ == "__main__":
    unittest.main()
