#include "task/task.h"

#include <iterator>
#include <nlohmann/json.hpp>

#include "base/disk.h"
#include "base/error.h"
#include "base/json_text.h"

namespace sinew::task {
namespace {

using Json = nlohmann::ordered_json;

// Each `fields` lists the fields of one kind of task. Both the writer and the reader of tasks use this list.
template <typename Visitor, typename Value>
void fields(Visitor&& visit, Value& task) requires std::same_as<std::remove_const_t<Value>, Group> {
  visit("coordinator_file", task.coordinator_file);
  visit("link_listen", task.link_listen);
  visit("link_advertise", task.link_advertise);
  visit("hang_seconds", task.hang_seconds);
  visit("local_workers", task.local_workers);
  visit("outlives_parent", task.outlives_parent);
}

template <typename Visitor, typename Value>
void fields(Visitor&& visit, Value& task) requires std::same_as<std::remove_const_t<Value>, Sandbox> {
  visit("hosts", task.hosts);
  visit("memory_bytes", task.memory_bytes);
}

template <typename Visitor, typename Value>
void fields(Visitor&& visit, Value& task) requires std::same_as<std::remove_const_t<Value>, Train> {
  visit("job", task.job);
  visit("job_text", task.job_text);
  visit("overrides", task.overrides);
  visit("run_directory", task.run_directory);
  visit("resume", task.resume);
  visit("ledger", task.ledger);
  visit("json_log", task.json_log);
  visit("decide", task.decide);
  visit("activity_board", task.activity_board);
}

template <typename Visitor, typename Value>
void fields(Visitor&& visit, Value& task) requires std::same_as<std::remove_const_t<Value>, Evaluate> {
  visit("model", task.model);
  visit("split", task.split);
  visit("overrides", task.overrides);
  visit("json", task.json);
}

template <typename Visitor, typename Value>
void fields(Visitor&& visit, Value& task) requires std::same_as<std::remove_const_t<Value>, Predict> {
  visit("model", task.model);
  visit("data", task.data);
  visit("output", task.output);
  visit("format", task.format);
}

template <typename Visitor, typename Value>
void fields(Visitor&& visit, Value& part) requires std::same_as<std::remove_const_t<Value>, Generation> {
  visit("prompt", part.prompt);
  visit("max_tokens", part.max_tokens);
  visit("top_k", part.top_k);
  visit("seed", part.seed);
  visit("temperature", part.temperature);
}

template <typename Visitor, typename Value>
void fields(Visitor&& visit, Value& task) requires std::same_as<std::remove_const_t<Value>, Export> {
  visit("model", task.model);
  visit("format", task.format);
  visit("output", task.output);
}

template <typename Visitor, typename Value>
void fields(Visitor&& visit, Value& task) requires std::same_as<std::remove_const_t<Value>, Inspect> {
  visit("file", task.file);
  visit("overrides", task.overrides);
}

template <typename Visitor, typename Value>
void fields(Visitor&& visit, Value& task) requires std::same_as<std::remove_const_t<Value>, Check> {
  visit("job", task.job);
  visit("overrides", task.overrides);
  visit("json", task.json);
  visit("seconds", task.seconds);
}

template <typename Visitor, typename Value>
void fields(Visitor&& visit, Value& task) requires std::same_as<std::remove_const_t<Value>, Plan> {
  visit("job", task.job);
  visit("overrides", task.overrides);
  visit("json", task.json);
  visit("seconds", task.seconds);
  visit("price", task.price);
  visit("within_seconds", task.within_seconds);
  visit("spend", task.spend);
  visit("retrain_seconds", task.retrain_seconds);
  visit("samples_per_day", task.samples_per_day);
  visit("machines", task.machines);
}

template <typename Visitor, typename Value>
void fields(Visitor&& visit, Value& task) requires std::same_as<std::remove_const_t<Value>, Advise> {
  visit("job", task.job);
  visit("overrides", task.overrides);
  visit("json", task.json);
  visit("seconds", task.seconds);
  visit("apply", task.apply);
  visit("change_result", task.change_result);
  visit("output", task.output);
}

template <typename Visitor, typename Value>
void fields(Visitor&& visit, Value& task) requires std::same_as<std::remove_const_t<Value>, FindRate> {
  visit("job", task.job);
  visit("overrides", task.overrides);
  visit("json", task.json);
  visit("lowest", task.lowest);
  visit("highest", task.highest);
  visit("steps", task.steps);
  visit("plot", task.plot);
}

// in the order of Task
constexpr const char* kKinds[] = {"train",  "evaluate", "predict", "inspect",  "check",
                                  "export", "plan",     "advise",  "find_rate"};
static_assert(std::size(kKinds) == std::variant_size_v<Task>);

template <typename Value>
Json written(const Value& task) {
  Json json;
  fields([&](const char* name, const auto& value) { json[name] = value; }, task);
  return json;
}

template <typename Value>
Value read_fields(const Json& json) {
  Value task;
  fields([&](const char* name, auto& value) { json.at(name).get_to(value); }, task);
  return task;
}

// Calls `visit` for each optional part of a task, with its name.
template <typename Value, typename Visitor>
void parts(Value& task, Visitor&& visit) {
  if constexpr (requires { task.group; }) visit("group", task.group);
  if constexpr (requires { task.sandbox; }) visit("sandbox", task.sandbox);
  if constexpr (requires { task.generation; }) visit("generation", task.generation);
}

template <size_t Index = 0>
Task read_kind(const std::string& kind, const Json& json) {
  if constexpr (Index == std::variant_size_v<Task>) {
    throw Error("TASK_UNKNOWN", "the task '" + kind + "' is unknown to this sinew-worker",
                "install sinew and sinew-worker from the same version");
  } else {
    if (kind == kKinds[Index]) return read_fields<std::variant_alternative_t<Index, Task>>(json);
    return read_kind<Index + 1>(kind, json);
  }
}

}  // namespace

std::string to_json(const Task& task) {
  Json json = {{"version", kVersion}, {"task", kKinds[task.index()]}};
  std::visit(
      [&](const auto& one) {
        json.update(written(one));
        parts(one, [&](const char* name, const auto& part) {
          if (part) json[name] = written(*part);
        });
      },
      task);
  return dump_json(json) + "\n";
}

Task parse(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  const bool versioned = json.is_object() && json.contains("version") && json["version"].is_number_integer();
  if (!versioned)
    throw Error("TASK_UNREADABLE",
                text.empty() ? "sinew-worker was started without a task" : "what sinew-worker was given is not a task",
                "use the program sinew: sinew train JOB");
  if (json["version"] != kVersion)
    throw Error("TASK_VERSION",
                "sinew wrote version " + json["version"].dump() + " of a task, and this sinew-worker reads version " +
                    std::to_string(kVersion),
                "install sinew and sinew-worker from the same version");
  try {
    Task task = read_kind(json.at("task").get<std::string>(), json);
    std::visit(
        [&](auto& one) {
          parts(one, [&](const char* name, auto& part) {
            if (json.contains(name))
              part = read_fields<typename std::remove_reference_t<decltype(part)>::value_type>(json[name]);
          });
        },
        task);
    return task;
  } catch (const nlohmann::json::exception& error) {
    throw Error("TASK_UNREADABLE", std::string("the task cannot be read: ") + error.what(),
                "install sinew and sinew-worker from the same version");
  }
}

Task read(const std::string& path) {
  std::string text;
  try {
    text = read_text(system_disk(), path);
  } catch (const DiskError& error) {
    throw Error("TASK_UNREADABLE", std::string("sinew-worker cannot read its task: ") + error.what(),
                "use the program sinew: sinew train JOB; it must live until its worker has started");
  }
  return parse(text);
}

}  // namespace sinew::task
