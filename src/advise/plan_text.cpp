#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "advise/advise.h"
#include "base/json_text.h"
#include "base/short_number.h"
#include "base/size_text.h"

namespace sinew::advise {
namespace {

std::string duration_text(double seconds) {
  if (seconds >= 60) return short_seconds(seconds);
  char text[32];
  const double unit = seconds >= 0.1 ? 1 : seconds >= 1e-4 ? 1e-3 : 1e-6;
  std::snprintf(text, sizeof text, "%.*f %s", unit == 1 ? 1 : 2, seconds / unit,
                unit == 1      ? "s"
                : unit == 1e-3 ? "ms"
                               : "us");
  return text;
}

std::string memory_text(double bytes) {
  return size_text(std::llround(bytes));
}

std::string money_text(double money) {
  char text[32];
  std::snprintf(text, sizeof text, money < 1 ? "%.4f" : "%.2f", money);
  return text;
}

// Half of the width of the range, as a part of its middle.
std::string width_text(const Estimate& estimate) {
  const double middle = (estimate.low + estimate.high) / 2;
  char text[32];
  std::snprintf(text, sizeof text, "+-%.0f %%", middle > 0 ? 100 * (estimate.high - estimate.low) / 2 / middle : 0.0);
  return text;
}

std::string row(const std::string& what, const std::string& value, const std::string& more) {
  char text[160];
  std::snprintf(text, sizeof text, "%-16s %10s", what.c_str(), value.c_str());
  return text + (more.empty() ? "" : "  " + more) + "\n";
}

template <typename Text>
std::string row(const std::string& what, const Estimate& estimate, Text text) {
  std::string range = text(estimate.low) + " to " + text(estimate.high);
  range.resize(std::max<size_t>(range.size(), 24), ' ');
  return row(what, text(estimate.expected), range + width_text(estimate));
}

std::string head(const Plan& plan) {
  const PlannedJob& job = plan.job;
  std::string text =
      job.name + ": " + job.model + ", " + std::to_string(job.parameters) + " parameters" +
      (job.trained_parameters == job.parameters ? ""
                                                : ", " + std::to_string(job.trained_parameters) + " of them trained") +
      "; " + std::to_string(job.train_samples) + " training samples\n";
  if (job.steps) {
    char epochs[32];
    std::snprintf(epochs, sizeof epochs, "%.4g",
                  static_cast<double>(*job.steps) / static_cast<double>(job.steps_per_epoch));
    text +=
        std::to_string(*job.steps) + " steps of " + std::to_string(job.batch_size) + " samples (" + epochs + " epochs)";
  } else {
    text += "steps of " + std::to_string(job.batch_size) + " samples for " + duration_text(job.max_seconds);
  }
  if (plan.evaluation_count > 0)
    text += ", " + short_count(plan.evaluation_count) +
            (plan.evaluation_count == 1 ? " evaluation of " : " evaluations of ") + std::to_string(job.val_samples) +
            " samples";
  return text + "\nmeasured on this machine: " + std::to_string(plan.measured.steps) + " steps on " +
         std::to_string(plan.measured.lanes) +
         (plan.measured.lanes == 1 ? " lane (thread) in " : " lanes (threads) in ") +
         duration_text(plan.measured.seconds) + "\n";
}

int64_t rest_of_memory(const MeasuredRun& measured) {
  return std::max<int64_t>(0, measured.peak_memory - measured.program_memory - measured.data_memory -
                                  measured.parameter_memory - measured.optimizer_memory);
}

std::vector<std::string> notes_of(const Plan& plan) {
  std::vector<std::string> notes = plan.job.notes;
  if (plan.measured.finished) notes.push_back("the training ended while it was measured, so its time is known");
  if (plan.job.budget_seconds > 0 && plan.seconds.high >= plan.job.budget_seconds)
    notes.push_back(std::string("budget.time ") +
                    (plan.seconds.expected >= plan.job.budget_seconds ? "ends" : "may end") + " the training after " +
                    duration_text(plan.job.budget_seconds));
  return notes;
}

std::string memory_rows(const Plan& plan) {
  const MeasuredRun& measured = plan.measured;
  std::string text = row("memory", plan.memory, memory_text);
  if (plan.job.usable_memory > 0)
    text += row("  of", memory_text(static_cast<double>(plan.job.usable_memory)), "that this machine has");
  const auto part = [&](const char* what, int64_t bytes, const char* more) {
    if (bytes > 0) text += row(std::string("  ") + what, memory_text(static_cast<double>(bytes)), more);
  };
  part("program", measured.program_memory, "the program and its libraries");
  part("data", measured.data_memory, "");
  part("parameters", measured.parameter_memory, "");
  part("optimizer", measured.optimizer_memory, "");
  part("rest", rest_of_memory(measured), "activations, gradients, batches, a copy of the state");
  return text;
}

nlohmann::ordered_json json_of(const Estimate& estimate) {
  return {{"expected", json_number(estimate.expected)},
          {"low", json_number(estimate.low)},
          {"high", json_number(estimate.high)}};
}

Estimate cost_of(const Plan& plan, double price) {
  const double per_second = price / 3600;
  return {plan.seconds.expected * per_second, plan.seconds.low * per_second, plan.seconds.high * per_second};
}

std::string compute_text(const Plan& plan) {
  const double flops = plan.measured.step_flops;
  const std::string all =
      plan.job.steps ? ", " + short_count(flops * static_cast<double>(*plan.job.steps)) + "FLOP in all" : "";
  return "a step" + all + "; " + short_count(flops / plan.measured.step_seconds) + "FLOP/s";
}

}  // namespace

std::string plan_text(const Plan& plan, const PlanQuestions& questions) {
  const PlannedJob& job = plan.job;
  const MeasuredRun& measured = plan.measured;
  std::string text = head(plan) + "\n" + row("", "expected", "in 9 of 10 cases between");
  text += row("time", plan.seconds, duration_text);
  text += row("  start", duration_text(plan.startup.expected), "");
  text += row("  steps", duration_text(plan.steps.expected), duration_text(measured.step_seconds) + " each");
  if (plan.evaluation_count > 0)
    text += row("  evaluations", duration_text(plan.evaluations.expected),
                measured.evaluation_seconds > 0 ? "" : "estimated from the steps; no evaluation was measured");
  text += row("  end", duration_text(plan.end.expected), "the last checkpoint, the model and its test");
  text += memory_rows(plan);
  if (measured.step_flops > 0) text += row("compute", short_count(measured.step_flops) + "FLOP", compute_text(plan));
  if (questions.price > 0) text += row("cost", cost_of(plan, questions.price), money_text);
  const double own = job.steps ? 0 : job.max_seconds;
  if (const double within = questions.within_seconds > 0 ? questions.within_seconds : own; within > 0) {
    const Estimate steps = steps_within(plan, within);
    text += row("steps in " + short_seconds(within), steps, short_count);
    const auto epochs = static_cast<double>(job.steps_per_epoch);
    text += row("  epochs", Estimate{steps.expected / epochs, steps.low / epochs, steps.high / epochs}, short_count);
  }
  for (const std::string& note : notes_of(plan)) text += "note: " + note + "\n";
  return text;
}

std::string plan_json(const Plan& plan, const PlanQuestions& questions) {
  const PlannedJob& job = plan.job;
  const MeasuredRun& measured = plan.measured;
  nlohmann::ordered_json json = {{"job", job.name},
                                 {"model", job.model},
                                 {"parameters", job.parameters},
                                 {"trained_parameters", job.trained_parameters},
                                 {"train_samples", job.train_samples},
                                 {"val_samples", job.val_samples},
                                 {"test_samples", job.test_samples},
                                 {"batch_size", job.batch_size},
                                 {"steps", job.steps ? nlohmann::ordered_json(*job.steps) : nlohmann::ordered_json()},
                                 {"steps_per_epoch", job.steps_per_epoch},
                                 {"evaluation_count", json_number(plan.evaluation_count)},
                                 {"measured_steps", measured.steps},
                                 {"measured_evaluation", measured.evaluation_seconds > 0},
                                 {"finished", measured.finished},
                                 {"lanes", measured.lanes},
                                 {"step_seconds", json_number(measured.step_seconds)},
                                 {"step_flops", json_number(measured.step_flops)},
                                 {"seconds", json_of(plan.seconds)},
                                 {"seconds_by_part",
                                  {{"start", json_of(plan.startup)},
                                   {"steps", json_of(plan.steps)},
                                   {"evaluations", json_of(plan.evaluations)},
                                   {"end", json_of(plan.end)}}},
                                 {"memory_bytes", json_of(plan.memory)},
                                 {"memory_bytes_by_part",
                                  {{"program", measured.program_memory},
                                   {"data", measured.data_memory},
                                   {"parameters", measured.parameter_memory},
                                   {"optimizer", measured.optimizer_memory},
                                   {"rest", rest_of_memory(measured)}}},
                                 {"usable_memory_bytes", job.usable_memory}};
  if (questions.price > 0) json["cost"] = json_of(cost_of(plan, questions.price));
  if (questions.within_seconds > 0) json["steps_within"] = json_of(steps_within(plan, questions.within_seconds));
  json["notes"] = notes_of(plan);
  return dump_json(json, 2) + "\n";
}

}  // namespace sinew::advise
