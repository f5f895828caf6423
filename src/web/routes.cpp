// Every route there is, in one array: what serves a request, who may send it, and what docs/reference/openapi.json
// says.
#include "web/api.h"
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
    {"GET", "/health", Role::kNobody, api_health, "the server is there"},
    {"GET", "/api/v1/health", Role::kNobody, api_health, "the server is there"},
    {"GET", "/api/v1/ready", Role::kNobody, api_ready, "the store answers, too"},
    {"GET", "/version", Role::kNobody, api_version, "of the program"},
    {"GET", "/api/v1/openapi.json", Role::kNobody, api_openapi, "all routes, as OpenAPI 3.1"},
    {"GET", "/metrics", kRead, prometheus, "for Prometheus: runs by state, newest metrics of running ones, the server"},
    {"GET", "/api/v1/events", kRead, api_events,
     "what happened after an event: at once, when there is news (wait, in seconds), or as a stream (Accept: "
     "text/event-stream; Last-Event-ID is understood)",
     "after:integer limit:integer wait:number kind:text id:text"},
    // ---- runs ------------------------------------------------------------------------------------------------------
    {"GET", "/api/v1/experiments", kRead, api_experiments, "experiments, newest first",
     "hidden:flag before:integer limit:integer"},
    {"GET", "/api/v1/runs", kRead, api_runs,
     "runs, newest first; `key` names metrics to show; `before` of an answer is the next page's",
     "experiment:text state:text name:text key:texts hidden:flag before:integer limit:integer"},
    {"GET", "/api/v1/runs/{run}", kRead, api_run, "all of a run but its points"},
    {"GET", "/api/v1/runs/{run}/metrics/{key*}", kRead, api_run_metric,
     "points of a metric, thinned out to at most `points` without changing its picture (M4)",
     "points:integer first_step:integer last_step:integer"},
    {"POST", "/api/v1/runs/{run}/points", kSubmit, api_add_points,
     "points of any number of metrics, all or none; with `once` they are not added to this run again when sent again",
     "", "series:object! once:text"},
    {"GET", "/api/v1/overlay", kRead, api_overlay, "one metric of many runs, each thinned out",
     "key:text! run:texts experiment:text state:text name:text hidden:flag before:integer limit:integer points:integer "
     "first_step:integer last_step:integer"},
    {"POST", "/api/v1/runs/{run}/control", kSubmit, api_control,
     "ask a run that trains with workers for something at its next step: stop, pause, checkpoint, evaluate, "
     "learning_rate (a factor), batch_size, scale (workers)",
     "", "wish:text! value:number reason:text"},
    {"GET", "/api/v1/runs/{run}/files", kRead, api_run_files, "files of a run below a path", "path:text"},
    {"GET", "/api/v1/runs/{run}/files/{path*}", kRead, api_run_file, "download a file, or a Range of it"},
    {"PUT", "/api/v1/runs/{run}/files/{path*}", kSubmit, api_put_run_file, "upload a file", "", kFile},
    // ---- models ----------------------------------------------------------------------------------------------------
    {"GET", "/api/v1/models", kRead, api_models, "models, newest first", "before:integer limit:integer"},
    {"GET", "/api/v1/models/{model}", kRead, api_model, "a model, its aliases and versions"},
    {"GET", "/api/v1/models/{model}/versions/{version}", kRead, api_model_version, "a version and its files"},
    {"GET", "/api/v1/models/{model}/versions/{version}/lineage", kRead, api_lineage, "what it was made from"},
    {"GET", "/api/v1/models/{model}/versions/{version}/files/{path*}", kRead, api_version_file,
     "download a file of it"},
    {"POST", "/api/v1/models/{model}/promote", kSubmit, api_promote,
     "move an alias to a version if the gates allow it; 409 with the reason if not. "
     "`force`, a `metric` of one's own and a `margin` below 0 take an admin",
     "", "version:integer! alias:text metric:text margin:number force:flag"},
    {"POST", "/api/v1/models/{model}/rollback", kSubmit, api_rollback, "move an alias back to where it stood before",
     "", "alias:text"},
    {"PUT", "/api/v1/models/{model}/aliases/{alias}", kAdmin, api_set_alias,
     "let an alias name a version (0: none) whatever the gates say, if it still names `expected`", "",
     "version:integer! expected:integer"},
    // ---- MLflow: experiments and runs ------------------------------------------------------------------------------
    {"POST", MLFLOW "/experiments/create", kSubmit, experiments_create, "make an experiment"},
    {"GET", MLFLOW "/experiments/get", kRead, experiments_get, "an experiment"},
    {"GET", MLFLOW "/experiments/get-by-name", kRead, experiments_get_by_name, "an experiment by its name"},
    {"GET", MLFLOW "/experiments/search", kRead, experiments_search, "search experiments"},
    {"POST", MLFLOW "/experiments/search", kRead, experiments_search, "search experiments"},
    {"POST", MLFLOW "/experiments/delete", kAdmin, experiments_delete, "hide an experiment"},
    {"POST", MLFLOW "/experiments/restore", kAdmin, experiments_restore, "show it again"},
    {"POST", MLFLOW "/experiments/update", kSubmit, experiments_update, "rename an experiment"},
    {"POST", MLFLOW "/experiments/set-experiment-tag", kSubmit, experiments_set_tag, "tag an experiment"},
    {"POST", MLFLOW "/experiments/delete-experiment-tag", kSubmit, experiments_delete_tag, "remove a tag"},
    {"POST", MLFLOW "/runs/create", kSubmit, runs_create, "begin a run"},
    {"GET", MLFLOW "/runs/get", kRead, runs_get, "a run"},
    {"POST", MLFLOW "/runs/update", kSubmit, runs_update, "a run's state and name"},
    {"POST", MLFLOW "/runs/delete", kSubmit, runs_delete, "hide a run"},
    {"POST", MLFLOW "/runs/restore", kSubmit, runs_restore, "show it again"},
    {"POST", MLFLOW "/runs/set-tag", kSubmit, runs_set_tag, "tag a run"},
    {"POST", MLFLOW "/runs/delete-tag", kSubmit, runs_delete_tag, "remove a tag"},
    {"POST", MLFLOW "/runs/log-parameter", kSubmit, runs_log_parameter, "a parameter"},
    {"POST", MLFLOW "/runs/log-metric", kSubmit, runs_log_metric, "a point of a metric"},
    {"POST", MLFLOW "/runs/log-batch", kSubmit, runs_log_batch, "points, parameters and tags, all or none"},
    {"POST", MLFLOW "/runs/log-model", kSubmit, runs_log_model, "that a model is among the artifacts"},
    {"POST", MLFLOW "/runs/log-inputs", kSubmit, runs_log_inputs, "data sets and models a run began with"},
    {"POST", MLFLOW "/runs/outputs", kSubmit, runs_log_outputs, "models a run made"},
    {"POST", MLFLOW "/runs/search", kRead, runs_search, "search runs"},
    {"GET", MLFLOW "/metrics/get-history", kRead, metrics_history, "every point of a metric"},
    {"GET", MLFLOW "/metrics/get-history-bulk", kRead, metrics_history_bulk, "of several runs"},
    {"GET", MLFLOW "/metrics/get-history-bulk-interval", kRead, metrics_history_bulk_interval,
     "of several runs, thinned out"},
    {"GET", "/api/3.0/mlflow/server-info", kRead, server_info, "what this server offers of newer things"},
    // ---- MLflow: artifacts -----------------------------------------------------------------------------------------
    {"GET", MLFLOW "/artifacts/list", kRead, mlflow_run_artifacts, "files of a run"},
    {"GET", MLFLOW_ARTIFACTS "/artifacts", kRead, mlflow_artifacts_list, "files below a place"},
    {"GET", MLFLOW_ARTIFACTS "/artifacts/{path*}", kRead, mlflow_artifacts_get, "download a file"},
    {"PUT", MLFLOW_ARTIFACTS "/artifacts/{path*}", kSubmit, mlflow_artifacts_put, "upload a file", "", kFile},
    {"DELETE", MLFLOW_ARTIFACTS "/artifacts/{path*}", kSubmit, mlflow_artifacts_delete, "remove files"},
    {"POST", MLFLOW_ARTIFACTS "/mpu/{step}/{path*}", kSubmit, not_offered, "uploads in parts are not offered"},
    {"GET", MLFLOW_ARTIFACTS "/presigned/{path*}", kRead, not_offered, "downloads elsewhere are not offered"},
    // ---- MLflow: logged models -------------------------------------------------------------------------------------
    {"POST", MLFLOW "/logged-models", kSubmit, logged_models_create, "begin a logged model"},
    {"POST", MLFLOW "/logged-models/search", kRead, logged_models_search, "search logged models"},
    {"GET", MLFLOW "/logged-models/{model_id}", kRead, logged_models_get, "a logged model"},
    {"PATCH", MLFLOW "/logged-models/{model_id}", kSubmit, logged_models_finalize, "say that it is ready"},
    {"DELETE", MLFLOW "/logged-models/{model_id}", kSubmit, logged_models_delete, "remove it"},
    {"PATCH", MLFLOW "/logged-models/{model_id}/tags", kSubmit, logged_models_set_tags, "tag it"},
    {"DELETE", MLFLOW "/logged-models/{model_id}/tags/{tag_key}", kSubmit, logged_models_delete_tag, "remove a tag"},
    {"POST", MLFLOW "/logged-models/{model_id}/params", kSubmit, logged_models_log_params, "its parameters"},
    {"GET", MLFLOW "/logged-models/{model_id}/artifacts/directories", kRead, logged_models_list_artifacts, "its files"},
    // ---- MLflow: model registry ------------------------------------------------------------------------------------
    {"POST", MLFLOW "/registered-models/create", kSubmit, registered_models_create, "make a registered model"},
    {"GET", MLFLOW "/registered-models/get", kRead, registered_models_get, "a registered model"},
    {"PATCH", MLFLOW "/registered-models/update", kSubmit, registered_models_update, "describe it"},
    {"POST", MLFLOW "/registered-models/rename", kSubmit, registered_models_rename, "refused: a model keeps its name"},
    {"DELETE", MLFLOW "/registered-models/delete", kAdmin, registered_models_delete, "hide it and its versions"},
    {"GET", MLFLOW "/registered-models/search", kRead, registered_models_search, "search registered models"},
    {"GET", MLFLOW "/registered-models/get-latest-versions", kRead, registered_models_latest, "newest of each stage"},
    {"POST", MLFLOW "/registered-models/get-latest-versions", kRead, registered_models_latest, "newest of each stage"},
    {"POST", MLFLOW "/registered-models/set-tag", kSubmit, registered_models_set_tag, "tag it"},
    {"DELETE", MLFLOW "/registered-models/delete-tag", kSubmit, registered_models_delete_tag, "remove a tag"},
    {"POST", MLFLOW "/registered-models/alias", kAdmin, alias_set, "let an alias name a version"},
    {"GET", MLFLOW "/registered-models/alias", kRead, alias_get, "the version an alias names"},
    {"DELETE", MLFLOW "/registered-models/alias", kAdmin, alias_delete, "remove an alias"},
    {"POST", MLFLOW "/model-versions/create", kSubmit, versions_create, "make the next version"},
    {"GET", MLFLOW "/model-versions/get", kRead, versions_get, "a version"},
    {"PATCH", MLFLOW "/model-versions/update", kSubmit, versions_update, "describe it"},
    {"DELETE", MLFLOW "/model-versions/delete", kAdmin, versions_delete, "hide it"},
    {"GET", MLFLOW "/model-versions/search", kRead, versions_search, "search versions"},
    {"POST", MLFLOW "/model-versions/transition-stage", kSubmit, versions_transition, "its stage (use aliases)"},
    {"POST", MLFLOW "/model-versions/set-tag", kSubmit, versions_set_tag, "tag it"},
    {"DELETE", MLFLOW "/model-versions/delete-tag", kSubmit, versions_delete_tag, "remove a tag"},
    {"GET", MLFLOW "/model-versions/get-download-uri", kRead, versions_download_uri, "where its files are"},
    // ---- MLflow: what is not offered -------------------------------------------------------------------------------
    {"POST", MLFLOW "/traces/{rest*}", kRead, not_offered, "traces are not offered"},
    {"GET", MLFLOW "/traces/{rest*}", kRead, not_offered, "traces are not offered"},
    {"POST", "/api/3.0/mlflow/{rest*}", kRead, not_offered, "not offered"},
    {"GET", "/api/3.0/mlflow/{rest*}", kRead, not_offered, "not offered"},
};

#undef MLFLOW
#undef MLFLOW_ARTIFACTS

}  // namespace

const std::vector<Route>& routes() {
  return kRoutes;
}

}  // namespace sinew::web
