#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "advise/advise.h"
#include "advise/estimate_json.h"
#include "advise/parts.h"
#include "base/joined.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "base/short_number.h"

namespace sinew::advise {
namespace {

using Json = nlohmann::ordered_json;

std::string stage_line(Stage stage, double seconds, double all) {
  char text[64];
  std::snprintf(text, sizeof text, "  %-12s %5.1f %%  %10.2f s\n", std::string(name_of(stage)).c_str(),
                100 * seconds / all, seconds);
  return text;
}

std::string gain_text(const Estimate& gain) {
  return percent(gain.expected) + " faster (" + percent(gain.low) + " to " + percent(gain.high) + ")";
}

Json json_of(const Verdict& verdict) {
  Json json = {{"limits", Json::array()}, {"parts", Json::array()}, {"remedies", Json::array()}};
  for (const Limit limit : verdict.limits) json["limits"].push_back(name_of(limit));
  for (const Part& part : verdict.parts) {
    Json one = {{"limit", name_of(part.limit)}, {"share", json_number(part.share)}, {"evidence", part.evidence}};
    if (!part.stage.empty()) one["stage"] = part.stage;
    json["parts"].push_back(one);
  }
  for (const Remedy& remedy : verdict.remedies) {
    Json one = {{"what", remedy.what},
                {"faster", json_of(remedy.gain)},
                {"keeps_result", remedy.keeps_result},
                {"options", remedy.options}};
    if (!remedy.effect.empty()) one["effect"] = remedy.effect;
    json["remedies"].push_back(one);
  }
  for (const ConditionTime& found : verdict.experiments)
    json["experiments"].push_back({{"condition", name_of(found.condition)},
                                   {"step_seconds", json_number(found.seconds)},
                                   {"ratio", json_number(found.ratio.expected)},
                                   {"low", json_number(found.ratio.low)},
                                   {"high", json_number(found.ratio.high)}});
  for (const OperatorUse& use : verdict.operators)
    json["operators"].push_back({{"name", use.name},
                                 {"calls", use.calls},
                                 {"seconds", json_number(use.seconds)},
                                 {"flops", json_number(use.flops)},
                                 {"bytes", json_number(use.bytes)}});
  if (verdict.samples_per_second > 0) json["samples_per_second"] = json_number(verdict.samples_per_second);
  if (verdict.flops_in_passes > 0) {
    Json& model = json["model"] = {{"flops_per_step", json_number(verdict.model->flops_per_step)},
                                   {"flops_per_second", json_number(verdict.flops_in_passes)},
                                   {"flops_per_second_overall", json_number(verdict.flops_in_all)}};
    for (const rundir::LayerUse& layer : verdict.model->layers)
      model["layers"].push_back({{"name", layer.name},
                                 {"calls", layer.calls},
                                 {"flops", json_number(layer.flops)},
                                 {"bytes", json_number(layer.bytes)},
                                 {"parameters", layer.parameters}});
  }
  if (verdict.peak_flops > 0)
    json["machine"] = {{"peak_flops", json_number(verdict.peak_flops)}, {"bandwidth", json_number(verdict.bandwidth)}};
  return json;
}

std::string experiments_text(const Verdict& verdict) {
  if (verdict.experiments.empty()) return "";
  std::string text = "\nexperiment with the steps\n";
  for (const ConditionTime& found : verdict.experiments) {
    if (found.condition != Condition::usual) text += "  " + text_of(found) + "\n";
  }
  return text;
}

constexpr size_t kOperators = 6, kLayers = 6;  // that are shown

double seconds_of(const std::vector<OperatorUse>& operators) {
  double seconds = 0;
  for (const OperatorUse& use : operators) seconds += use.seconds;
  return seconds;
}

// How close an operator is to what the machine can do: to its arithmetic or to its memory, whichever is closer.
std::string roof_text(const OperatorUse& use, const Verdict& verdict) {
  if (use.seconds <= 0 || verdict.peak_flops <= 0 || verdict.bandwidth <= 0 || use.flops + use.bytes <= 0) return "";
  const double of_flops = use.flops / use.seconds / verdict.peak_flops,
               of_bytes = use.bytes / use.seconds / verdict.bandwidth;
  if (of_flops >= of_bytes)
    return ": " + short_count(use.flops / use.seconds) + "FLOP/s, " + percent(of_flops) + " of the peak";
  return ": " + short_count(use.bytes / use.seconds) + "B/s, " + percent(of_bytes) + " of the bandwidth";
}

// The operators that take most of a step.
std::string operators_text(const Verdict& verdict) {
  const std::vector<OperatorUse>& operators = verdict.operators;
  if (operators.empty()) return "";
  const double all = seconds_of(operators);
  std::string text = "\na step on one thread, which can do " + short_count(verdict.peak_flops) + "FLOP/s and " +
                     short_count(verdict.bandwidth) + "B/s at most\n";
  for (size_t i = 0; i < std::min(kOperators, operators.size()); ++i) {
    const OperatorUse& use = operators[i];
    char line[64];
    std::snprintf(line, sizeof line, "  %5.1f %%  ", 100 * use.seconds / all);
    text += line + use.name + (use.calls == 1 ? "" : ", " + std::to_string(use.calls) + " times");
    text += roof_text(use, verdict) + "\n";
  }
  return text;
}

// The command that applies the remedy to a run that trains; "" if there is none.
std::string control_of(const Remedy& remedy, const std::string& running) {
  if (running.empty() || !remedy.keeps_result || remedy.options.size() != 1) return "";
  const std::string& option = remedy.options[0];
  const auto interval = spec::parse_duration(option.substr(option.find('=') + 1));
  using Unit = spec::Duration::Unit;
  // a command does not know how long an epoch is
  const bool known = interval && (interval->unit == Unit::seconds || interval->unit == Unit::steps);
  const bool can =
      option.starts_with("data.prefetch.threads=") || (option.starts_with("checkpoint.interval=") && known);
  return can ? "    now: sinew control " + shell_quoted(running) + " " + option + "\n" : "";
}

// What a step of the model takes, how fast the lanes computed it, and which layers it is made of.
std::string model_text(const Verdict& verdict) {
  if (verdict.flops_in_passes <= 0) return "";
  const auto of_peak = [&](double flops) {
    return verdict.peak_flops > 0 ? " (" + percent(flops / verdict.peak_flops) + " of the peak)" : "";
  };
  std::string text = "\na step takes " + short_count(verdict.model->flops_per_step) + "FLOP; a lane made " +
                     short_count(verdict.flops_in_passes) + "FLOP/s" + of_peak(verdict.flops_in_passes) +
                     " in forward and backward passes, " + short_count(verdict.flops_in_all) + "FLOP/s" +
                     of_peak(verdict.flops_in_all) + " in all its time\n";
  const std::vector<rundir::LayerUse>& layers = verdict.model->layers;
  for (size_t i = 0; i < std::min(kLayers, layers.size()); ++i) {
    const rundir::LayerUse& layer = layers[i];
    if (layer.flops <= 0) break;
    char line[32];
    std::snprintf(line, sizeof line, "  %5.1f %%  ", 100 * layer.flops / verdict.model->flops_per_step);
    text += line + printable(layer.name) + ": " + short_count(layer.flops) + "FLOP, " + short_count(layer.bytes) + "B" +
            (layer.parameters > 0 ? ", " + short_count(static_cast<double>(layer.parameters)) + " parameters" : "") +
            "\n";
  }
  return text;
}

}  // namespace

std::string verdict_text(const Verdict& verdict, const StageTimes& time, const std::string& running) {
  std::string text;
  for (const Part& part : verdict.parts) {
    if (std::ranges::find(verdict.limits, part.limit) == verdict.limits.end()) continue;
    text += std::string(name_of(part.limit)) + (part.stage.empty() ? "" : " (" + part.stage + ")") + ", " +
            percent(part.share) + ": " + part.evidence + "\n";
  }
  char head[96];
  std::snprintf(head, sizeof head, "\ntime of %lld %s in %.1f s\n", static_cast<long long>(time.lanes),
                time.lanes == 1 ? "lane" : "lanes", time.total() / static_cast<double>(time.lanes));
  text += head;
  for (const Stage stage : longest_stages(time)) text += stage_line(stage, time[stage], time.total());
  text += experiments_text(verdict);
  text += model_text(verdict);
  text += operators_text(verdict);
  if (!verdict.remedies.empty()) text += "\nwhat can help\n";
  for (const Remedy& remedy : verdict.remedies)
    text += "  " + remedy.what + ": " + gain_text(remedy.gain) + "; " +
            (!remedy.effect.empty() ? remedy.effect
             : remedy.keeps_result  ? "the model stays the same"
                                    : "changes the model") +
            "\n" + (remedy.options.empty() ? "" : "    " + joined(remedy.options, " ") + "\n") +
            control_of(remedy, running);
  return text;
}

std::string verdict_json(const Verdict& verdict) {
  return dump_json(json_of(verdict), 2) + "\n";
}

std::string applied_text(const Applied& applied) {
  if (applied.changes.empty()) return "\nno option of the job file would make it faster by 5 % or more\n";
  std::string text = "\nchanges\n";
  for (const Applied::Change& change : applied.changes)
    text += "  " + change.key + ": " + change.before + " -> " + change.after + "  (" + change.reason + ")\n";
  return text + "predicted: " + gain_text(applied.predicted) + "\n";
}

std::string measured_text(const Applied& applied) {
  const double gain = applied.gain();
  return "measured: " + percent(std::abs(gain)) + (gain < 0 ? " slower" : " faster") + ", " +
         short_count(applied.before) + " before and " + short_count(applied.after) + " samples a second now; " +
         (applied.holds() ? "the prediction holds\n" : "the prediction does not hold\n") + "the changed job is " +
         applied.file + "\n";
}

std::string applied_json(const Verdict& verdict, const Applied& applied) {
  Json json = json_of(verdict);
  Json& out = json["applied"] = {{"changes", Json::array()}};
  if (!applied.file.empty()) out["file"] = applied.file;
  for (const Applied::Change& change : applied.changes)
    out["changes"].push_back(
        {{"key", change.key}, {"before", change.before}, {"after", change.after}, {"reason", change.reason}});
  if (!applied.changes.empty()) {
    out["predicted"] = json_of(applied.predicted);
    out["measured"] = json_number(applied.gain());
    out["holds"] = applied.holds();
  }
  out["samples_per_second"] = {{"before", json_number(applied.before)}, {"after", json_number(applied.after)}};
  return dump_json(json, 2) + "\n";
}

}  // namespace sinew::advise
