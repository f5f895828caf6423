#include "report/metric_lines.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/json_text.h"
#include "base/number_text.h"
#include "forecast/forecast.h"

namespace sinew::report {
namespace {

constexpr int64_t kLargest = int64_t{1} << 53;  // a double represents every integer up to this exactly

bool put(MetricRecord& record, std::string_view name, double value) {
  if (name != "step" && name != "samples") {
    if (name == "time") {
      record.wall_seconds = value;
    } else {
      record.values.insert_or_assign(std::string(name), value);
    }
    return true;
  }
  if (!(value >= 0 && value <= static_cast<double>(kLargest) && value == std::floor(value))) return false;
  (name == "step" ? record.step : record.samples) = static_cast<int64_t>(value);
  return true;
}

// Parses the lines that append_metrics_line writes, if no name in them needs escapes. Returns false for all other
// lines, which the general parser then reads.
class FastLine {
 public:
  explicit FastLine(std::string_view line) : at_(line.data()), end_(line.data() + line.size()) {}

  bool read(MetricRecord& record) {
    bool has_step = false;
    if (!take('{')) return false;
    do {
      std::string_view name;
      double value = 0;
      if (!text(name) || !take(':') || !number(value) || !put(record, name, value)) return false;
      has_step = has_step || name == "step";
    } while (take(','));
    return take('}') && at_ == end_ && has_step;
  }

 private:
  bool take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  bool text(std::string_view& out) {
    if (!take('"')) return false;
    const char* begin = at_;
    while (at_ != end_ && *at_ >= ' ' && *at_ < 0x7F && *at_ != '"' && *at_ != '\\') ++at_;
    out = {begin, static_cast<size_t>(at_ - begin)};
    return take('"');
  }
  bool number(double& value) {
    if (at_ != end_ && *at_ == '"') return false;  // the general parser reads NaN and infinities, which are rare
    const char* begin = at_;
    if (at_ != end_ && *at_ == '-') ++at_;
    // JSON is stricter than from_chars: a number begins with a digit, and no digit may follow a leading 0.
    if (at_ == end_ || *at_ < '0' || *at_ > '9') return false;
    if (*at_ == '0' && at_ + 1 != end_ && at_[1] >= '0' && at_[1] <= '9') return false;
    const auto [rest, code] = std::from_chars(begin, end_, value);
    if (code != std::errc()) return false;
    for (const char* c = begin; c != rest; ++c) {
      if (*c == '.' && (c + 1 == rest || c[1] < '0' || c[1] > '9')) return false;
    }
    at_ = rest;
    return true;
  }

  const char* at_;
  const char* end_;
};

}  // namespace

void append_metrics_line(std::string& out, int64_t step, int64_t samples, double wall_seconds, const Metrics& values) {
  out.append("{\"step\":");
  append_integer(out, step);
  out.append(",\"samples\":");
  append_integer(out, samples);
  out.append(",\"time\":");
  append_json_number(out, std::round(wall_seconds * 1000) / 1000);
  for (const auto& [name, value] : values) {
    SINEW_CHECK(name != "step" && name != "samples" && name != "time", name);
    out.push_back(',');
    append_json_string(out, name);
    out.push_back(':');
    append_json_number(out, value);
  }
  out.append("}\n");
}

void append_ledger_line(std::string& out, int64_t step, Digest digest) {
  out.append("{\"step\":");
  append_integer(out, step);
  out.append(",\"digest\":\"").append(to_hex(digest)).append("\"}\n");
}

std::optional<MetricRecord> parse_metrics_line(std::string_view line, std::string* why) {
  MetricRecord record;
  if (FastLine(line).read(record)) return record;
  return parse_metrics_line_slowly(line, why);
}

std::optional<MetricRecord> parse_metrics_line_slowly(std::string_view line, std::string* why) {
  const auto refuse = [&](const std::string& reason) {
    if (why != nullptr) *why = reason;
    return std::nullopt;
  };
  // A record is a flat object, so the callback limits the depth of nesting.
  const nlohmann::ordered_json json = nlohmann::ordered_json::parse(
      line, [](int depth, nlohmann::ordered_json::parse_event_t, nlohmann::ordered_json&) { return depth < 4; }, false);
  if (json.is_discarded() || !json.is_object()) return refuse("not a JSON object");
  if (!json.contains("step")) return refuse("no \"step\"");
  MetricRecord record;
  for (const auto& [name, value] : json.items()) {
    const std::optional<double> number = number_in_json(value);
    if (!number) return refuse("\"" + name + "\" is not a number");
    if (!put(record, name, *number)) return refuse("\"" + name + "\" is not a whole number");
  }
  return record;
}

std::vector<forecast::Evaluation> read_evaluations_of(const std::string& directory, const std::string& metric) {
  std::vector<forecast::Evaluation> found;
  double rate = 0;
  for_each_record(rundir::file_in(directory, rundir::kMetricsFile), nullptr, [&](const MetricRecord& record) {
    if (const auto at = record.values.find("train/learning_rate"); at != record.values.end()) rate = at->second;
    const auto value = record.values.find(metric);
    if (value == record.values.end() || (!found.empty() && record.step <= found.back().step)) return;
    found.push_back({record.step, value->second, rate});
  });
  return found;
}

std::optional<int64_t> step_of_line(std::string_view line) {
  constexpr std::string_view kStart = "{\"step\":";
  if (!line.ends_with('}')) return std::nullopt;
  // Lines that Sinew wrote begin with "step" and contain it only once. An escaped name could be a second "step". So the
  // general parser reads lines with escapes.
  const bool ours =
      line.starts_with(kStart) && line.find("\"step\"", kStart.size()) == line.npos && line.find('\\') == line.npos;
  int64_t step = 0;
  if (ours) {
    const auto [rest, code] = std::from_chars(line.data() + kStart.size(), line.data() + line.size(), step);
    if (code == std::errc() && (*rest == ',' || *rest == '}') && step >= 0 && step <= kLargest) return step;
  }
  const nlohmann::ordered_json json = nlohmann::ordered_json::parse(
      line, [](int depth, nlohmann::ordered_json::parse_event_t, nlohmann::ordered_json&) { return depth < 4; }, false);
  if (!json.is_object() || !json.contains("step") || !json["step"].is_number_unsigned()) return std::nullopt;
  const auto number = json["step"].get<uint64_t>();
  return number <= static_cast<uint64_t>(kLargest) ? std::optional(static_cast<int64_t>(number)) : std::nullopt;
}

}  // namespace sinew::report
