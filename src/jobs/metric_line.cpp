#include "jobs/metric_line.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace sinew::jobs {
namespace {

using nlohmann::json;

constexpr size_t kMostMetrics = 1000;  // most metrics in one line
constexpr int kDeepest = 4;
constexpr double kMostSteps = 9e15;  // a double holds every whole number up to this one exactly

// Puts quotes around Python's NaN, Infinity and -Infinity outside strings, because JSON has no such numbers.
std::string with_python_numbers_quoted(std::string_view line) {
  std::string out;
  bool in_string = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char letter = line[i];
    if (in_string) {
      out += letter;
      if (letter == '\\' && i + 1 < line.size()) out += line[++i];
      in_string = letter != '"';
      continue;
    }
    in_string = letter == '"';
    bool replaced = false;
    for (const std::string_view word : {"NaN", "nan", "-Infinity", "Infinity", "-inf", "inf"}) {
      if (!line.substr(i).starts_with(word)) continue;
      out += "\"" + std::string(word) + "\"";
      i += word.size() - 1;
      replaced = true;
      break;
    }
    if (!replaced) out += letter;
  }
  return out;
}

std::optional<double> number_of(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  if (text == "NaN" || text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity" || text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity" || text == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

std::optional<int64_t> count_of(const json& value) {
  const auto number = number_of(value);
  if (!number || !(*number >= 0) || *number > kMostSteps || *number != std::floor(*number)) return std::nullopt;
  return static_cast<int64_t>(*number);
}

bool only_numbers(const json& object) {
  return std::all_of(object.begin(), object.end(), [](const json& value) {
    return value.is_object() ? only_numbers(value) : number_of(value).has_value();
  });
}

void take(const json& object, const std::string& prefix, int depth, MetricLine& line) {
  for (const auto& [key, value] : object.items()) {
    if (line.values.size() >= kMostMetrics) return;
    const std::string name = prefix.empty() ? key : prefix + "/" + key;
    if (value.is_object() && depth < kDeepest) take(value, name, depth + 1, line);
    const auto number = number_of(value);
    const std::string metric = number ? metric_name(name) : "";
    if (!metric.empty()) line.values[metric] = *number;
  }
}

bool looks_like_metrics(std::string_view line) {
  return line.starts_with("{\"") || line.starts_with("{ \"");
}

MetricLine broken(std::string why) {
  MetricLine line;
  line.kind = MetricLine::Kind::broken;
  line.why = std::move(why);
  return line;
}

}  // namespace

std::string metric_name(std::string_view given) {
  std::string name;
  for (const char letter : given) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool plain =
        byte < 0x80 && (std::isalnum(byte) != 0 || std::string_view("_@.-/").find(letter) != std::string_view::npos);
    name += plain ? letter : '_';
  }
  const size_t slash = name.find('/');
  if (slash == std::string::npos) {
    static constexpr std::pair<std::string_view, const char*> kGroups[] = {
        {"val_", "val/"},  {"valid_", "val/"}, {"validation_", "val/"},
        {"eval_", "val/"}, {"test_", "test/"}, {"train_", "train/"}};
    for (const auto& [prefix, group] : kGroups) {
      if (name.starts_with(prefix) && name.size() > prefix.size()) return group + name.substr(prefix.size());
    }
    return name.empty() ? "" : "train/" + name;
  }
  if (slash == 0 || slash + 1 == name.size()) return "";
  std::replace(name.begin() + static_cast<long>(slash) + 1, name.end(), '/',
               '.');  // a metric has one slash, between its group and its name
  return name.starts_with("eval/") ? "val/" + name.substr(5) : name;
}

MetricLine read_metric_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
  MetricLine line;
  if (!text.starts_with('{') || !text.ends_with('}') || text.size() > kLongestLine) return line;
  const auto parse = [](std::string_view from) {
    return json::parse(
        from, [](int depth, json::parse_event_t, json&) { return depth <= kDeepest; }, false);
  };
  json json = parse(text);
  if (json.is_discarded()) json = parse(with_python_numbers_quoted(text));
  if (!json.is_object()) return looks_like_metrics(text) ? broken("is not valid JSON") : line;
  const bool has_step = json.contains("step");
  if (json.empty() || (!has_step && !only_numbers(json))) return line;
  if (has_step) {
    line.step = count_of(json["step"]);
    if (!line.step) return broken("its step is not a whole number of at least 0");
  }
  if (json.contains("samples")) line.samples = count_of(json["samples"]);
  if (json.contains("epoch")) line.epoch = number_of(json["epoch"]);
  for (const char* own : {"step", "samples", "epoch", "time", "timestamp", "rank"}) json.erase(own);
  take(json, "", 0, line);
  line.kind = MetricLine::Kind::metrics;
  return line;
}

}  // namespace sinew::jobs
