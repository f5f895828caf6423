#include "report/progress_line.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/json_text.h"
#include "base/printable.h"
#include "report/text_format.h"

namespace sinew::report {
namespace {

constexpr int kBarCells = 10;

// A part of the line. If the line is too long, the part with the highest `drop_rank` is left out first. A part with
// rank 0 is never left out.
struct Part {
  std::string label, value, unit;
  int drop_rank = 0;
  bool joined = false;  // true: one blank before this part; false: two blanks
  bool alarming = false;
};

int width_of(const Part& part) {
  const auto with_gap = [](const std::string& text) { return text.empty() ? 0 : display_width(text) + 1; };
  return with_gap(part.label) + display_width(part.value) + with_gap(part.unit);
}

int width_of(const std::vector<Part>& parts) {
  int width = 0;
  for (const Part& part : parts) width += width_of(part) + (&part == &parts.front() ? 0 : part.joined ? 1 : 2);
  return width;
}

// Returns the fraction of the run that is done, from 0 to 1. Returns a negative number if the run's length is unknown.
double fraction_done(const Progress& progress) {
  double done = -1;
  if (progress.total_steps > 0) {
    done = static_cast<double>(progress.step.value) / static_cast<double>(progress.total_steps);
  } else if (progress.total_epochs > 0) {
    done = progress.epoch / progress.total_epochs;
  }
  return std::isfinite(done) && done >= 0 ? std::min(done, 1.0) : -1;
}

std::string bar_of(double done) {
  const int full = static_cast<int>(done * kBarCells + 1e-9);
  return "[" + std::string(static_cast<size_t>(full), '#') + std::string(static_cast<size_t>(kBarCells - full), '-') +
         "]";
}

std::string trimmed(double value) {  // "5.3", and "10" instead of "10.0"
  char text[48];
  std::snprintf(text, sizeof text, "%.1f", value);
  std::string digits = text;
  if (digits.ends_with(".0")) digits.resize(digits.size() - 2);
  return digits;
}

std::vector<Part> parts_of(const Progress& progress, bool bar) {
  std::vector<Part> parts;
  std::string step = std::to_string(progress.step.value);
  if (progress.total_steps > 0) {
    const std::string total = std::to_string(progress.total_steps);
    // keeps the layout of the line stable
    if (step.size() < total.size()) step.insert(0, total.size() - step.size(), ' ');
    step += "/" + total;
  }
  parts.push_back({"step", step, "", 0, false, false});
  if (progress.total_epochs > 0) {
    char epoch[48];
    std::snprintf(epoch, sizeof epoch, "%.1f", progress.epoch);
    parts.push_back({"epoch", epoch + ("/" + trimmed(progress.total_epochs)), "", 30, false, false});
  } else if (progress.epoch > 0) {
    char epoch[48];
    std::snprintf(epoch, sizeof epoch, "%.1f", progress.epoch);
    parts.push_back({"epoch", epoch, "", 30, false, false});
  }
  if (const double done = fraction_done(progress); bar && done >= 0)
    parts.push_back({"", bar_of(done), "", 50, true, false});
  int nth = 0;
  for (const auto& [name, value] : progress.shown) {
    parts.push_back({printable(name), short_number(value), "", nth == 0 ? 5 : 20 + nth, false, !std::isfinite(value)});
    ++nth;
  }
  if (progress.samples_per_second > 0) {
    parts.push_back({"", short_count(progress.samples_per_second), "samples/s", 40, false, false});
  }
  if (progress.eta_seconds >= 0) {
    const bool has_range = progress.eta_low_seconds >= 0 && progress.eta_high_seconds >= 0;
    parts.push_back({"eta",
                     has_range ? short_seconds(progress.eta_low_seconds, progress.eta_high_seconds)
                               : short_seconds(progress.eta_seconds),
                     "", 10, false, false});
  }
  if (!progress.forecast_metric.empty()) {
    parts.push_back({"best " + printable(progress.forecast_metric),
                     short_range(progress.forecast_low, progress.forecast_high), "", 35, false, false});
  }
  return parts;
}

std::string render(const std::vector<Part>& parts, bool color) {
  const char* dim = color ? "\x1b[2m" : "";
  const char* red = color ? "\x1b[31m" : "";
  const char* plain = color ? "\x1b[0m" : "";
  std::string line;
  for (const Part& part : parts) {
    if (!line.empty()) line += part.joined ? " " : "  ";
    if (!part.label.empty()) line += dim + part.label + plain + " ";
    line += part.alarming ? red + part.value + plain : part.value;
    if (!part.unit.empty()) line += std::string(" ") + dim + part.unit + plain;
  }
  return line;
}

}  // namespace

std::string progress_line(const Progress& progress, int columns, bool bar, bool color) {
  std::vector<Part> parts = parts_of(progress, bar);
  if (columns <= 0) return render(parts, color);
  while (parts.size() > 1 && width_of(parts) > columns) {
    parts.erase(std::max_element(parts.begin(), parts.end(),
                                 [](const Part& a, const Part& b) { return a.drop_rank < b.drop_rank; }));
  }
  if (width_of(parts) > columns) return fit(render(parts, false), columns);
  return render(parts, color);
}

nlohmann::ordered_json progress_json(const Progress& progress) {
  nlohmann::ordered_json json = {{"step", progress.step.value}};
  if (progress.total_steps > 0) json["total_steps"] = progress.total_steps;
  json["epoch"] = json_number(progress.epoch);
  if (progress.total_epochs > 0) json["total_epochs"] = json_number(progress.total_epochs);
  json["samples"] = progress.samples;
  json["samples_per_second"] = json_number(progress.samples_per_second);
  for (const auto& [name, seconds] :
       {std::pair{"eta_seconds", progress.eta_seconds}, std::pair{"eta_low_seconds", progress.eta_low_seconds},
        std::pair{"eta_high_seconds", progress.eta_high_seconds}}) {
    if (seconds >= 0) json[name] = json_number(seconds);
  }
  if (!progress.forecast_metric.empty())
    json["best_at_end"] = {{"metric", progress.forecast_metric},
                           {"low", json_number(progress.forecast_low)},
                           {"high", json_number(progress.forecast_high)}};
  nlohmann::ordered_json& metrics = json["metrics"] = nlohmann::ordered_json::object();
  for (const auto& [name, value] : progress.shown) metrics[name] = json_number(value);
  return json;
}

}  // namespace sinew::report
