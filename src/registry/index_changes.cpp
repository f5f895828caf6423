#include "registry/index_changes.h"

#include "base/json_text.h"
#include "registry/registry.h"
#include "rundir/rundir.h"

namespace sinew::registry {
namespace {

using nlohmann::json;
using store::RunState;

constexpr const char* kDied = "its process ended without a report";

std::string name_of(const RunFiles& files) {
  return clean_text(files.path.substr(files.path.rfind('/') + 1), 500);
}

// Returns the new body. Keeps the fields of the body `before` that other programs wrote; MLflow's client, for example,
// stores a run's inputs and outputs there.
std::string body_of(const RunFiles& files, const std::string& before) {
  json body = json::parse(before, nullptr, false);
  if (!body.is_object()) body = json::object();
  for (const char* own : {"environment", "data", "model", "problems", "report"}) body.erase(own);
  body["directory"] = clean_text(files.path, 4000);
  body["checkpoints"] = files.checkpoints;
  if (files.environment.is_object()) body["environment"] = files.environment;
  if (files.data.is_object()) {
    body["data"] = {{"digest", files.data.value("digest", json())}};
    const json splits = files.data.value("parts", json::object());
    for (const auto& [split, facts] : splits.items())
      if (facts.is_object()) body["data"][split] = facts.value("digest", json());
  }
  if (!files.model.empty()) body["model"] = files.model;
  if (!files.problems.empty()) body["problems"] = files.problems;
  if (files.outcome) {
    const rundir::Outcome& outcome = *files.outcome;
    json& out = body["report"] = {
        {"status", outcome.status}, {"exit_code", outcome.exit_code}, {"seconds", json_number(outcome.seconds)},
        {"steps", outcome.steps},   {"samples", outcome.samples},     {"epochs", json_number(outcome.epochs)}};
    if (outcome.best)
      out["best"] = {
          {"metric", outcome.best->metric}, {"value", json_number(outcome.best->value)}, {"step", outcome.best->step}};
    if (outcome.objective)
      out["objective"] = {{"text", outcome.objective->text},
                          {"met", outcome.objective->met},
                          {"value", json_number(outcome.objective->value)}};
    if (!outcome.hint.empty()) out["hint"] = outcome.hint;
  }
  return dump_json(body);
}

std::map<std::string, std::optional<std::string>> tags_of(const RunFiles& files) {
  std::map<std::string, std::optional<std::string>> tags;
  tags[kTagDirectory] = clean_text(files.path, 4000);
  tags[kTagStatus] = status_of(files).status;
  const auto set = [&](const char* tag, const std::string& text) {
    tags[tag] = text.empty() ? std::nullopt : std::optional(clean_text(text, 4000));
  };
  set(kTagDigest, files.outcome ? files.outcome->digest : "");
  set(kTagError, files.outcome ? files.outcome->error : "");
  return tags;
}

// Sets only the tags that differ, because each change adds an event.
void set_tags(const RunFiles& files, const store::Record& record, std::vector<store::Change>& changes) {
  store::SetTags set{record.subject, {}};
  for (const auto& [key, value] : tags_of(files)) {
    const auto it = record.tags.find(key);
    if (value ? it == record.tags.end() || it->second != *value : it != record.tags.end()) set.tags[key] = value;
  }
  if (!set.tags.empty()) changes.push_back(std::move(set));
}

// Moves the record to the state that the run's files show. An attempt can end only once, so this makes every move in
// between: each resume in the log ended one attempt and began the next.
void move(const RunFiles& files, const store::Record& record, int64_t resumes, std::vector<store::Change>& changes) {
  const RunStatus status = status_of(files);
  RunState state = record.state;
  for (int64_t attempt = record.attempt; attempt <= resumes; ++attempt) {
    if (!store::is_over(state))
      changes.push_back(store::SetRunState{record.subject.id, RunState::kFailed, kDied, false, 0});
    changes.push_back(store::SetRunState{record.subject.id, RunState::kRunning, "it was resumed", true, 0});
    state = RunState::kRunning;
  }
  if (state == status.state) return;
  // The record says that the run is over, but the lock is held. So the process has resumed the run and will soon write
  // this to the log.
  if (store::is_over(state) && !files.outcome) return;
  if (store::is_over(state))  // the directory was copied file by file, and the report came last
    changes.push_back(
        store::SetRunState{record.subject.id, RunState::kRunning, "its report shows another end", true, 0});
  changes.push_back(store::SetRunState{record.subject.id, status.state, status.why, false, status.ended_ms});
}

}  // namespace

RunStatus status_of(const RunFiles& files) {
  if (files.locked) return {};
  if (!files.outcome) return {RunState::kFailed, "interrupted", kDied, files.changed_ms};
  const rundir::Outcome& outcome = *files.outcome;
  const auto ended = static_cast<int64_t>((outcome.started_wall_seconds + outcome.seconds) * 1000);
  if (outcome.status == "done") return {RunState::kFinished, "done", "", ended};
  if (outcome.status == "stopped") return {RunState::kStopped, "stopped", "stopped; it can be resumed", ended};
  if (outcome.status == "budget") return {RunState::kStopped, "budget", "its budget is used up", ended};
  return {RunState::kFailed, "failed", clean_text(outcome.error, 4000), ended};
}

store::Create creation_of(const RunFiles& files, const std::string& experiment) {
  store::Create create;
  create.subject = {store::Kind::kRun, files.id};
  create.parent = experiment;
  create.name = name_of(files);
  create.params = files.params;
  create.body = body_of(files, "");
  create.begun_ms = std::max<int64_t>(files.begun_ms, 0);
  for (const auto& [key, value] : tags_of(files)) {
    if (value) create.tags[key] = *value;
  }
  return create;
}

std::vector<store::Change> changes_of(const RunFiles& files, const store::Record& record, int64_t resumes, bool gone) {
  std::vector<store::Change> changes;
  store::Update amend{record.subject, {}, {}, {}};
  if (const std::string body = body_of(files, record.body); body != record.body) amend.body = body;
  if (record.hidden && gone && record.hidden_by.empty()) amend.hidden = false;  // an admin may have deleted it since
  if (amend.body || amend.hidden) changes.push_back(std::move(amend));
  set_tags(files, record, changes);
  move(files, record, resumes, changes);
  return changes;
}

}  // namespace sinew::registry
