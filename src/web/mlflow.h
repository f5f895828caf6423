// MLflow's REST API over the store: what its current client asks for, answered as it expects it.
//
// An experiment and a run are the store's, whoever made them; so runs that Sinew trained are found by the client, too.
// Where MLflow keeps more than the store has words for (a user, inputs, a stage) it stands in the record's body.
#pragma once

#include <set>

#include "web/args.h"
#include "web/context.h"
#include "web/filter.h"

namespace sinew::web {

// ---- how things are written (mlflow_json.cpp) ----------------------------------------------------------------------

constexpr const char* kRunNameTag = "mlflow.runName";

Json body_of(const store::Record& record);               // an object, whatever stands there
std::string text_of(const Json& body, const char* key);  // empty: none
std::string run_of(const Args& args);                    // the client says run_id, old ones run_uuid
Json labels_json(const store::Labels& labels);
std::string artifact_location(const store::Record& experiment);
std::string artifact_location_of_run(Context& context, const store::Record& run);
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
std::vector<store::Record> all_records(Context& context, store::Kind kind);
store::Labels labels_of(const Args& args, const char* name);
// Tags of Sinew's own say where a run's directory is, what decided a promotion, what kind of thing a record is; nobody
// outside may set or remove one. Throws Refused.
void judge_tag(const std::string& key);
store::Labels tags_of(const Args& args);                           // all of "tags", judged
store::SetTags tag_set(store::Subject subject, const Args& args);  // to "value" what "key" names, likewise
store::SetTags tag_removed(store::Subject subject, const Args& args);
// Writes what `batch_of` makes of the record; again of what it is then, if somebody else wrote it meanwhile.
void change_record(Context& context, const store::Subject& subject,
                   const std::function<store::Batch(const store::Record& record)>& batch_of);
// The same for its body alone.
void change_body(Context& context, const store::Subject& subject, const std::function<void(Json& body)>& change);

// ---- routes (routes.cpp has them by path) --------------------------------------------------------------------------

using http::Response;
Response experiments_create(Context&, const Call&);
Response experiments_get(Context&, const Call&);
Response experiments_get_by_name(Context&, const Call&);
Response experiments_search(Context&, const Call&);
Response experiments_delete(Context&, const Call&);
Response experiments_restore(Context&, const Call&);
Response experiments_update(Context&, const Call&);
Response experiments_set_tag(Context&, const Call&);
Response experiments_delete_tag(Context&, const Call&);

Response runs_create(Context&, const Call&);
Response runs_get(Context&, const Call&);
Response runs_update(Context&, const Call&);
Response runs_delete(Context&, const Call&);
Response runs_restore(Context&, const Call&);
Response runs_set_tag(Context&, const Call&);
Response runs_delete_tag(Context&, const Call&);
Response runs_log_parameter(Context&, const Call&);
Response runs_log_metric(Context&, const Call&);
Response runs_log_batch(Context&, const Call&);
Response runs_log_model(Context&, const Call&);
Response runs_log_inputs(Context&, const Call&);
Response runs_log_outputs(Context&, const Call&);
Response runs_search(Context&, const Call&);
Response metrics_history(Context&, const Call&);
Response metrics_history_bulk(Context&, const Call&);
Response metrics_history_bulk_interval(Context&, const Call&);

// Of logged models what is said of them with a run's metrics (mlflow_models.cpp). Taken throws Refused if one of them
// is not there or an entry is not as it should be; noted they are with one change a model.
using ModelMetrics = std::map<std::string, std::vector<Json>>;  // by model
ModelMetrics take_model_metrics(Context& context, const std::vector<Args>& metrics);
void note_model_metrics(Context& context, const ModelMetrics& metrics);

Response server_info(Context&, const Call&);
Response not_offered(Context&, const Call&);

}  // namespace sinew::web
