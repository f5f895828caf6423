#include <algorithm>
#include <charconv>
#include <string>

#include "base/hex.h"
#include "base/json_text.h"
#include "web/mlflow.h"
#include "web/mlflow_limits.h"

namespace sinew::web {

using store::RunState;

Json body_of(const store::Record& record) {
  Json body = Json::parse(record.body, nullptr, false);
  return body.is_object() ? body : Json::object();
}

std::string run_of(const Args& args) {
  return args.has("run_id")                  ? args.text("run_id")
         : args.text("run_uuid", "").empty() ? args.text("run_id")
                                             : args.text("run_uuid");
}

Json labels_json(const store::Labels& labels) {
  Json list = Json::array();
  for (const auto& [key, value] : labels) list.push_back({{"key", key}, {"value", value}});
  return list;
}

std::string artifact_location(const store::Record& experiment) {
  const Json body = body_of(experiment);
  const auto given = body.find("artifact_location");
  if (given != body.end() && given->is_string() && !given->get_ref<const std::string&>().empty()) return *given;
  return "mlflow-artifacts:/" + experiment.subject.id;
}

std::string artifact_location_of_run(Context& context, const store::Record& run) {
  const auto experiment = context.store.find({store::Kind::kExperiment, run.parent, 0});
  return experiment ? artifact_location(*experiment) : "mlflow-artifacts:/" + run.parent;
}

int64_t updated_ms(const store::Record& record) {
  return std::max(record.begun_ms, record.changed_ms);
}

Json experiment_json(const store::Record& experiment) {
  return {{"experiment_id", experiment.subject.id},
          {"name", experiment.name.empty() ? experiment.subject.id : experiment.name},
          {"artifact_location", artifact_location(experiment)},
          {"lifecycle_stage", experiment.hidden ? "deleted" : "active"},
          {"last_update_time", updated_ms(experiment)},
          {"creation_time", experiment.begun_ms},
          {"tags", labels_json(experiment.tags)}};
}

const char* status_word(RunState state) {
  switch (state) {
    case RunState::kQueued:
    case RunState::kPaused: return "SCHEDULED";
    case RunState::kRunning: return "RUNNING";
    case RunState::kFinished: return "FINISHED";
    case RunState::kFailed: return "FAILED";
    case RunState::kStopped: return "KILLED";
  }
  return "RUNNING";
}

RunState state_of_status(const std::string& word) {
  if (word == "RUNNING" || word == "1") return RunState::kRunning;
  if (word == "SCHEDULED" || word == "2") return RunState::kQueued;
  if (word == "FINISHED" || word == "3") return RunState::kFinished;
  if (word == "FAILED" || word == "4") return RunState::kFailed;
  if (word == "KILLED" || word == "5") return RunState::kStopped;
  refuse_invalid("there is no run status '" + word + "'", "use one of RUNNING, SCHEDULED, FINISHED, FAILED, KILLED");
}

Json run_info_json(const store::Record& run, const std::string& location) {
  const std::string& id = run.subject.id;
  Json info{{"run_id", id}, {"run_uuid", id}, {"run_name", run.name}, {"experiment_id", run.parent}};
  info["user_id"] = text_or_empty(body_of(run), "user_id");
  info["status"] = status_word(run.state);
  info["start_time"] = run.begun_ms;
  if (store::is_over(run.state) && run.ended_ms != 0) info["end_time"] = run.ended_ms;
  info["artifact_uri"] = location + "/" + id + "/artifacts";
  info["lifecycle_stage"] = run.hidden ? "deleted" : "active";
  return info;
}

Json run_json(const store::Record& run, const std::string& location) {
  Json metrics = Json::array();
  for (const auto& [key, metric] : run.metrics) {
    metrics.push_back({{"key", key},
                       {"value", json_number(metric.last.value)},
                       {"timestamp", metric.last.time_ms},
                       {"step", metric.last.step}});
  }
  Json json{{"info", run_info_json(run, location)},
            {"data", {{"metrics", metrics}, {"params", labels_json(run.params)}, {"tags", labels_json(run.tags)}}}};
  const Json body = body_of(run);
  json["inputs"] = {{"dataset_inputs", readable_inputs(body, kDatasetInputs)},
                    {"model_inputs", readable_inputs(body, kModelInputs)}};
  json["outputs"] = {{"model_outputs", readable_inputs(body, kModelOutputs)}};
  return json;
}

std::string new_id() {
  return random_hex(16);
}

Page page_of(const Args& args, size_t all, int64_t default_size, int64_t max_size) {
  const int64_t size = args.integer("max_results", default_size, 1, max_size);
  const std::string token = args.text("page_token", "");
  uint64_t offset = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), offset);
  if (!token.empty() && (error != std::errc() || end != token.data() + token.size())) {
    refuse_invalid("the page_token is malformed", "start with the first page, without a token");
  }
  if (offset > kMaxOffset) refuse_invalid("the page_token is malformed", "start with the first page, without a token");
  Page page;
  page.first = std::min<size_t>(offset, all);
  page.last = std::min<size_t>(page.first + static_cast<size_t>(size), all);
  if (page.last < all) page.next = std::to_string(page.last);
  return page;
}

