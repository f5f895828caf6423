#include "jobs/rank_context.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/number_text.h"

namespace sinew::jobs {
namespace {

using spec::NamedValue;

std::string upper(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return text;
}

// Returns a JSON object like {"lr": 0.1, "kind": "small"}: numbers and flags keep their type, other values become
// strings.
std::string as_json(const std::vector<NamedValue>& values) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const NamedValue& value : values) {
    const auto parsed = value.kind == NamedValue::Kind::text
                            ? nlohmann::ordered_json()
                            : nlohmann::ordered_json::parse(value.value, nullptr, false);
    json[value.name] = parsed.is_number() || parsed.is_boolean() ? parsed : nlohmann::ordered_json(value.value);
  }
  return dump_json(json);
}

}  // namespace

std::vector<std::string> command_of(const spec::Job& job) {
  std::vector<std::string> words;
  for (const std::string& word : job.command.words) words.push_back(spec::fill_in(word, job.command.params));
  return words;
}

std::map<std::string, std::string> environment_of(const spec::Job& job, const RankContext& context,
                                                  const std::map<std::string, std::string>& base) {
  const spec::CommandOptions& command = job.command;
  std::map<std::string, std::string> all = base;
  // This sinew process may run inside an attempt of another one, whose variables it must not pass on.
  std::erase_if(all,
                [](const auto& entry) { return entry.first.starts_with("SINEW_") && entry.first != "SINEW_SERVER"; });
  all.emplace("PYTHONUNBUFFERED", "1");  // without it Python delays the lines that it writes to a pipe
  const double cpus = command.resources.cpus;
  if (cpus > 0) {
    const double share = std::max(1.0, std::floor(cpus / static_cast<double>(command.resources.nproc)));
    all["OMP_NUM_THREADS"] = std::to_string(static_cast<int64_t>(share));
  }
  all["MASTER_ADDR"] = "127.0.0.1";
  all["MASTER_PORT"] = std::to_string(context.master_port);
  for (const NamedValue& variable : command.env) all[variable.name] = spec::fill_in(variable.value, command.params);

  const std::string rank = std::to_string(context.rank), size = std::to_string(command.resources.nproc);
  all["RANK"] = all["LOCAL_RANK"] = rank;
  all["WORLD_SIZE"] = all["LOCAL_WORLD_SIZE"] = size;
  all["SINEW_JOB_ID"] = context.mark;
  all["SINEW_JOB_NAME"] = job.name;
  all["SINEW_RUN_DIR"] = context.run_directory;
  all["SINEW_ATTEMPT"] = std::to_string(context.attempt);
  all["SINEW_CHECKPOINT_DIR"] = context.run_directory + "/checkpoints";
  if (!context.resume_from.empty()) all["SINEW_RESUME_FROM"] = context.resume_from;
  all["SINEW_METRICS_FILE"] = context.metrics_file;
  all["SINEW_GRACE_SECONDS"] = rounded_text(command.grace_seconds);
  all["SINEW_PARAMS"] = as_json(command.params);
  for (const NamedValue& param : command.params) all["SINEW_PARAM_" + upper(param.name)] = param.value;
  if (!context.server.empty()) {
    all["SINEW_SERVER"] = all["MLFLOW_TRACKING_URI"] = context.server;
    if (!context.run_id.empty()) all["MLFLOW_RUN_ID"] = context.run_id;
    all["MLFLOW_EXPERIMENT_NAME"] = job.name;
  }
  return all;
}

}  // namespace sinew::jobs
