#include <algorithm>
#include <set>

#include "base/cost_limit.h"
#include "web/mlflow.h"
#include "web/mlflow_limits.h"

namespace sinew::web {
namespace {

using store::Kind;
using store::RunState;

store::Point point_of(const Args& metric, const std::string& path) {
  const int64_t step = metric.integer("step", 0), time_ms = metric.integer("timestamp", 0);
  if (time_ms < 0) {
    refuse_invalid("Invalid value " + std::to_string(time_ms) + " for parameter '" + path +
                       "timestamp' supplied: Timestamp must be a nonnegative long (64-bit integer)",
                   "send milliseconds since 1970");
  }
  check_key(metric.text("key"), path + "name");
  const double value = metric.number("value");
  return {step, time_ms, value};
}

// Returns the changes that bring a run to the state `to`. MLflow's start_run(run_id=...) reopens a run that is over. If
// a run changes from one end state to another, it is "running" in between.
std::vector<store::Change> changes_to(const store::Record& run, RunState to, int64_t at_ms) {
  if (run.state == to) return {};
  std::vector<store::Change> changes;
  const bool was_over = store::is_over(run.state);
  if (was_over && store::is_over(to))
    changes.push_back(store::SetRunState{run.subject.id, RunState::kRunning, "", true});
  changes.push_back(store::SetRunState{run.subject.id, to, "", was_over && !store::is_over(to), at_ms});
  return changes;
}

// Deletes the run. Changes nothing if a client has deleted it before, unless the caller is an admin.
void delete_run(Context& context, const std::string& id) {
  change_record(context, {Kind::kRun, id}, [&](const store::Record& run) {
    if (run.hidden && !run.hidden_by.empty() && context.caller.role != Role::kAdmin) return store::Batch{};
    return store::Batch{{store::Update{run.subject, {}, {}, true}}};
  });
}

// Restores the run. A caller may restore a run that it deleted itself; only an admin may restore any other. A run of a
// deleted experiment cannot be restored.
void restore_run(Context& context, const std::string& id) {
  change_record(context, {Kind::kRun, id}, [&](const store::Record& run) {
    if (run.hidden && run.hidden_by != context.caller.name && context.caller.role != Role::kAdmin) {
      throw Refused(
          kForbidden,
          "run '" + id + "' was deleted by " +
              (run.hidden_by.empty() ? "the index, because its directory is gone" : "'" + run.hidden_by + "'") +
              "; restoring it requires the role admin",
          "ask an administrator");
    }
    store::Batch batch{{store::Update{run.subject, {}, {}, false}}};
    batch.active = {{Kind::kExperiment, run.parent}};
    return batch;
  });
}

// Writes to a run. The store refuses the write, in its transaction, if the run or its experiment is deleted.
void write_to_run(Context& context, const std::string& run, store::Batch batch) {
  batch.active = {{Kind::kRun, run}};
  context.write(std::move(batch));
}

constexpr const char* kModelHistoryTag = "mlflow.log-model.history";  // a JSON list

// Sets the tags. The tag kRunNameTag also sets the run's name.
store::Batch with_tags(const std::string& run, std::map<std::string, std::optional<std::string>> tags) {
  for (const auto& [key, value] : tags) check_tag(key);
  store::Batch batch;
  const auto name = tags.find(kRunNameTag);
  if (name != tags.end() && name->second) batch.changes.push_back(store::Update{{Kind::kRun, run}, *name->second});
  if (!tags.empty()) batch.changes.push_back(store::SetTags{{Kind::kRun, run}, std::move(tags)});
  return batch;
}

// The entries that a request adds to a list in the run's body.
struct NewInputs {
  InputList list;
  Json entries;
};

// Refuses entries that no run can keep, because they are larger than a record's body may be, before anything is done
// with them.
NewInputs parse_inputs(const Args& args, const char* from, const InputList& list) {
  constexpr size_t kMaxBytes = size_t{4} << 20U;
  NewInputs given{list, Json::array()};
  size_t bytes = 0;
  for (const Args& entry : args.objects(from)) {
    CostLimit::check_current();
    Json parsed = list.parse(entry);
    bytes += dump_json(parsed).size();
    if (bytes > kMaxBytes) {
      refuse_invalid("the entries of '" + std::string(from) + "' have more than " + std::to_string(kMaxBytes) +
                         " bytes together, and a run keeps no more",
                     "log fewer or smaller entries");
    }
    given.entries.push_back(std::move(parsed));
  }
  return given;
}

// Appends the entries in one change. If the run already has an entry, the entry stays as it is, including its tags, as
// in MLflow.
void append_inputs(Context& context, const std::string& run, const std::vector<NewInputs>& given) {
  change_record(context, {Kind::kRun, run}, [&](const store::Record& record) {
    const Json before = body_of(record);
    Json body = before;
    for (const NewInputs& some : given) {
      if (some.entries.empty()) continue;
      Json list = readable_inputs(body, some.list);
      std::set<InputIdentity> there;
      for (const Json& entry : list) there.insert(identity_of_input(entry));
      for (const Json& entry : some.entries) {
        CostLimit::check_current();
        if (there.insert(identity_of_input(entry)).second) list.push_back(entry);
      }
      body[some.list.name] = std::move(list);
    }
    store::Batch batch;
    if (body != before) batch.changes.push_back(store::Update{record.subject, {}, dump_json(body)});
    batch.active = {record.subject};
    return batch;
  });
}

}  // namespace

Response runs_create(Context& context, const Call& call) {
  const Args args(call);
  const std::string parent = args.text("experiment_id", "0");
  const store::Record experiment = context.require(Kind::kExperiment, parent);
  const std::string id = new_id(), name = args.text("run_name", ""), user = args.text("user_id", "");
  const std::string body = dump_json({{"user_id", user}});
  store::Create create{{Kind::kRun, id}, parent, name, body};
  create.tags = tags_of(args);
  const auto named = create.tags.find(kRunNameTag);
  if (create.name.empty())
    create.name = named != create.tags.end() ? named->second : "run-" + create.subject.id.substr(0, 8);
  create.tags[kRunNameTag] = create.name;
  create.begun_ms = args.integer("start_time", 0);
  const store::Subject subject = create.subject;
  store::Batch batch{{std::move(create)}};
  batch.active = {experiment.subject};
  context.write(std::move(batch));
  return json_response({{"run", run_json(context.require(Kind::kRun, subject.id), artifact_location(experiment))}});
}

Response runs_get(Context& context, const Call& call) {
  const store::Record run = context.require(Kind::kRun, run_of(Args(call)));
  return json_response({{"run", run_json(run, artifact_location_of_run(context, run))}});
}

Response runs_update(Context& context, const Call& call) {
  const Args args(call);
  const std::string id = run_of(args);
  const store::Record run = context.require(Kind::kRun, id);
  if (run.hidden) refuse_invalid("The run " + id + " must be in the 'active' state", "restore it first");
  store::Batch batch;
  if (args.has("run_name")) {
    const std::string name = args.text("run_name");
    if (!name.empty()) batch = with_tags(id, {{kRunNameTag, name}});
  }
  if (args.has("status")) {
    auto changes = changes_to(run, state_of_status(args.text("status")), args.integer("end_time", 0));
    std::move(changes.begin(), changes.end(), std::back_inserter(batch.changes));
  }
  if (!batch.changes.empty()) write_to_run(context, id, std::move(batch));
  const store::Record now = context.require(Kind::kRun, id);
  return json_response({{"run_info", run_info_json(now, artifact_location_of_run(context, now))}});
}

Response runs_delete(Context& context, const Call& call) {
  delete_run(context, run_of(Args(call)));
  return json_response(Json::object());
}

Response runs_restore(Context& context, const Call& call) {
  restore_run(context, run_of(Args(call)));
  return json_response(Json::object());
}

Response runs_set_tag(Context& context, const Call& call) {
  const Args args(call);
  const std::string id = run_of(args), key = args.text("key"), value = args.text("value", "");
  check_key(key, "key");
  write_to_run(context, id, with_tags(id, {{key, value}}));
  return json_response(Json::object());
}

Response runs_delete_tag(Context& context, const Call& call) {
  const Args args(call);
  const std::string id = args.text("run_id"), key = args.text("key");
  const store::Record run = context.require(Kind::kRun, id);
  if (!run.hidden && !run.tags.contains(key)) {  // if the run is deleted, the write below refuses it
    refuse_missing("No tag with name: " + key + " in run with id " + id);
  }
  write_to_run(context, id, with_tags(id, {{key, std::nullopt}}));
  return json_response(Json::object());
}

Response runs_log_parameter(Context& context, const Call& call) {
  const Args args(call);
  const std::string id = run_of(args), key = args.text("key"), value = args.text("value", "");
  check_key(key, "key");
  write_to_run(context, id, {{store::SetParams{{Kind::kRun, id}, {{key, value}}}}});
  return json_response(Json::object());
}

Response runs_log_metric(Context& context, const Call& call) {
  const Args args(call);
  const ModelMetrics of_models = parse_model_metrics(context, {args});
  const std::string id = run_of(args), key = args.text("key");
  const store::Point point = point_of(args, "");
  write_to_run(context, id, {{store::AddPoints{id, key, {point}}}});
  write_model_metrics(context, of_models);
  return json_response(Json::object());
}

Response runs_log_batch(Context& context, const Call& call) {
  const Args args(call);
  const std::string run = run_of(args);
  check_batch(args, call.request.body.size());
  const store::Labels tags = tags_of(args);
  store::Batch batch = with_tags(run, {tags.begin(), tags.end()});
  if (auto params = params_of(args); !params.empty()) {
    batch.changes.push_back(store::SetParams{{Kind::kRun, run}, std::move(params)});
  }
  std::map<std::string, std::vector<store::Point>> series;
  const std::vector<Args> metrics = args.objects("metrics");
  for (size_t i = 0; i < metrics.size(); ++i) {
    const store::Point point = point_of(metrics[i], "metrics[" + std::to_string(i) + "].");
    series[metrics[i].text("key")].push_back(point);
  }
  for (auto& [key, points] : series) batch.changes.push_back(store::AddPoints{run, key, std::move(points)});
  const ModelMetrics of_models = parse_model_metrics(context, metrics);
  write_to_run(context, run, std::move(batch));  // even an empty batch, because the store checks the run
  write_model_metrics(context, of_models);
  return json_response(Json::object());
}

// Older clients use this request to record a model among the run's artifacts. Newer ones create a logged model.
Response runs_log_model(Context& context, const Call& call) {
  const Args args(call);
  const std::string run = run_of(args);
  const Json model = parse_bounded(args.text("model_json"), "'model_json'");
  if (!model.is_object()) refuse_invalid("'model_json' is not a JSON object");
  change_record(context, {Kind::kRun, run}, [&](const store::Record& record) {
    const auto before = record.tags.find(kModelHistoryTag);
    Json history = before == record.tags.end()
                       ? Json::array()
                       : parse_bounded(before->second, std::string("the tag '") + kModelHistoryTag + "'");
    if (!history.is_array()) history = Json::array();
    history.push_back(model);
    const std::string text = dump_json(history);
    store::Batch batch{{store::SetTags{record.subject, {{kModelHistoryTag, text}}}}};
    batch.active = {record.subject};
    return batch;
  });
  return json_response(Json::object());
}

Response runs_log_inputs(Context& context, const Call& call) {
  const Args args(call);
  append_inputs(context, run_of(args),
                {parse_inputs(args, "datasets", kDatasetInputs), parse_inputs(args, "models", kModelInputs)});
  return json_response(Json::object());
}

Response runs_log_outputs(Context& context, const Call& call) {
  const Args args(call);
  append_inputs(context, run_of(args), {parse_inputs(args, "models", kModelOutputs)});
  return json_response(Json::object());
}

}  // namespace sinew::web