View view_of(const Args& args, const char* name) {
  const std::string word = args.text(name, "ACTIVE_ONLY");
  if (word == "ACTIVE_ONLY" || word == "1") return View::kActive;
  if (word == "DELETED_ONLY" || word == "2") return View::kDeleted;
  if (word == "ALL" || word == "3") return View::kAll;
  refuse_invalid(std::string("there is no ") + name + " '" + word + "'", "use one of ACTIVE_ONLY, DELETED_ONLY, ALL");
}

bool is_in(View view, bool hidden) {
  return view == View::kAll || hidden == (view == View::kDeleted);
}

std::vector<store::Record> all_records(Context& context, store::Kind kind) {
  return context.store.all({kind, {}, {}, true, false, 0, 5000});
}

store::Labels labels_of(const Args& args, const char* name) {
  store::Labels labels;
  for (const Args& label : args.objects(name)) labels[label.text("key")] = label.text("value", "");
  return labels;
}

store::Labels params_of(const Args& args) {
  store::Labels params;
  for (const Args& param : args.objects("params")) {
    const std::string key = param.text("key");
    check_key(key, "params[" + std::to_string(params.size()) + "].key");
    if (!params.emplace(key, param.text("value", "")).second) {
      refuse_invalid("Duplicate parameter keys have been submitted: '" + key + "'",
                     "send one value for each parameter");
    }
  }
  return params;
}

void check_tag(const std::string& key) {
  if (key.starts_with("sinew.")) refuse_invalid("the tag '" + key + "' is reserved for Sinew", "choose another name");
}

void refuse_prompt(const store::Labels& tags) {
  const auto tag = tags.find("mlflow.prompt.is_prompt");
  if (tag == tags.end() || (tag->second != "true" && tag->second != "True")) return;
  throw Refused(kNotOffered, "this server does not offer prompts",
                "keep prompts as files of a run, or on another server");
}

store::Labels tags_of(const Args& args, size_t max_value) {
  store::Labels tags = labels_of(args, "tags");
  for (const auto& [key, value] : tags) {
    check_tag(key);
    check_key(key, "tags.key");
    check_length(value, max_value, "value");
  }
  return tags;
}

store::SetTags tag_set(store::Subject subject, const Args& args, size_t max_value) {
  const std::string key = args.text("key"), value = args.text("value", "");
  check_tag(key);
  check_key(key, "key");
  check_length(value, max_value, "value");
  return {std::move(subject), {{key, value}}};
}

store::SetTags tag_removed(store::Subject subject, const Args& args) {
  const std::string key = args.text("key");
  check_tag(key);
  return {std::move(subject), {{key, std::nullopt}}};
}

void write_beside_others(Context& context, const store::Subject& subject, const std::function<void()>& attempt) {
  constexpr int kTries = 20;
  for (int i = 1;; ++i) {
    try {
      attempt();
      return;
    } catch (const Refused& refused) {
      if (refused.kind.code != kConflict.code) throw;  // after any other refusal, another attempt would fail as well
      if (i == kTries) {
        throw Refused(kBusyRecord,
                      std::string("too many clients change the ") + store::to_string(subject.kind) + " '" + subject.id +
                          "' at once: " + refused.what(),
                      "send the request again");
      }
    }
    // If all writers paused equally long, writers that meet once would meet again. So each pause is random. Its range
    // doubles with each attempt, up to 64 ms, because more attempts mean more writers.
    const double part = std::stoi(random_hex(2), nullptr, 16) / 65536.0;
    context.options.clock->sleep_seconds(part * 0.001 * (1 << std::min(i, 6)));
  }
}

void change_record(Context& context, const store::Subject& subject,
                   const std::function<store::Batch(const store::Record& record)>& batch_of) {
  write_beside_others(context, subject, [&] {
    // Read the number of the newest event before the record. Then the store notices a write between the two reads.
    const int64_t newest = context.store.newest_event(subject);
    store::Batch batch = batch_of(context.require(subject.kind, subject.id, subject.number));
    batch.unchanged = {{subject, newest}};
    context.write(std::move(batch));
  });
}

void change_body(Context& context, const store::Subject& subject, const std::function<void(Json& body)>& change) {
  change_record(context, subject, [&](const store::Record& record) {
    Json body = body_of(record);
    change(body);
    const std::string text = dump_json(body);
    return store::Batch{{store::Update{subject, {}, text}}};
  });
}

}  // namespace sinew::web
