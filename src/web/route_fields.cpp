#include "web/route_fields.h"

#include <map>

#include "web/api_routes.h"
#include "web/artifacts.h"
#include "web/mlflow.h"
#include "web/mlflow_models.h"
#include "web/mlflow_registry.h"
#include "web/prometheus.h"

namespace sinew::web {
namespace {

constexpr const char *kText = "text/plain", *kBytes = "application/octet-stream";

#define SEARCH "filter:text order_by:texts max_results:integer page_token:text "
#define RUN "run_id:text!"
#define LABEL " key:text! value:text"

const std::map<Handle, RouteFields>& own_fields() {
  static const std::map<Handle, RouteFields> fields{
      {api_health, {"", "", kText}},
      {api_ready, {"", "status:text!"}},
      {api_version, {"", "", kText}},
      {api_openapi, {"", "openapi:text! info:object! security:list! paths:object! components:object!"}},
      {prometheus, {"", "", kText}},
      {api_events, {"", "events:list! after:integer!"}},
      {api_experiments, {"", "experiments:list!"}},
      {api_runs, {"", "runs:list! before:integer"}},
      {api_run,
       {"",
        "id:text! name:text! experiment:text! state:text! attempt:integer! begun_ms:integer! ended_ms:integer "
        "hidden:flag "
        "seq:integer! params:object! tags:object! metrics:object! facts:object"}},
      {api_run_metric, {"", "run:text! key:text! points:list!"}},
      {api_add_points, {"", "points:integer!"}},
      {api_overlay, {"", "key:text! runs:list!"}},
      {api_control, {"", "run:text! action:text!"}},
      {api_run_files, {"", "files:list!"}},
      {api_run_file, {"", "", kBytes}},
      {api_put_run_file, {"", "path:text! sha256:text! bytes:integer!"}},
      {api_models, {"", "models:list!"}},
      {api_model, {"", "name:text! begun_ms:integer! aliases:object! tags:object! versions:list!"}},
      {api_model_version,
       {"", "model:text! version:integer! run:text! begun_ms:integer! tags:object! facts:object files:list!"}},
      {api_lineage, {"", "role:text! kind:text! id:text! number:integer! text:text! from:list!"}},
      {api_freeze_version, {"", "model:text! version:integer! files:object!"}},
      {api_version_file, {"", "", kBytes}},
      {api_promote, {"", "done:flag! from:integer! to:integer! why:text! facts:list!"}},
      {api_rollback, {"", "done:flag! from:integer! to:integer! why:text! facts:list!"}},
      {api_set_alias, {"", "model:text! alias:text! version:integer!"}},
  };
  return fields;
}

const std::map<Handle, RouteFields>& run_fields() {
  static const std::map<Handle, RouteFields> fields{
      {experiments_create, {"name:text! artifact_location:text tags:list", "experiment_id:text!"}},
      {experiments_get, {"experiment_id:text!", "experiment:object!"}},
      {experiments_get_by_name, {"experiment_name:text!", "experiment:object!"}},
      {experiments_search, {SEARCH "view_type:text", "experiments:list! next_page_token:text"}},
      {experiments_delete, {"experiment_id:text!"}},
      {experiments_restore, {"experiment_id:text!"}},
      {experiments_update, {"experiment_id:text! new_name:text!"}},
      {experiments_set_tag, {"experiment_id:text!" LABEL}},
      {experiments_delete_tag, {"experiment_id:text! key:text!"}},
      {runs_create, {"experiment_id:text run_name:text user_id:text start_time:integer tags:list", "run:object!"}},
      {runs_get, {RUN, "run:object!"}},
      {runs_update, {RUN " status:text end_time:integer run_name:text", "run_info:object!"}},
      {runs_delete, {RUN}},
      {runs_restore, {RUN}},
      {runs_set_tag, {RUN LABEL}},
      {runs_delete_tag, {RUN " key:text!"}},
      {runs_log_parameter, {RUN LABEL}},
      {runs_log_metric, {RUN " key:text! value:number! timestamp:integer step:integer model_id:text"}},
      {runs_log_batch, {RUN " metrics:list params:list tags:list"}},
      {runs_log_model, {RUN " model_json:text!"}},
      {runs_log_inputs, {RUN " datasets:list models:list"}},
      {runs_log_outputs, {RUN " models:list"}},
      {runs_search, {SEARCH "experiment_ids:texts run_view_type:text", "runs:list! next_page_token:text"}},
      {metrics_history,
       {RUN " metric_key:text! max_results:integer page_token:text", "metrics:list! next_page_token:text"}},
      {metrics_history_bulk, {"run_id:texts! metric_key:text! max_results:integer", "metrics:list!"}},
      {metrics_history_bulk_interval,
       {"run_ids:texts! metric_key:text! start_step:integer end_step:integer max_results:integer", "metrics:list!"}},
      {server_info,
       {"",
        "store_type:text! workspaces_enabled:flag! trace_archival_enabled:flag! multipart_uploads_enabled:flag! "
        "multipart_downloads_enabled:flag!"}},
      {mlflow_run_artifacts, {RUN " path:text", "root_uri:text! files:list"}},
      {mlflow_artifacts_list, {"path:text", "files:list"}},
      {mlflow_artifacts_get, {"", "", kBytes}},
  };
  return fields;
}

const std::map<Handle, RouteFields>& model_fields() {
  static const std::map<Handle, RouteFields> fields{
      {logged_models_create,
       {"experiment_id:text! name:text model_type:text source_run_id:text params:list tags:list", "model:object!"}},
      {logged_models_search,
       {"experiment_ids:texts filter:text datasets:list order_by:list max_results:integer page_token:text",
        "models:list next_page_token:text"}},
      {logged_models_get, {"allow_deleted:flag", "model:object!"}},
      {logged_models_finalize, {"status:text!", "model:object!"}},
      {logged_models_set_tags, {"tags:list", "model:object!"}},
      {logged_models_log_params, {"params:list"}},
      {logged_models_list_artifacts, {"artifact_directory_path:text", "root_uri:text files:list"}},
      {registered_models_create, {"name:text! description:text tags:list", "registered_model:object!"}},
      {registered_models_get, {"name:text!", "registered_model:object!"}},
      {registered_models_update, {"name:text! description:text", "registered_model:object!"}},
      {registered_models_rename, {"name:text! new_name:text"}},
      {registered_models_delete, {"name:text!"}},
      {registered_models_search, {SEARCH, "registered_models:list next_page_token:text"}},
      {registered_models_latest, {"name:text! stages:texts", "model_versions:list"}},
      {registered_models_set_tag, {"name:text!" LABEL}},
      {registered_models_delete_tag, {"name:text! key:text!"}},
      {alias_set, {"name:text! alias:text! version:text!"}},
      {alias_get, {"name:text! alias:text!", "model_version:object!"}},
      {alias_delete, {"name:text! alias:text!"}},
      {versions_create,
       {"name:text! source:text run_id:text description:text run_link:text model_id:text user_id:text tags:list",
        "model_version:object!"}},
      {versions_get, {"name:text! version:text!", "model_version:object!"}},
      {versions_update, {"name:text! version:text! description:text", "model_version:object!"}},
      {versions_delete, {"name:text! version:text!"}},
      {versions_search, {SEARCH, "model_versions:list next_page_token:text"}},
      {versions_transition,
       {"name:text! version:text! stage:text! archive_existing_versions:flag", "model_version:object!"}},
      {versions_set_tag, {"name:text! version:text!" LABEL}},
      {versions_delete_tag, {"name:text! version:text! key:text!"}},
      {versions_download_uri, {"name:text! version:text!", "artifact_uri:text!"}},
  };
  return fields;
}

#undef SEARCH
#undef RUN
#undef LABEL

}  // namespace

const RouteFields& fields_of(const Route& route) {
  static const RouteFields none;
  for (const auto* fields : {&own_fields(), &run_fields(), &model_fields()}) {
    if (const auto found = fields->find(route.handle); found != fields->end()) return found->second;
  }
  return none;
}

const char* query_fields_of(const Route& route) {
  return route.query[0] != '\0' || route.method != std::string_view("GET") ? route.query : fields_of(route).takes;
}

const char* body_fields_of(const Route& route) {
  return route.body[0] != '\0' || route.method == std::string_view("GET") ? route.body : fields_of(route).takes;
}

}  // namespace sinew::web
