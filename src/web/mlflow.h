// MLflow's REST API over the store: what its current client asks for, answered as it expects it.
//
// An experiment and a run are the store's, whoever made them; so runs that Sinew trained are found by the client, too.
// Where MLflow keeps more than the store has words for (a user, inputs, a stage) it stands in the record's body.
#pragma once

#include <set>

#include "web/args.h"
#include "web/desk.h"
#include "web/filter.h"

namespace sinew::web {

// ---- how things are written (mlflow_json.cpp) ----------------------------------------------------------------------

constexpr const char* kRunNameTag = "mlflow.runName";

Json body_of(const store::Record& record);               // an object, whatever stands there
std::string text_of(const Json& body, const char* key);  // empty: none
std::string run_of(const Args& args);                    // the client says run_id, old ones run_uuid
Json labels_json(const store::Labels& labels);
std::string artifact_location(const store::Record& experiment);
std::string artifact_location_of_run(Desk& desk, const store::Record& run);
Json experiment_json(const store::Record& experiment);
Json run_info_json(const store::Record& run, const std::string& location);
Json run_json(const store::Record& run, const std::string& location);
const char* status_word(store::RunState state);            // "KILLED" for stopped
store::RunState state_of_status(const std::string& word);  // also a number, as enums may stand in JSON
std::string new_id();                                      // 32 hex digits
// One page of `all`; and the token of the next, if there is one.
struct Page {
  size_t first = 0, last = 0;
  std::string next;
};
Page page_of(const Args& args, size_t all, int64_t otherwise, int64_t most);
enum class View { kActive, kDeleted, kAll };
View view_of(const Args& args, const char* name);
bool is_in(View view, bool hidden);
// All records of that kind that a filter can be about, hidden ones too.
std::vector<store::Record> all_records(Desk& desk, store::Kind kind, const std::optional<std::string>& parent = {},
                                       bool metrics = false);
std::map<std::string, std::optional<std::string>> tags_of(const Args& args, const char* name);
store::Labels labels_of(const Args& args, const char* name);
// Reads the body, changes it, writes it; again if somebody else wrote it meanwhile.
void change_body(Desk& desk, const store::Subject& subject, const std::function<void(Json& body)>& change);

// ---- routes (routes.cpp has them by path) --------------------------------------------------------------------------

using http::Response;
Response experiments_create(Desk&, const Call&);
Response experiments_get(Desk&, const Call&);
Response experiments_get_by_name(Desk&, const Call&);
Response experiments_search(Desk&, const Call&);
Response experiments_delete(Desk&, const Call&);
Response experiments_restore(Desk&, const Call&);
Response experiments_update(Desk&, const Call&);
Response experiments_set_tag(Desk&, const Call&);
Response experiments_delete_tag(Desk&, const Call&);

Response runs_create(Desk&, const Call&);
Response runs_get(Desk&, const Call&);
Response runs_update(Desk&, const Call&);
Response runs_delete(Desk&, const Call&);
Response runs_restore(Desk&, const Call&);
Response runs_set_tag(Desk&, const Call&);
Response runs_delete_tag(Desk&, const Call&);
Response runs_log_parameter(Desk&, const Call&);
Response runs_log_metric(Desk&, const Call&);
Response runs_log_batch(Desk&, const Call&);
Response runs_log_model(Desk&, const Call&);
Response runs_log_inputs(Desk&, const Call&);
Response runs_log_outputs(Desk&, const Call&);
Response runs_search(Desk&, const Call&);
Response metrics_history(Desk&, const Call&);
Response metrics_history_bulk(Desk&, const Call&);
Response metrics_history_bulk_interval(Desk&, const Call&);

// Of logged models what is said of them with a run's metrics (mlflow_models.cpp). Taken throws Refused if one of them
// is not there or an entry is not as it should be; noted they are with one change a model.
using ModelMetrics = std::map<std::string, std::vector<Json>>;  // by model
ModelMetrics take_model_metrics(Desk& desk, const std::vector<Args>& metrics);
void note_model_metrics(Desk& desk, const ModelMetrics& metrics);

Response server_info(Desk&, const Call&);
Response not_offered(Desk&, const Call&);

}  // namespace sinew::web
