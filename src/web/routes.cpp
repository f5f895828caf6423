// All routes in one array. It determines which function serves a request and which role the caller needs.
// docs/reference/openapi.json is generated from it.
#include <set>

#include "web/api_routes.h"
#include "web/artifacts.h"
#include "web/mlflow.h"
#include "web/mlflow_models.h"
#include "web/mlflow_registry.h"

namespace sinew::web {
namespace {

constexpr Role kRead = Role::kRead, kSubmit = Role::kSubmit, kAdmin = Role::kAdmin;

#define MLFLOW "/api/2.0/mlflow"
#define MLFLOW_ARTIFACTS "/api/2.0/mlflow-artifacts"

const std::vector<Route> kRoutes = {
    // ---- the server ------------------------------------------------------------------------------------------------
    {"GET", "/health", Role::kNone, api_health, "whether the server runs"},
    {"GET", "/api/v1/health", Role::kNone, api_health, "whether the server runs"},
    {"GET", "/api/v1/ready", Role::kNone, api_ready, "whether the store answers as well"},
    {"GET", "/version", Role::kNone, api_version, "the version of the program"},
    {"GET", "/api/v1/openapi.json", Role::kNone, api_openapi, "the description of all routes in OpenAPI 3.1"},
    {"GET", "/metrics", kRead, prometheus,
     "for Prometheus: runs by state, the newest metrics of running runs, what runs spend, the server's counters"},
    {"GET", "/api/v1/events", kRead, api_events,
     "the events after a given one: at once, as soon as there are any (`wait`, in seconds), or as a stream (Accept: "
     "text/event-stream; Last-Event-ID is supported)",
     "after:integer limit:integer wait:number kind:text id:text"},
    // ---- runs ------------------------------------------------------------------------------------------------------
    {"GET", "/api/v1/experiments", kRead, api_experiments, "experiments, newest first",
     "hidden:flag before:integer limit:integer"},
    {"GET", "/api/v1/runs", kRead, api_runs,
     "runs, newest first; `key` selects the metrics; pass the answer's `before` to get the next page",
     "experiment:text state:text name:text key:texts hidden:flag before:integer limit:integer"},
    {"GET", "/api/v1/runs/{run}", kRead, api_run, "a run without its points"},
    {"GET", "/api/v1/runs/{run}/metrics/{key*}", kRead, api_run_metric,
     "the points of a metric, thinned out to at most `points` so that the line chart does not change (M4)",
     "points:integer first_step:integer last_step:integer"},
    {"POST", "/api/v1/runs/{run}/points", kSubmit, api_add_points,
     "add points of any number of metrics, atomically; `once` is an idempotency key for this run", "",
     "series:object! once:text"},
    {"GET", "/api/v1/overlay", kRead, api_overlay, "one metric of many runs, each series thinned out",
     "key:text! run:texts experiment:text state:text name:text hidden:flag before:integer limit:integer points:integer "
     "first_step:integer last_step:integer"},
    {"POST", "/api/v1/runs/{run}/control", kSubmit, api_control,
     "request an action of a run that trains with workers, at its next step: stop, checkpoint, evaluate, "
     "experiment, learning_rate (value: a factor from 1e-9 to 1e6), batch_size (value: samples, at most 1e9), "
     "checkpoint_interval (value: seconds), checkpoint_steps (value: steps), loader_threads (value: threads, at most "
     "1024), scale (value: workers, at most 4096)",
     "", "action:text! value:number reason:text"},
    {"GET", "/api/v1/runs/{run}/files", kRead, api_run_files, "the files of a run in a folder", "path:text"},
    {"GET", "/api/v1/runs/{run}/files/{path*}", kRead, api_run_file, "download a file, or a range of it"},
    {"PUT", "/api/v1/runs/{run}/files/{path*}", kSubmit, api_put_run_file, "upload a file", "", kFile},
    // ---- models ----------------------------------------------------------------------------------------------------
    {"GET", "/api/v1/models", kRead, api_models, "models, newest first", "before:integer limit:integer"},
    {"GET", "/api/v1/models/{model}", kRead, api_model, "a model with its aliases and versions"},
    {"GET", "/api/v1/models/{model}/versions/{version}", kRead, api_model_version, "a version with its files"},
    {"GET", "/api/v1/models/{model}/versions/{version}/lineage", kRead, api_lineage, "the lineage of a version"},
    {"POST", "/api/v1/models/{model}/versions/{version}/freeze", kSubmit, api_freeze_version,
     "give a version that was created before its files were there the files that its source has now; `files` (from "
     "paths to SHA-256): only if they are these",
     "", "files:object"},
    {"GET", "/api/v1/models/{model}/versions/{version}/files/{path*}", kRead, api_version_file,
     "download a file of a version"},
    {"POST", "/api/v1/models/{model}/promote", kSubmit, api_promote,
     "move an alias to a version if the gates allow it; otherwise status 409 with the reason. "
     "`force`, another `metric` and a `margin` below 0 require the role admin",
     "", "version:integer! alias:text metric:text margin:number force:flag"},
    {"POST", "/api/v1/models/{model}/rollback", kAdmin, api_rollback,
     "move an alias back to its previous version, and withdraw the version that it leaves", "", "alias:text"},
    {"PUT", "/api/v1/models/{model}/aliases/{alias}", kAdmin, api_set_alias,
     "point an alias at a version (0: remove it) without gates, if it still points at `expected`", "",
     "version:integer! expected:integer"},
    // ---- MLflow: experiments and runs ------------------------------------------------------------------------------
    {"POST", MLFLOW "/experiments/create", kSubmit, experiments_create, "create an experiment"},
    {"GET", MLFLOW "/experiments/get", kRead, experiments_get, "get an experiment"},
    {"GET", MLFLOW "/experiments/get-by-name", kRead, experiments_get_by_name, "get an experiment by its name"},
    {"GET", MLFLOW "/experiments/search", kRead, experiments_search, "search experiments"},
    {"POST", MLFLOW "/experiments/search", kRead, experiments_search, "search experiments"},
    {"POST", MLFLOW "/experiments/delete", kAdmin, experiments_delete, "hide an experiment"},
    {"POST", MLFLOW "/experiments/restore", kAdmin, experiments_restore, "restore it"},
    {"POST", MLFLOW "/experiments/update", kSubmit, experiments_update, "rename an experiment"},
    {"POST", MLFLOW "/experiments/set-experiment-tag", kSubmit, experiments_set_tag, "tag an experiment"},
    {"POST", MLFLOW "/experiments/delete-experiment-tag", kSubmit, experiments_delete_tag, "remove a tag"},
    {"POST", MLFLOW "/runs/create", kSubmit, runs_create, "create a run"},
    {"GET", MLFLOW "/runs/get", kRead, runs_get, "get a run"},
    {"POST", MLFLOW "/runs/update", kSubmit, runs_update, "set the state and name of a run"},
    {"POST", MLFLOW "/runs/delete", kSubmit, runs_delete, "hide a run"},
    {"POST", MLFLOW "/runs/restore", kSubmit, runs_restore, "restore it"},
    {"POST", MLFLOW "/runs/set-tag", kSubmit, runs_set_tag, "tag a run"},
    {"POST", MLFLOW "/runs/delete-tag", kSubmit, runs_delete_tag, "remove a tag"},
    {"POST", MLFLOW "/runs/log-parameter", kSubmit, runs_log_parameter, "log a parameter"},
    {"POST", MLFLOW "/runs/log-metric", kSubmit, runs_log_metric, "log a point of a metric"},
    {"POST", MLFLOW "/runs/log-batch", kSubmit, runs_log_batch, "log points, parameters and tags, atomically"},
    {"POST", MLFLOW "/runs/log-model", kSubmit, runs_log_model, "record a model among the artifacts"},
    {"POST", MLFLOW "/runs/log-inputs", kSubmit, runs_log_inputs, "record the data sets and models that a run uses"},
    {"POST", MLFLOW "/runs/outputs", kSubmit, runs_log_outputs, "record the models that a run produced"},
    {"POST", MLFLOW "/runs/search", kRead, runs_search, "search runs"},
    {"GET", MLFLOW "/metrics/get-history", kRead, metrics_history, "all points of a metric"},
    {"GET", MLFLOW "/metrics/get-history-bulk", kRead, metrics_history_bulk, "a metric of several runs"},
    {"GET", MLFLOW "/metrics/get-history-bulk-interval", kRead, metrics_history_bulk_interval,
     "a metric of several runs, thinned out"},
    {"GET", "/api/3.0/mlflow/server-info", kRead, server_info, "which newer features this server offers"},
    // ---- MLflow: artifacts -----------------------------------------------------------------------------------------
    {"GET", MLFLOW "/artifacts/list", kRead, mlflow_run_artifacts, "list the files of a run"},
    {"GET", MLFLOW_ARTIFACTS "/artifacts", kRead, mlflow_artifacts_list, "list the files in a folder"},
    {"GET", MLFLOW_ARTIFACTS "/artifacts/{path*}", kRead, mlflow_artifacts_get, "download a file"},
    {"PUT", MLFLOW_ARTIFACTS "/artifacts/{path*}", kSubmit, mlflow_artifacts_put, "upload a file", "", kFile},
    {"DELETE", MLFLOW_ARTIFACTS "/artifacts/{path*}", kSubmit, mlflow_artifacts_delete, "remove files"},
    {"POST", MLFLOW_ARTIFACTS "/mpu/{step}/{path*}", kSubmit, not_offered, "multipart uploads are not offered"},
    {"GET", MLFLOW_ARTIFACTS "/presigned/{path*}", kRead, not_offered, "presigned downloads are not offered"},
    // ---- MLflow: logged models -------------------------------------------------------------------------------------
    {"POST", MLFLOW "/logged-models", kSubmit, logged_models_create, "create a logged model"},
    {"POST", MLFLOW "/logged-models/search", kRead, logged_models_search, "search logged models"},
    {"GET", MLFLOW "/logged-models/{model_id}", kRead, logged_models_get, "get a logged model"},
    {"PATCH", MLFLOW "/logged-models/{model_id}", kSubmit, logged_models_finalize, "mark it as ready"},
    {"DELETE", MLFLOW "/logged-models/{model_id}", kSubmit, logged_models_delete, "delete it"},
    {"PATCH", MLFLOW "/logged-models/{model_id}/tags", kSubmit, logged_models_set_tags, "tag it"},
    {"DELETE", MLFLOW "/logged-models/{model_id}/tags/{tag_key}", kSubmit, logged_models_delete_tag, "remove a tag"},
    {"POST", MLFLOW "/logged-models/{model_id}/params", kSubmit, logged_models_log_params, "log its parameters"},
    {"GET", MLFLOW "/logged-models/{model_id}/artifacts/directories", kRead, logged_models_list_artifacts,
     "list its files"},
    // ---- MLflow: model registry ------------------------------------------------------------------------------------
    {"POST", MLFLOW "/registered-models/create", kSubmit, registered_models_create, "create a registered model"},
    {"GET", MLFLOW "/registered-models/get", kRead, registered_models_get, "get a registered model"},
    {"PATCH", MLFLOW "/registered-models/update", kSubmit, registered_models_update, "set its description"},
    {"POST", MLFLOW "/registered-models/rename", kSubmit, registered_models_rename,
     "refused: a model cannot be renamed"},
    {"DELETE", MLFLOW "/registered-models/delete", kAdmin, registered_models_delete, "hide it and its versions"},
    {"GET", MLFLOW "/registered-models/search", kRead, registered_models_search, "search registered models"},
    {"GET", MLFLOW "/registered-models/get-latest-versions", kRead, registered_models_latest,
     "the newest version of each stage"},
    {"POST", MLFLOW "/registered-models/get-latest-versions", kRead, registered_models_latest,
     "the newest version of each stage"},
    {"POST", MLFLOW "/registered-models/set-tag", kSubmit, registered_models_set_tag, "tag it"},
    {"DELETE", MLFLOW "/registered-models/delete-tag", kSubmit, registered_models_delete_tag, "remove a tag"},
    {"POST", MLFLOW "/registered-models/alias", kAdmin, alias_set, "point an alias at a version"},
    {"GET", MLFLOW "/registered-models/alias", kRead, alias_get, "get the version of an alias"},
    {"DELETE", MLFLOW "/registered-models/alias", kAdmin, alias_delete, "remove an alias"},
    {"POST", MLFLOW "/model-versions/create", kSubmit, versions_create, "create the next version"},
    {"GET", MLFLOW "/model-versions/get", kRead, versions_get, "get a version"},
    {"PATCH", MLFLOW "/model-versions/update", kSubmit, versions_update, "set its description"},
    {"DELETE", MLFLOW "/model-versions/delete", kAdmin, versions_delete, "hide it"},
    {"GET", MLFLOW "/model-versions/search", kRead, versions_search, "search versions"},
    {"POST", MLFLOW "/model-versions/transition-stage", kSubmit, versions_transition,
     "set its stage (deprecated: use aliases)"},
    {"POST", MLFLOW "/model-versions/set-tag", kSubmit, versions_set_tag, "tag it"},
    {"DELETE", MLFLOW "/model-versions/delete-tag", kSubmit, versions_delete_tag, "remove a tag"},
    {"GET", MLFLOW "/model-versions/get-download-uri", kRead, versions_download_uri, "get the location of its files"},
    // ---- MLflow: routes that are not offered -----------------------------------------------------------------------
    {"POST", MLFLOW "/traces/{rest*}", kRead, not_offered, "traces are not offered"},
    {"GET", MLFLOW "/traces/{rest*}", kRead, not_offered, "traces are not offered"},
    {"POST", MLFLOW "/webhooks", kRead, not_offered, "webhooks are not offered"},
    {"GET", MLFLOW "/webhooks", kRead, not_offered, "webhooks are not offered"},
    {"POST", MLFLOW "/webhooks/{rest*}", kRead, not_offered, "webhooks are not offered"},
    {"GET", MLFLOW "/webhooks/{rest*}", kRead, not_offered, "webhooks are not offered"},
    {"PATCH", MLFLOW "/webhooks/{rest*}", kRead, not_offered, "webhooks are not offered"},
    {"DELETE", MLFLOW "/webhooks/{rest*}", kRead, not_offered, "webhooks are not offered"},
    {"POST", "/api/3.0/mlflow/{rest*}", kRead, not_offered, "not offered"},
    {"GET", "/api/3.0/mlflow/{rest*}", kRead, not_offered, "not offered"},
};

#undef MLFLOW
#undef MLFLOW_ARTIFACTS

}  // namespace

const std::vector<Route>& routes() {
  return kRoutes;
}

bool is_scan(const Route& route) {
  static const std::set<Handle> kScans{prometheus,
                                       api_events,
                                       api_experiments,
                                       api_runs,
                                       api_run_metric,
                                       api_overlay,
                                       api_run_files,
                                       api_models,
                                       api_model,
                                       api_lineage,
                                       experiments_search,
                                       runs_search,
                                       metrics_history,
                                       metrics_history_bulk,
                                       metrics_history_bulk_interval,
                                       mlflow_run_artifacts,
                                       mlflow_artifacts_list,
                                       logged_models_search,
                                       logged_models_list_artifacts,
                                       registered_models_search,
                                       registered_models_latest,
                                       versions_search};
  return kScans.contains(route.handle);
}

bool is_small_page(const Route& route, const http::Request& request) {
  constexpr int64_t kMost = 1000;  // not less than the limit of a request that names none
  static const std::set<Handle> kPages{api_experiments, api_runs, api_models};
  const auto& query = request.query;
  // These two let a page read any number of runs that it does not show.
  if (!kPages.contains(route.handle) || query.contains("state") || query.contains("name")) return false;
  const auto limit = query.find("limit");
  if (limit == query.end()) return true;
  const auto number = integer_of(limit->second);
  return number && *number <= kMost;
}

}  // namespace sinew::web
