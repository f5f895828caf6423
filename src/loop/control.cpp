#include "loop/control.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/json_text.h"
#include "base/number_text.h"

namespace sinew::loop {

std::string to_string(ControlEntry::Kind kind) {
  switch (kind) {
    case ControlEntry::Kind::stop: return "stop";
    case ControlEntry::Kind::checkpoint: return "checkpoint";
    case ControlEntry::Kind::evaluate: return "evaluate";
    case ControlEntry::Kind::learning_rate: return "learning_rate";
    case ControlEntry::Kind::batch_size: return "batch_size";
    case ControlEntry::Kind::max_duration: return "max_duration";
    case ControlEntry::Kind::schedule_steps: return "schedule_steps";
    case ControlEntry::Kind::experiment: return "experiment";
    case ControlEntry::Kind::checkpoint_interval: return "checkpoint_interval";
    case ControlEntry::Kind::checkpoint_steps: return "checkpoint_steps";
    case ControlEntry::Kind::loader_threads: return "loader_threads";
  }
  return "";
}

std::optional<ControlEntry::Kind> control_kind(std::string_view name) {
  using Kind = ControlEntry::Kind;
  for (const Kind kind : {Kind::stop, Kind::checkpoint, Kind::evaluate, Kind::learning_rate, Kind::batch_size,
                          Kind::max_duration, Kind::schedule_steps, Kind::experiment, Kind::checkpoint_interval,
                          Kind::checkpoint_steps, Kind::loader_threads}) {
    if (to_string(kind) == name) return kind;
  }
  return std::nullopt;
}

std::string to_text(const ControlEntry& entry) {
  using Kind = ControlEntry::Kind;
  if (entry.kind == Kind::checkpoint_interval) return "checkpoint.interval " + rounded_text(entry.value, 4) + " s";
  if (entry.kind == Kind::checkpoint_steps) return "checkpoint.interval " + rounded_text(entry.value, 9) + " steps";
  if (entry.kind == Kind::loader_threads) return "data.prefetch.threads " + rounded_text(entry.value, 9);
  return to_string(entry.kind);
}

std::string reason_of_request(const ControlEntry& request) {
  if (request.reason.find_first_not_of(' ') != std::string::npos) return request.reason;
  return request.kind == ControlEntry::Kind::stop ? "stopped by a user's request" : "a user's request";
}

namespace {

constexpr int kMessageFormat = 1;

nlohmann::json list_of(const std::vector<ControlEntry>& entries) {
  nlohmann::json list = nlohmann::json::array();
  for (const ControlEntry& entry : entries) {
    list.push_back({{"step", entry.effective.value},
                    {"kind", to_string(entry.kind)},
                    {"value", entry.value},
                    {"reason", entry.reason},
                    {"done", entry.done}});
    if (entry.request > 0) list.back()["request"] = entry.request;
  }
  return list;
}

// Throws exceptions of the JSON library, also if a value is not finite: JSON has no such number.
std::vector<ControlEntry> entries_in(const nlohmann::json& list) {
  std::vector<ControlEntry> entries;
  for (const auto& item : list) {
    const auto kind = control_kind(item.at("kind").get<std::string>());
    if (!kind)
      throw Error("TRAIN_CONTROL_LOG_INVALID", "the control log has an entry of an unknown kind: " + item.dump(), "");
    ControlEntry entry;  // filled field by field: g++ 12 destroys members twice when an initialiser in braces throws
    entry.effective = Step(item.at("step"));
    entry.kind = *kind;
    entry.value = item.at("value");
    entry.reason = item.at("reason");
    entry.done = item.value("done", false);
    entry.request = item.value("request", int64_t{0});
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

std::string entries_json(const std::vector<ControlEntry>& entries) {
  return dump_json(list_of(entries));
}

std::vector<ControlEntry> entries_of_json(const std::string& text) {
  try {
    return entries_in(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    throw Error("TRAIN_CONTROL_LOG_INVALID", std::string("the control log cannot be read: ") + error.what(),
                "another version of Sinew wrote it: use that version");
  }
}

std::string to_text(const StepMessage& message) {
  nlohmann::json document = {{"format", kMessageFormat}, {"learning_rate", json_number(message.learning_rate)}};
  if (!message.entries.empty()) document["entries"] = list_of(message.entries);
  return dump_json(document);
}

StepMessage step_message_of(const std::string& text) {
  const auto invalid = [&](const std::string& why, const std::string& hint) {
    return Error("TRAIN_CONTROL_MESSAGE_INVALID", "the control message of a step cannot be used: " + why, hint);
  };
  const std::string other_version = "run the same version of sinew on all members";
  try {
    const auto document = nlohmann::json::parse(text);
    if (document.at("format") != kMessageFormat) throw invalid("its format is unknown", other_version);
    const auto& rate = document.at("learning_rate");
    if (!rate.is_number())
      throw invalid("its learning rate is " + rate.dump(), "lower optimizer.lr, or the factor that was requested");
    StepMessage message;
    message.learning_rate = rate;
    if (document.contains("entries")) message.entries = entries_in(document.at("entries"));
    return message;
  } catch (const nlohmann::json::exception& error) {
    throw invalid(error.what(), other_version);
  }
}

void ControlLog::append(ControlEntry entry) {
  entries_.push_back(std::move(entry));
}

std::vector<ControlEntry> ControlLog::apply(Step step) {
  std::vector<ControlEntry> found;
  for (ControlEntry& entry : entries_) {
    if (entry.effective != step || entry.done || entry.kind == ControlEntry::Kind::stop) continue;
    found.push_back(entry);
    entry.done = true;
  }
  return found;
}

int64_t ControlLog::newest_request() const {
  int64_t newest = 0;
  for (const ControlEntry& entry : entries_) newest = std::max(newest, entry.request);
  return newest;
}

std::optional<ControlEntry> ControlLog::stop_at(Step step) const {
  std::optional<ControlEntry> found;
  for (const ControlEntry& entry : entries_) {
    if (entry.effective == step && entry.kind == ControlEntry::Kind::stop) found = entry;
  }
  return found;
}

void ControlLog::resume_at(Step step) {
  for (ControlEntry& entry : entries_) entry.request = 0;  // each attempt numbers requests from one
  std::erase_if(entries_, [&](const ControlEntry& entry) {
    using Kind = ControlEntry::Kind;
    const bool unmade = (entry.kind == Kind::evaluate || entry.kind == Kind::experiment) && !entry.done;
    const bool of_attempt = entry.kind == Kind::checkpoint_interval || entry.kind == Kind::checkpoint_steps ||
                            entry.kind == Kind::loader_threads;
    return of_attempt || ((entry.kind == Kind::stop || unmade) && entry.effective >= step);
  });
}

const ControlEntry* ControlLog::newest_of(std::initializer_list<ControlEntry::Kind> kinds, Step step) const {
  const ControlEntry* found = nullptr;
  for (const ControlEntry& entry : entries_) {
    if (std::ranges::find(kinds, entry.kind) != kinds.end() && entry.effective <= step) found = &entry;
  }
  return found;
}

std::optional<double> ControlLog::newest(ControlEntry::Kind kind, Step step) const {
  const ControlEntry* found = newest_of({kind}, step);
  return found != nullptr ? std::optional(found->value) : std::nullopt;
}

double ControlLog::learning_rate_factor(Step step) const {
  return newest(ControlEntry::Kind::learning_rate, step).value_or(1.0);
}

int64_t ControlLog::batch_size(Step step, int64_t from_job) const {
  const auto found = newest(ControlEntry::Kind::batch_size, step);
  return found ? static_cast<int64_t>(*found) : from_job;
}

std::optional<int64_t> ControlLog::loader_threads(Step step) const {
  const auto found = newest(ControlEntry::Kind::loader_threads, step);
  return found ? std::optional(static_cast<int64_t>(*found)) : std::nullopt;
}

std::optional<ControlEntry> ControlLog::checkpoint_interval(Step step) const {
  using Kind = ControlEntry::Kind;
  const ControlEntry* found = newest_of({Kind::checkpoint_interval, Kind::checkpoint_steps}, step);
  return found != nullptr ? std::optional(*found) : std::nullopt;
}

std::optional<int64_t> ControlLog::schedule_steps(Step step) const {
  const auto found = newest(ControlEntry::Kind::schedule_steps, step);
  return found ? std::optional(static_cast<int64_t>(*found)) : std::nullopt;
}

bool ControlLog::changes_batch_size() const {
  return std::ranges::any_of(entries_,
                             [](const ControlEntry& entry) { return entry.kind == ControlEntry::Kind::batch_size; });
}

std::string ControlLog::digest_text(Step up_to) const {
  std::string text;
  for (const ControlEntry& entry : entries_) {
    const bool changes_numbers = entry.kind == ControlEntry::Kind::learning_rate ||
                                 entry.kind == ControlEntry::Kind::batch_size ||
                                 entry.kind == ControlEntry::Kind::schedule_steps;
    if (!changes_numbers || entry.effective >= up_to) continue;  // an entry at step t first affects state t + 1
    char line[96];
    std::snprintf(line, sizeof line, "%lld %s %a\n", static_cast<long long>(entry.effective.value),
                  to_string(entry.kind).c_str(), entry.value);
    text += line;
  }
  return text;
}

}  // namespace sinew::loop
