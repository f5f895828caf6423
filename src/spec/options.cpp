#include "spec/options.h"

#include <algorithm>

namespace sinew::spec {

std::string Option::section() const {
  const size_t dot = key.rfind('.');
  return dot == std::string::npos ? "" : key.substr(0, dot);
}

std::string Option::leaf() const {
  return key.substr(key.rfind('.') + 1);  // npos + 1 is 0
}

bool Option::is_list() const {
  return std::visit(
      [](auto reach) {
        using Value = std::remove_reference_t<decltype(reach(std::declval<Job&>()))>;
        return std::is_same_v<Value, std::vector<int64_t>> || std::is_same_v<Value, std::vector<double>> ||
               std::is_same_v<Value, std::vector<std::string>> || std::is_same_v<Value, std::vector<Objective>>;
      },
      access);
}

bool Option::can_be_auto() const {
  return std::holds_alternative<Auto<int64_t>& (*)(Job&)>(access);
}

const Option* find_option(std::string_view key) {
  for (const Option& option : option_table()) {
    if (option.key == key) return &option;
  }
  return nullptr;
}

const Section* find_section(std::string_view key) {
  for (const Section& section : section_table()) {
    if (section.key == key) return &section;
  }
  return nullptr;
}

const Option* short_form_of(std::string_view section) {
  for (const Option& option : option_table()) {
    if (option.short_form && option.section() == section) return &option;
  }
  return nullptr;
}

std::vector<std::string> keys_below(std::string_view section) {
  const std::string prefix = section.empty() ? "" : std::string(section) + ".";
  std::vector<std::string> keys;
  for (const Option& option : option_table()) {
    if (!option.key.starts_with(prefix)) continue;
    const std::string rest = option.key.substr(prefix.size());
    const std::string key = rest.substr(0, rest.find('.'));
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
  return keys;
}

namespace {

bool set(const std::string& value) {
  return !value.empty();
}
template <typename T>
bool set(const std::vector<T>& value) {
  return !value.empty();
}
bool set(const std::optional<Objective>& value) {
  return value.has_value();
}
template <typename T>
bool set(const T&) {
  return true;
}

}  // namespace

bool is_set(const Option& option, const Job& job) {
  if (option.type.kind == Kind::time) {
    return visit_value(option, job, [](const auto& value) {
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, double>) return value > 0;
      return true;
    });
  }
  if (option.type.kind == Kind::bytes) {
    return visit_value(option, job, [](const auto& value) {
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, int64_t>) return value > 0;
      return true;
    });
  }
  return visit_value(option, job, [&](const auto& value) {
    // 0 means "not given" for a number whose range excludes 0, and for a whole number that may be 0 besides its range.
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, double>)
      return option.type.kind != Kind::number || option.type.range.holds(value);
    if constexpr (std::is_same_v<Value, int64_t>)
      return value != 0 || option.type.kind != Kind::whole || !option.type.zero;
    return set(value);
  });
}

bool is_of_training(std::string_view key) {
  static constexpr std::string_view kOfTraining[] = {"model",
                                                     "loss",
                                                     "data",
                                                     "trainer",
                                                     "optimizer",
                                                     "scheduler",
                                                     "checkpoint",
                                                     "workers",
                                                     "cluster",
                                                     "threshold",
                                                     "logging.interval",
                                                     "early_stopping.restore_best",
                                                     "budget.training",
                                                     "budget.memory",
                                                     "budget.energy",
                                                     "budget.watts"};
  return std::any_of(std::begin(kOfTraining), std::end(kOfTraining), [&](std::string_view part) {
    return key == part || (key.starts_with(part) && key[part.size()] == '.');
  });
}

const Option* owner_of_entry(std::string_view key) {
  const size_t dot = key.find('.');
  if (dot == std::string_view::npos || dot + 1 == key.size() || key.find('.', dot + 1) != std::string_view::npos)
    return nullptr;
  const Option* option = find_option(key.substr(0, dot));
  return option != nullptr && option->type.kind == Kind::values ? option : nullptr;
}

bool has_effect(const Option& option, const Job& job) {
  if (job.command.given() && is_of_training(option.key)) return false;
  if (option.effect.key.empty()) return true;
  const Option& owner = *find_option(option.effect.key);
  if (option.effect.values.empty()) return is_set(owner, job);
  return visit_value(owner, job, [&](const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
      return std::find(option.effect.values.begin(), option.effect.values.end(), value) != option.effect.values.end();
    }
    return false;
  });
}

bool is_table(const DataOptions& data) {
  const std::vector<std::string>& formats = find_option("data.columns.target")->effect.values;
  return data.format != "auto" && std::find(formats.begin(), formats.end(), data.format) != formats.end();
}

}  // namespace sinew::spec
