"""Runs MLflow's own, unchanged client against `sinew server`. The client logs, searches, registers models, and stores
and fetches files.

The environment variable SINEW names the program.
"""
import json
import math
import os
import pathlib
import random
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "server"))
from server_process import Server  # noqa: E402

SINEW = os.environ.get("SINEW", "sinew")

# The filters of runs that MLflow accepts and Sinew may refuse, each with the reason.
ALLOWED_REFUSALS = {
    "run_id = ('x', 'a')": "a text is compared with a list, so no run can match",
    "run_id != ('x', 'a')": "a text is compared with a list, so every run matches",
    "run_id IN ('a',)": "the list ends with a comma",
}


class MlflowClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.server = Server(SINEW, pathlib.Path(cls.folder.name) / "runs")
        cls.server.start()
        cls.server.environment()
        import mlflow
        import mlflow.tracking
        cls.mlflow = mlflow
        mlflow.set_tracking_uri(cls.server.url)
        cls.client = mlflow.tracking.MlflowClient()

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        cls.folder.cleanup()
        assert code == 0, code

    def refused(self, code, call, *args, **more):
        from mlflow.exceptions import MlflowException
        with self.assertRaises(MlflowException) as caught:
            call(*args, **more)
        self.assertEqual(caught.exception.error_code, code, str(caught.exception))

    def test_names_are_accepted_as_by_mlflow(self):
        """Compares the server with the code by which MLflow's own server decides. The test does not use MLflow's
        client, because the client refuses such names itself."""
        from mlflow.exceptions import MlflowException
        from mlflow.utils import validation

        def is_accepted(check, *args):
            try:
                check(*args)
                return True
            except MlflowException:
                return False

        run = self.client.create_run("0").info.run_id
        random.seed(7)
        names = ["", "a", "a/b", "a//b", "/a", "a/", ".", "..", "..a", "a/..", "a/./b", "a/..b", "./a", "a b", " ", "a=b", "ü", "損失", "a\tb",
                 "\U0001f9e0", "a\u2013b", "x" * 250, "x" * 251, "ü" * 250, "ü" * 251, "a:b", "%", "a\\b"]
        names += ["".join(random.choice("ab/._- :=%é") for _ in range(random.randrange(8))) for _ in range(300)]
        differ = []
        for name in names:
            calls = {"log-parameter": ({"key": name, "value": "v"}, is_accepted(validation._validate_param, name, "v")),
                     "log-metric": ({"key": name, "value": 1, "timestamp": 1}, is_accepted(validation._validate_metric, name, 1, 1, 0)),
                     "set-tag": ({"key": name, "value": "v"}, is_accepted(validation._validate_tag, name, "v"))}
            for path, (body, accepted) in calls.items():
                status = self.server.call("POST", f"/api/2.0/mlflow/runs/{path}", {"run_id": run, **body})[0]
                self.assertIn(status, (200, 400), name)
                if (status == 200) != accepted:
                    differ.append((path, name, status))
        self.assertEqual(differ, [])

    def test_batches_have_the_limits_of_mlflow(self):
        from mlflow.utils import validation
        run = self.client.create_run("0").info.run_id
        metric, label = {"key": "m", "value": 1, "timestamp": 1, "step": 1}, lambda i: {"key": f"k{i}", "value": "v"}
        batch = lambda **more: self.server.call("POST", "/api/2.0/mlflow/runs/log-batch", {"run_id": run, **more})[0]
        for field, limit, make in (("metrics", validation.MAX_METRICS_PER_BATCH, lambda i: metric),
                                   ("params", validation.MAX_PARAMS_TAGS_PER_BATCH, label),
                                   ("tags", validation.MAX_PARAMS_TAGS_PER_BATCH, label)):
            self.assertEqual(batch(**{field: [make(i) for i in range(limit)]}), 200, field)
            self.assertEqual(batch(**{field: [make(i) for i in range(limit + 1)]}), 400, field)
        self.assertEqual(batch(params=[{"key": "p", "value": "1"}, {"key": "p", "value": "2"}]), 400)
        self.assertEqual(batch(tags=[{"key": "t", "value": "x" * validation.MAX_BATCH_LOG_REQUEST_SIZE}]), 400)

    def test_a_typical_script(self):
        mlflow = self.mlflow
        mlflow.set_experiment("usual")
        with mlflow.start_run(run_name="first", tags={"team": "a b"}) as run:
            mlflow.log_param("lr", 0.1)
            mlflow.log_params({"layers": 3, "text": "ü\"'<script>"})
            for step in range(20):
                mlflow.log_metric("loss", 1 / (step + 1), step=step)
            mlflow.log_metrics({"accuracy": 0.9, "nan": math.nan, "inf": -math.inf}, step=7)
            mlflow.set_tag("note", "x" * 3000)
            mlflow.log_text("hello", "notes/a.txt")
            mlflow.log_dict({"a": [1, 2]}, "b.json")
        got = self.client.get_run(run.info.run_id)
        self.assertEqual(got.info.status, "FINISHED")
        self.assertEqual(got.info.run_name, "first")
        self.assertGreaterEqual(got.info.end_time, got.info.start_time)
        self.assertEqual(got.data.params, {"lr": "0.1", "layers": "3", "text": "ü\"'<script>"})
        self.assertAlmostEqual(got.data.metrics["loss"], 1 / 20)
        self.assertTrue(math.isnan(got.data.metrics["nan"]))
        self.assertEqual(got.data.metrics["inf"], -math.inf)
        self.assertEqual(got.data.tags["team"], "a b")
        history = self.client.get_metric_history(run.info.run_id, "loss")
        self.assertEqual([m.step for m in history], list(range(20)))
        self.assertEqual([m.value for m in history], [1 / (step + 1) for step in range(20)])
        self.assertEqual(mlflow.artifacts.load_text(got.info.artifact_uri + "/notes/a.txt"), "hello")
        self.assertEqual(mlflow.artifacts.load_dict(got.info.artifact_uri + "/b.json"), {"a": [1, 2]})
        with mlflow.start_run(run_id=run.info.run_id):  # the run continues and ends again
            mlflow.log_metric("loss", 0.001, step=20)
        got = self.client.get_run(run.info.run_id)
        self.assertEqual((got.info.status, got.data.metrics["loss"]), ("FINISHED", 0.001))

    def test_without_an_experiment_it_is_the_default_one(self):
        run = self.client.create_run("0")
        self.assertEqual(self.client.get_experiment("0").name, "Default")
        self.client.set_terminated(run.info.run_id, "FAILED")
        self.assertEqual(self.client.get_run(run.info.run_id).info.status, "FAILED")
        self.client.set_terminated(run.info.run_id, "KILLED")
        self.assertEqual(self.client.get_run(run.info.run_id).info.status, "KILLED")

    def test_experiments(self):
        client = self.client
        first = client.create_experiment("exp one", tags={"kind": "x"})
        client.create_experiment("exp two")
        self.refused("RESOURCE_ALREADY_EXISTS", client.create_experiment, "exp one")
        client.set_experiment_tag(first, "owner", "me")
        self.assertEqual(client.get_experiment_by_name("exp one").tags, {"kind": "x", "owner": "me"})
        self.assertIsNone(client.get_experiment_by_name("no such"))
        self.refused("RESOURCE_DOES_NOT_EXIST", client.get_experiment, "12345")
        found = client.search_experiments(filter_string="name LIKE 'exp %' AND tags.owner = 'me'")
        self.assertEqual([e.experiment_id for e in found], [first])
        names = [e.name for e in client.search_experiments(filter_string="name ILIKE 'EXP%'", order_by=["name DESC"])]
        self.assertEqual(names, ["exp two", "exp one"])
        client.rename_experiment(first, "exp renamed")
        client.delete_experiment(first)
        self.assertEqual(client.get_experiment(first).lifecycle_stage, "deleted")
        self.refused("INVALID_PARAMETER_VALUE", client.create_run, first)
        client.restore_experiment(first)
        self.assertEqual(client.get_experiment(first).name, "exp renamed")

    def test_searching_runs(self):
        client = self.client
        experiment = client.create_experiment("search")
        for i in range(12):
            run = client.create_run(experiment, run_name=f"run {i}", start_time=1000 + i, tags={"even": str(i % 2 == 0)})
            client.log_metric(run.info.run_id, "m x", i / 10)
            client.log_param(run.info.run_id, "p", f"v{i}")
            if i > 9:
                client.log_metric(run.info.run_id, "rare", math.nan if i == 10 else 1.0)

        def names(filter_string="", **more):
            return [r.info.run_name for r in client.search_runs([experiment], filter_string, **more)]

        self.assertEqual(names(), [f"run {i}" for i in reversed(range(12))])
        self.assertEqual(names("metrics.`m x` < 0.25 and tags.even = 'True'"), ["run 2", "run 0"])
        self.assertEqual(names("params.p = 'v1'"), ["run 1"])
        self.assertEqual(names("attributes.run_name LIKE 'run 1%'", order_by=["metrics.`m x` ASC"]), ["run 1", "run 10", "run 11"])
        self.assertEqual(names("start_time >= 1010"), ["run 11", "run 10"])
        self.assertEqual(names(order_by=["metrics.rare DESC", "start_time ASC"])[:3], ["run 11", "run 10", "run 0"])
        self.assertEqual(names("params.missing IS NULL", max_results=2), ["run 11", "run 10"])
        pages, token = [], None
        while True:
            page = client.search_runs([experiment], order_by=["start_time ASC"], max_results=5, page_token=token)
            pages.append(len(page))
            token = page.token
            if not token:
                break
        self.assertEqual(pages, [5, 5, 2])
        for wrong in ("metrics.x <", "metrics.x = 'text'", "params.p > 'a'", "nothing.x = 1", "a = 1 OR b = 2", "' OR 1=1 --"):
            self.refused("INVALID_PARAMETER_VALUE", client.search_runs, [experiment], wrong)
        run = client.search_runs([experiment], max_results=1)[0]
        client.delete_run(run.info.run_id)
        self.assertEqual(len(names()), 11)
        self.assertEqual(names(run_view_type=2), ["run 11"])
        client.restore_run(run.info.run_id)
        self.assertEqual(len(names()), 12)

    def test_batches_params_and_tags(self):
        from mlflow.entities import Metric, Param, RunTag
        client = self.client
        run = client.create_run("0").info.run_id
        now = int(time.time() * 1000)
        client.log_batch(run, [Metric("a", i, now + i, i) for i in range(1000)], [Param("p", "1")], [RunTag("t", "2")])
        self.assertEqual(len(client.get_metric_history(run, "a")), 1000)
        client.log_param(run, "p", "1")
        self.refused("INVALID_PARAMETER_VALUE", client.log_param, run, "p", "2")
        self.refused("RESOURCE_DOES_NOT_EXIST", client.log_metric, "0" * 32, "m", 1)
        client.delete_tag(run, "t")
        self.assertNotIn("t", client.get_run(run).data.tags)
        self.refused("RESOURCE_DOES_NOT_EXIST", client.delete_tag, run, "t")
        client.update_run(run, name="another name")
        self.assertEqual(client.get_run(run).info.run_name, "another name")
        self.refused("RESOURCE_DOES_NOT_EXIST", client.get_run, "f" * 32)

    def test_artifacts(self):
        client, random_bytes = self.client, random.Random(1).randbytes(5_000_003)
        run = client.create_run("0").info.run_id
        with tempfile.TemporaryDirectory() as folder:
            there = pathlib.Path(folder) / "files"
            (there / "deep" / "er").mkdir(parents=True)
            (there / "big.bin").write_bytes(random_bytes)
            (there / "deep" / "er" / "ü b.txt").write_text("x")
            (there / "empty").write_bytes(b"")
            client.log_artifacts(run, str(there), "all")
            client.log_artifact(run, str(there / "big.bin"))
            self.assertEqual([(f.path, f.is_dir, f.file_size) for f in client.list_artifacts(run)],
                             [("all", True, None), ("big.bin", False, 5_000_003)])
            self.assertEqual([f.path for f in client.list_artifacts(run, "all")], ["all/big.bin", "all/deep", "all/empty"])
            back = pathlib.Path(client.download_artifacts(run, "", folder))
            self.assertEqual((back / "all" / "big.bin").read_bytes(), random_bytes)
            self.assertEqual((back / "all" / "deep" / "er" / "ü b.txt").read_text(), "x")
            self.assertEqual((back / "all" / "empty").read_bytes(), b"")

    def test_an_artifact_location_elsewhere_is_at_an_allowed_place(self):
        mlflow, client = self.mlflow, self.client
        for location in ("file:///tmp/x", "http://192.0.2.1/x", "mlflow-artifacts://192.0.2.1/x", "dbfs:/x"):
            self.refused("INVALID_PARAMETER_VALUE", client.create_experiment, location, artifact_location=location)
            self.assertIsNone(client.get_experiment_by_name(location))
        there = client.create_experiment("bucket", artifact_location="s3://bucket/models")
        with mlflow.start_run(experiment_id=there) as run:
            self.assertEqual(run.info.artifact_uri, f"s3://bucket/models/{run.info.run_id}/artifacts")
        here = client.create_experiment("team", artifact_location="mlflow-artifacts:/team")
        with mlflow.start_run(experiment_id=here) as run:
            mlflow.log_text("hello", "a.txt")
        self.assertEqual(mlflow.artifacts.load_text(run.info.artifact_uri + "/a.txt"), "hello")

    def test_the_model_registry(self):
        mlflow, client = self.mlflow, self.client
        with mlflow.start_run(experiment_id="0") as run:
            mlflow.log_text("weights", "model/weights.txt")
        client.create_registered_model("net", tags={"a": "1"}, description="first")
        self.refused("RESOURCE_ALREADY_EXISTS", client.create_registered_model, "net")
        for expected in ("1", "2", "3"):
            version = client.create_model_version("net", run.info.artifact_uri + "/model", run.info.run_id,
                                                  tags={"n": expected}, description="d" + expected)
            self.assertEqual((version.version, version.status, version.run_id), (expected, "READY", run.info.run_id))
        client.set_registered_model_alias("net", "champion", "2")
        client.set_registered_model_alias("net", "candidate", "3")
        self.assertEqual(client.get_registered_model("net").aliases, {"champion": "2", "candidate": "3"})
        self.assertEqual(client.get_model_version_by_alias("net", "champion").version, "2")
        self.assertEqual(client.get_model_version("net", "2").aliases, ["champion"])
        place = pathlib.Path(mlflow.artifacts.download_artifacts("models:/net@champion"))
        self.assertEqual((place / "weights.txt").read_text(), "weights")
        client.delete_registered_model_alias("net", "candidate")
        self.refused("INVALID_PARAMETER_VALUE", client.get_model_version_by_alias, "net", "candidate")
        client.set_model_version_tag("net", "1", "k", "v")
        client.update_model_version("net", "1", description="changed")
        got = client.get_model_version("net", "1")
        self.assertEqual((got.tags, got.description), ({"n": "1", "k": "v"}, "changed"))
        client.delete_model_version_tag("net", "1", "k")
        self.assertEqual([v.version for v in client.search_model_versions("name = 'net'")], ["1", "3", "2"],
                         "the version that was changed last comes first")
        self.assertEqual([v.version for v in client.search_model_versions("name='net' and tags.n = '2'")], ["2"])
        self.assertEqual([v.version for v in client.search_model_versions(f"run_id = '{run.info.run_id}'", order_by=["version_number ASC"])],
                         ["1", "2", "3"])
        client.transition_model_version_stage("net", "1", "Production")
        client.transition_model_version_stage("net", "3", "Production", archive_existing_versions=True)
        self.assertEqual(client.get_model_version("net", "1").current_stage, "Archived")
        self.assertEqual({v.version for v in client.get_latest_versions("net")}, {"1", "2", "3"})
        self.assertEqual([v.version for v in client.get_latest_versions("net", ["Production"])], ["3"])
        client.update_registered_model("net", "second")
        client.set_registered_model_tag("net", "b", "2")
        client.delete_registered_model_tag("net", "a")
        found = client.search_registered_models("name LIKE 'n%'")
        self.assertEqual([(m.name, m.description, m.tags) for m in found], [("net", "second", {"b": "2"})])
        client.delete_model_version("net", "2")
        self.refused("RESOURCE_DOES_NOT_EXIST", client.get_model_version, "net", "2")
        self.refused("INVALID_PARAMETER_VALUE", client.get_model_version_by_alias, "net", "champion")
        client.delete_registered_model("net")
        self.refused("RESOURCE_DOES_NOT_EXIST", client.get_registered_model, "net")
        self.assertEqual(list(client.search_registered_models("name = 'net'")), [])
        client.create_registered_model("net")
        self.assertEqual(client.create_model_version("net", "s3://bucket/net", None).version, "4")
        client.delete_registered_model("net")

    def test_logged_models_and_register_model(self):
        mlflow, client = self.mlflow, self.client
        with mlflow.start_run(experiment_id="0") as run:
            model = client.create_logged_model("0", "ext", run.info.run_id, {"t": "1"}, {"d": "4"}, "net")
            mlflow.log_metric("score", 0.75, model_id=model.model_id)
            mlflow.log_text("w", "net/w.txt")
            mlflow.log_text("artifact_path: net", "net/MLmodel")
        client.finalize_logged_model(model.model_id, "READY")
        got = client.get_logged_model(model.model_id)
        self.assertEqual((got.name, got.params, got.source_run_id), ("ext", {"d": "4"}, run.info.run_id))
        self.assertEqual({m.key: m.value for m in got.metrics}, {"score": 0.75})
        client.set_logged_model_tags(model.model_id, {"u": "2"})
        client.delete_logged_model_tag(model.model_id, "t")
        found = client.search_logged_models(["0"], "metrics.score > 0.5 AND params.d = '4'", order_by=[{"field_name": "metrics.score", "ascending": False}])
        self.assertEqual([m.model_id for m in found], [model.model_id])
        self.assertNotIn(model.model_id, [m.name for m in client.search_registered_models()])
        version = mlflow.register_model(f"runs:/{run.info.run_id}/net", "registered")
        self.assertEqual(version.version, "1")
        place = pathlib.Path(mlflow.artifacts.download_artifacts("models:/registered/1"))
        self.assertEqual((place / "w.txt").read_text(), "w")
        client.delete_logged_model(model.model_id)
        self.refused("RESOURCE_DOES_NOT_EXIST", client.get_logged_model, model.model_id)
        client.delete_registered_model("registered")

    def test_logged_models_by_their_metrics_on_data_sets(self):
        client = self.client
        experiment = client.create_experiment("by data set")
        run = client.create_run(experiment).info.run_id
        values = {"a": {"train": 0.8, "test": 0.95}, "b": {"test": 0.7, "train": 0.99}}
        models = {}
        for name, on in values.items():
            models[name] = client.create_logged_model(experiment, name, run).model_id
            for dataset, value in on.items():
                client.log_metric(run, "accuracy", value, dataset_name=dataset, dataset_digest="1", model_id=models[name])

        def found(text=None, **more):
            return [m.name for m in client.search_logged_models([experiment], text, **more)]

        by_name = [{"field_name": "name"}]
        self.assertEqual(found("metrics.accuracy > 0.9", order_by=by_name), ["a", "b"])
        for dataset, expected in (("test", ["a"]), ("train", ["b"]), ("other", [])):
            self.assertEqual(found("metrics.accuracy > 0.9", datasets=[{"dataset_name": dataset}]), expected)
        for dataset, expected in (("test", ["b", "a"]), ("train", ["a", "b"])):
            order = {"field_name": "metrics.accuracy", "dataset_name": dataset, "dataset_digest": "1"}
            self.assertEqual(found(order_by=[order]), expected)

    def test_a_version_keeps_its_files(self):
        mlflow, client = self.mlflow, self.client
        with mlflow.start_run(experiment_id="0") as run:
            mlflow.log_text("as judged", "kept/weights.txt")
        client.create_registered_model("kept")
        client.create_model_version("kept", run.info.artifact_uri + "/kept", run.info.run_id, tags={"own": "1"})
        client.set_registered_model_alias("kept", "champion", "1")
        copy = client.copy_model_version("models:/kept@champion", "copied")
        self.assertEqual(copy.tags, {"own": "1"})
        client.log_text(run.info.run_id, "something else", "kept/weights.txt")
        for uri in ("models:/kept@champion", "models:/copied/1"):
            place = pathlib.Path(mlflow.artifacts.download_artifacts(uri))
            self.assertEqual((place / "weights.txt").read_text(), "as judged")

    def test_a_token_that_may_submit_is_enough_to_log_and_register_a_model(self):
        mlflow, client = self.mlflow, self.client
        admin = os.environ["MLFLOW_TRACKING_TOKEN"]
        os.environ["MLFLOW_TRACKING_TOKEN"] = self.server.add_token("submitter", "submit")
        try:
            deadline = time.monotonic() + 20
            while True:  # the server accepts a new token after about a second
                try:
                    run = client.create_run("0").info
                    break
                except mlflow.exceptions.MlflowException:
                    self.assertLess(time.monotonic(), deadline)
            with mlflow.start_run(run_id=run.run_id):
                model = client.create_logged_model("0", "net", run.run_id)
                with tempfile.TemporaryDirectory() as folder:
                    (pathlib.Path(folder) / "MLmodel").write_text(f"model_id: {model.model_id}")
                    (pathlib.Path(folder) / "weights").write_text("w")
                    client.log_model_artifacts(model.model_id, folder)
                    client.log_artifacts(run.run_id, folder, "net")
                client.finalize_logged_model(model.model_id, "READY")
            for number, source in (("1", f"runs:/{run.run_id}/net"), ("2", f"models:/{model.model_id}")):
                self.assertEqual(mlflow.register_model(source, "submitted").version, number)
                place = pathlib.Path(mlflow.artifacts.download_artifacts(f"models:/submitted/{number}"))
                self.assertEqual((place / "weights").read_text(), "w")
            self.refused("PERMISSION_DENIED", client.set_registered_model_alias, "submitted", "champion", "1")
            self.refused("PERMISSION_DENIED", client.delete_model_version, "submitted", "1")
        finally:
            os.environ["MLFLOW_TRACKING_TOKEN"] = admin
        client.set_registered_model_alias("submitted", "champion", "1")
        self.refused("RESOURCE_ALREADY_EXISTS", client.create_registered_model, "submitted")
        client.delete_registered_model("submitted")

    def test_inputs(self):
        from mlflow.entities import Dataset, DatasetInput, InputTag
        client = self.client
        run = client.create_run(client.create_experiment("inputs")).info
        client.log_inputs(run.run_id, [DatasetInput(Dataset("digits", "abc", "local", "{}"), [InputTag("mlflow.data.context", "train")])])
        got = client.get_run(run.run_id).inputs.dataset_inputs
        self.assertEqual([(d.dataset.name, d.dataset.digest, d.tags[0].value) for d in got], [("digits", "abc", "train")])
        self.assertEqual(len(client.search_runs([run.experiment_id], "dataset.name = 'digits' AND dataset.context = 'train'")), 1)
        self.assertEqual(len(client.search_runs([run.experiment_id], "datasets.digest = 'x'")), 0)

    def test_a_filter_means_the_same_as_in_mlflow(self):
        from mlflow.exceptions import MlflowException
        from mlflow.utils.search_utils import SearchUtils
        client, rng = self.client, random.Random(7)
        experiment = client.create_experiment("filters")
        for i in range(30):
            run = client.create_run(experiment, run_name=rng.choice(["a", "b%", "ab"]), start_time=1000 + i)
            for key in ("m", "n.x"):
                if rng.random() < 0.7:
                    client.log_metric(run.info.run_id, key, rng.choice([0, 1, 0.5, -1, 1e9]))
            for key in ("p", "q r"):
                if rng.random() < 0.7:
                    client.log_param(run.info.run_id, key, rng.choice(["x", "X", "xy", "_", "1"]))
            if rng.random() < 0.5:
                client.set_tag(run.info.run_id, "t", rng.choice(["x", "a.b", "it is"]))
        runs = client.search_runs([experiment], max_results=1000)

        def of_mlflow(clauses, text):
            """Returns the runs that MLflow finds, or None if it refuses the filter. MLflow evaluates a comparison only
            for runs that meet the earlier comparisons, so it may not see a mistake. So the test first tries each
            comparison alone."""
            try:
                return [[r.info.run_id for r in SearchUtils.filter(runs, part)] for part in [*clauses, text]][-1]
            except (MlflowException, KeyError, ValueError, TypeError, AttributeError):
                return None

        def of_sinew(text):
            try:
                return [r.info.run_id for r in client.search_runs([experiment], text, max_results=1000)]
            except MlflowException as error:
                self.assertEqual(error.error_code, "INVALID_PARAMETER_VALUE")
                return None

        for text, why in ALLOWED_REFUSALS.items():
            self.assertIsNotNone(of_mlflow([], text), f"{text} ({why}): MLflow refuses it, too, so the list is out of date")
            self.assertIsNone(of_sinew(text), f"{text} ({why}): Sinew accepts it, so the list is out of date")
        columns = ["metrics.m", "metrics.`n.x`", "params.p", 'params."q r"', "tags.t", "attributes.run_name", "run_name", "start_time",
                   "attribute.status", "run_id"]
        comparators = ["=", "!=", "<", ">=", "LIKE", "ilike", "IN", "IS NULL", "is not null"]
        values = ["1", "0.5", "-1", "'x'", "'X'", "'x%'", "'%_'", "1010", "'FINISHED'", "'RUNNING'", "('x', 'a')", ""]
        agreed = matched = 0
        for _ in range(400):
            clauses = [f"{rng.choice(columns)} {rng.choice(comparators)} {rng.choice(values)}".strip()
                       for _ in range(rng.choice([1, 1, 2]))]
            text = rng.choice([" AND ", " and "]).join(clauses)
            expected, got = of_mlflow(clauses, text), of_sinew(text)
            if expected is None or any(clause in ALLOWED_REFUSALS for clause in clauses):
                continue  # Sinew may accept what MLflow refuses
            self.assertEqual(got, expected, text)
            agreed += 1
            matched += bool(expected)
        self.assertGreater(agreed, 40)
        self.assertGreater(matched, 10)


if __name__ == "__main__":
    unittest.main()
