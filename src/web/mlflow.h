// Inside web/: MLflow's REST API over the store, for MLflow's current client.
//
// The experiments and runs of MLflow are those of the store, whichever program made them, so MLflow's client also finds
// the runs that Sinew trained. Data of MLflow for which the store has no field (a user, inputs, a description) is in
// the record's body.
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

Json body_of(const store::Record& record);  // an object, even if the record's body is not one
std::string run_of(const Args& args);       // run_id, or run_uuid as old clients send
Json labels_json(const store::Labels& labels);
std::string artifact_location(const store::Record& experiment);
std::string artifact_location_of_run(Context& context, const store::Record& run);
// Returns when an experiment, model or version was changed last.
int64_t updated_ms(const store::Record& record);
Json experiment_json(const store::Record& experiment);
Json run_info_json(const store::Record& run, const std::string& location);
Json run_json(const store::Record& run, const std::string& location);
const char* status_word(store::RunState state);            // kStopped is "KILLED"
store::RunState state_of_status(const std::string& word);  // a word or a number, as JSON enums may be either
std::string new_id();                                      // 32 hex digits

// ---- the data sets and models of a run (mlflow_inputs.cpp)
// -----------------------------------------------------------

// Return the entry with its known fields only. Throw Refused if one has a wrong type or a required one is missing.
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
// Returns whether a run keeps only one of these entries. Data sets are the same if their names and digests are.
bool is_same_input(const Json& a, const Json& b);
// Returns the well-formed entries of the list.
Json readable_inputs(const Json& body, const InputList& list);

// ---- pages, views and labels (mlflow_json.cpp)
// -----------------------------------------------------------------------

// One page of `all` records, and the token of the next page, which is empty for the last page.
struct Page {
  size_t first = 0, last = 0;
  std::string next;
};
inline constexpr size_t kMaxOffset = 1'000'000'000'000;  // more records than any store has
Page page_of(const Args& args, size_t all, int64_t default_size, int64_t max_size);
enum class View { kActive, kDeleted, kAll };
View view_of(const Args& args, const char* name);
bool is_in(View view, bool hidden);
// Returns all records of that kind, hidden ones included, for a filter to select from.
std::vector<store::Record> all_records(Context& context, store::Kind kind);
store::Labels labels_of(const Args& args, const char* name);
// Returns all of "params". Refuses a key that occurs twice, even with equal values: a parameter cannot be changed, so
// neither of two values may win.
store::Labels params_of(const Args& args);
// Refuses to set or remove one of Sinew's own tags, which record a run's directory, the decision about a promotion, and
// the kind of a record.
void check_tag(const std::string& key);
// Refuses a tag by which MLflow's client makes a prompt of a registered model or of a version: this server offers no
// prompts, and a prompt would appear among the models.
void refuse_prompt(const store::Labels& tags);
// All of "tags", checked. `max_value`: characters of a value.
store::Labels tags_of(const Args& args, size_t max_value = SIZE_MAX);
// Sets the tag "key" to "value", checked.
store::SetTags tag_set(store::Subject subject, const Args& args, size_t max_value = SIZE_MAX);
store::SetTags tag_removed(store::Subject subject, const Args& args);
// Repeats the attempt, which reads and then writes, while another writer changes the record between the two. Each pause
// before a repetition is random. When the attempts are used up, refuses with status 503: nothing is wrong with the
// request, and MLflow's client repeats a request with this status by itself, but gives up after a 409.
void write_beside_others(Context& context, const store::Subject& subject, const std::function<void()>& attempt);
// Reads the record and writes the batch that `batch_of` makes from it. Repeats both steps if another writer has changed
// the record meanwhile.
void change_record(Context& context, const store::Subject& subject,
                   const std::function<store::Batch(const store::Record& record)>& batch_of);
// Changes the record's body, by change_record.
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

// The metrics of logged models that arrive together with a run's metrics, by model (mlflow_models.cpp).
using ModelMetrics = std::map<std::string, std::vector<Json>>;
// Throws Refused if a model does not exist or an entry is malformed.
ModelMetrics parse_model_metrics(Context& context, const std::vector<Args>& metrics);
void write_model_metrics(Context& context, const ModelMetrics& metrics);  // one change for each model

Response server_info(Context&, const Call&);
Response not_offered(Context&, const Call&);

}  // namespace sinew::web
