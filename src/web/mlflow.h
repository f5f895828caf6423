// Inside web/: implements MLflow's REST API on the store, for MLflow's current client.
//
// MLflow's experiments and runs are the experiments and runs of the store, whichever program made them. So MLflow's
// client also finds the runs that Sinew trained. If the store has no field for some data of MLflow (a user, inputs, a
// description), the record's body holds it.
#pragma once

#include <functional>
#include <set>

#include "base/json_fields.h"
#include "web/args.h"
#include "web/context.h"
#include "web/filter.h"

namespace sinew::web {

// ---- MLflow's formats (mlflow_json.cpp) ----------------------------------------------------------------------------

constexpr const char* kRunNameTag = "mlflow.runName";

Json body_of(const store::Record& record);  // returns an object, even if the record's body is not an object
std::string run_of(const Args& args);       // reads run_id, or run_uuid, which old clients send
Json labels_json(const store::Labels& labels);
std::string artifact_location(const store::Record& experiment);
std::string artifact_location_of_run(Context& context, const store::Record& run);
// Returns when an experiment, model or version was changed last.
int64_t updated_ms(const store::Record& record);
Json experiment_json(const store::Record& experiment);
Json run_info_json(const store::Record& run, const std::string& location);
Json run_json(const store::Record& run, const std::string& location);
const char* status_word(store::RunState state);            // kStopped is "KILLED"
store::RunState state_of_status(const std::string& word);  // takes a word or a number, as enums in JSON may be either
std::string new_id();                                      // 32 hex digits

// ---- the data sets and models of a run (mlflow_inputs.cpp) ----------------------------------------------------------

// Return the entry with its known fields only. Throw Refused if a field has a wrong type or a required field is
// missing.
Json dataset_input_of(const Args& given);
Json model_input_of(const Args& given);
Json model_output_of(const Args& given);
// One of the lists in a run's body that hold its data sets and models.
struct InputList {
  const char* name;
  Json (*parse)(const Args& given);
};
inline constexpr InputList kDatasetInputs{"dataset_inputs", dataset_input_of},
    kModelInputs{"model_inputs", model_input_of}, kModelOutputs{"model_outputs", model_output_of};
// Returns what tells an entry from the others of its list: a run keeps only one entry with an identity. Data sets with
// the same name and digest are the same.
using InputIdentity = std::pair<std::string, std::string>;
InputIdentity identity_of_input(const Json& entry);
// Returns the well-formed entries of the list.
Json readable_inputs(const Json& body, const InputList& list);

// ---- pages, views and labels (mlflow_json.cpp) ----------------------------------------------------------------------

// One page of `all` records. `next` is the token of the next page; the last page has none.
struct Page {
  size_t first = 0, last = 0;
  std::string next;
};
inline constexpr size_t kMaxOffset = 1'000'000'000'000;  // more records than any store has
Page page_of(const Args& args, size_t all, int64_t default_size, int64_t max_size);
enum class View { kActive, kDeleted, kAll };
View view_of(const Args& args, const char* name);
bool is_in(View view, bool hidden);
// Returns all records of this kind, including hidden ones, so that a filter can select from them.
std::vector<store::Record> all_records(Context& context, store::Kind kind);
store::Labels labels_of(const Args& args, const char* name);
// Returns all of "params". Refuses a key that occurs twice, even with equal values: no parameter may change, so neither
// value may replace the other.
store::Labels params_of(const Args& args);
// Refuses to set or remove a tag of Sinew's own. These tags record a run's directory, the decision about a promotion,
// and the kind of a record.
void check_tag(const std::string& key);
// Refuses the tag by which MLflow's client makes a prompt of a registered model or a version. This server offers no
// prompts, and they would appear among the models.
void refuse_prompt(const store::Labels& tags);
// Returns all of "tags" after checking them. `max_value` is the most characters of a value.
store::Labels tags_of(const Args& args, size_t max_value = SIZE_MAX);
// Returns the change that sets the tag "key" to "value", after checking both.
store::SetTags tag_set(store::Subject subject, const Args& args, size_t max_value = SIZE_MAX);
store::SetTags tag_removed(store::Subject subject, const Args& args);
// Calls `attempt`, which reads and then writes. If another writer has changed the record after the read, calls
// `attempt` again after a random pause. After too many attempts it refuses with status 503, because nothing is wrong
// with the request: MLflow's client repeats a request that gets 503, but gives up after a 409.
void write_beside_others(Context& context, const store::Subject& subject, const std::function<void()>& attempt);
// Reads the record and writes the batch that `batch_of` makes from it. If another writer changes the record after the
// read, reads and writes again.
void change_record(Context& context, const store::Subject& subject,
                   const std::function<store::Batch(const store::Record& record)>& batch_of);
// Changes the record's body in the same way.
void change_body(Context& context, const store::Subject& subject, const std::function<void(Json& body)>& change);

// ---- routes (routes.cpp lists their paths) -------------------------------------------------------------------------

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

// The metrics of logged models that a request logs together with a run's metrics, by model (mlflow_models.cpp).
using ModelMetrics = std::map<std::string, std::vector<Json>>;
// Throws Refused if a model does not exist or an entry is malformed.
ModelMetrics parse_model_metrics(Context& context, const std::vector<Args>& metrics);
void write_model_metrics(Context& context, const ModelMetrics& metrics);  // makes one change for each model

Response server_info(Context&, const Call&);
Response not_offered(Context&, const Call&);

}  // namespace sinew::web
