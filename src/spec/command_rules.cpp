// Checks the rules between the options of a job that runs a command instead of a training.
#include <algorithm>
#include <set>

#include "spec/options.h"
#include "spec/rules.h"
#include "spec/values.h"

namespace sinew::spec {
namespace {

// Returns whether sinew sets this variable itself. A value in the job would then be ignored.
bool is_set_by_sinew(const std::string& variable) {
  static const std::set<std::string> kNames = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
  return kNames.contains(variable) || variable.starts_with("SINEW_");
}

struct CommandRules {
  const Job& job;
  const GivenKeys& given;
  std::vector<Finding> findings;

  Position key_of(const std::string& key) const {
    const auto found = given.find(key);
    return found == given.end() ? Position{} : found->second.key;
  }
  Position value_of(const std::string& key) const {
    const auto found = given.find(key);
    return found == given.end() ? Position{} : found->second.value;
  }
  bool good(const std::string& key) const {
    const auto found = given.find(key);
    return found == given.end() || found->second.good;
  }
  void say(Position position, ErrorCode code, std::string what, std::string hint) {
    findings.push_back({position, code, std::move(what), std::move(hint)});
  }

  void nothing_of_a_training();
  void placeholders(const std::string& key, const std::string& text);
  void names();
  void searched();
};

void CommandRules::nothing_of_a_training() {
  std::string reported = " ";  // the section reported last; its keys are not reported again
  for (const auto& [key, where] : given) {
    if (!where.good || !is_of_training(key) || key.starts_with(reported)) continue;
    reported = key + ".";
    say(where.key, "SPEC_NO_EFFECT", key + " has no effect on a command",
        "delete it, or delete 'command' if you want a training; a command gets its values from params and env");
  }
}

void CommandRules::placeholders(const std::string& key, const std::string& text) {
  if (!good("params")) return;
  for (const std::string& name : names_to_fill_in(text)) {
    std::vector<std::string> known;
    for (const NamedValue& param : job.command.params) known.push_back(param.name);
    if (std::ranges::find(known, name) != known.end()) continue;
    const std::string meant = did_you_mean(name, known);
    say(value_of(key), "SPEC_UNKNOWN_NAME", key + " uses {params." + name + "}, but params has no " + name,
        !meant.empty() ? "did you mean '" + meant + "'?" : "add '" + name + ": value' to params");
  }
}

void CommandRules::names() {
  std::set<std::string> seen;
  for (const NamedValue& param : job.command.params) {
    if (seen.insert(lower(param.name)).second) continue;
    say(value_of("params"), "SPEC_CONFLICT", "params has two names that differ only in case: " + param.name,
        "rename one of them: both would set the same environment variable");
  }
  for (const NamedValue& variable : job.command.env) {
    if (is_set_by_sinew(variable.name))
      say(value_of("env"), "SPEC_NO_EFFECT",
          "env." + variable.name + " has no effect, because sinew sets this variable", "delete it");
  }
}

void CommandRules::searched() {
  for (const SearchParameter& parameter : job.tune.search) {
    if (!parameter.key.starts_with("params.") || !good("params")) continue;
    const std::string name = parameter.key.substr(7);
    if (std::ranges::find(job.command.params, name, &NamedValue::name) != job.command.params.end()) continue;
    say(value_of("tune.search"), "SPEC_UNKNOWN_NAME",
        "tune.search varies " + parameter.key + ", but params has no such name",
        "give it a default value: 'params: {" + name + ": ...}'");
  }
}

}  // namespace

std::vector<Finding> check_command_rules(const Job& job, const GivenKeys& given) {
  CommandRules rules{job, given, {}};
  rules.nothing_of_a_training();
  if (rules.good("command")) {
    for (const std::string& word : job.command.words) rules.placeholders("command", word);
  }
  for (const NamedValue& variable : job.command.env) rules.placeholders("env", variable.value);
  if (rules.good("params") && rules.good("env")) rules.names();
  rules.searched();
  return std::move(rules.findings);
}

}  // namespace sinew::spec
