#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "report/report.h"

namespace sinew::report {
namespace {

constexpr int kProcess = 1;
constexpr int kStepsRow = 0;  // the row above the lanes

using Json = nlohmann::ordered_json;

Json event_of(const std::string& name, const char* category, double began, double ended, int64_t row) {
  return {{"name", name},
          {"cat", category},
          {"ph", "X"},
          {"ts", json_number(1e6 * began)},
          {"dur", json_number(1e6 * std::max(0.0, ended - began))},
          {"pid", kProcess},
          {"tid", row}};
}

Json named_row(int64_t row, const std::string& name) {
  return {{"name", "thread_name"}, {"ph", "M"}, {"pid", kProcess}, {"tid", row}, {"args", {{"name", name}}}};
}

}  // namespace

std::string trace_json(const std::vector<StageSpan>& spans, const std::vector<TracedStep>& steps) {
  Json events = Json::array();
  events.push_back(named_row(kStepsRow, "steps"));
  int64_t lanes = 0;
  for (const StageSpan& span : spans) lanes = std::max(lanes, span.lane + 1);
  for (int64_t lane = 0; lane < lanes; ++lane) events.push_back(named_row(lane + 1, "lane " + std::to_string(lane)));
  const double began = steps.empty() ? 0 : steps.front().began;
  for (const TracedStep& step : steps)
    events.push_back(
        event_of("step " + std::to_string(step.step), "step", step.began - began, step.ended - began, kStepsRow));
  for (const StageSpan& span : spans)
    events.push_back(
        event_of(std::string(name_of(span.stage)), "stage", span.began - began, span.ended - began, span.lane + 1));
  return dump_json({{"displayTimeUnit", "ms"}, {"traceEvents", events}}) + "\n";
}

}  // namespace sinew::report
