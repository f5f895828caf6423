#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "advise/advise.h"
#include "advise/estimate_json.h"
#include "base/json_text.h"
#include "base/number_text.h"
#include "base/short_number.h"
#include "base/size_text.h"

namespace sinew::advise {
namespace {

constexpr double kHour = 3600, kMonth = 30.44 * 86400;

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
    notes.push_back(plan.job.budget_option + " " +
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

Estimate cost_of(const Estimate& seconds, double price) {
  return seconds * (price / kHour);
}

// The part of a training that the money pays for, at most all of it.
Estimate part_for(double money, const Estimate& cost) {
  const auto part = [&](double of) { return of > money ? money / of : 1.0; };
  return {part(cost.expected), part(cost.high), part(cost.low)};
}

// ---- other machines

using Cells = std::vector<std::string>;

// Rows with columns of equal width; the last column is not padded.
std::string aligned(const std::vector<Cells>& rows) {
  std::vector<size_t> widths;
  for (const Cells& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Cells& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 < row.size()) text += std::string(widths[i] - row[i].size() + 2, ' ');
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  return text;
}

template <typename Text>
std::string range_text(const Estimate& estimate, Text text) {
  return text(estimate.expected) + " (" + text(estimate.low) + " to " + text(estimate.high) + ")";
}

std::string percent_text(double part) {
  return rounded_text(100 * part, 3) + " %";
}

std::string price_cell(const std::optional<double>& price, const Estimate& seconds) {
  return price ? range_text(cost_of(seconds, *price), money_text) : "no price";
}

Cells cells_of(const Elsewhere& there, const Plan& plan, const PlanQuestions& questions) {
  const MachineType& machine = there.machine;
  Cells cells = {machine.provider + " " + machine.name, machine.region};
  if (!there.why_not.empty()) {
    cells.push_back("left out: " + there.why_not);
    return cells;
  }
  cells.push_back(range_text(there.seconds, duration_text));
  cells.push_back(width_text(there.seconds));
  if (!plan.job.steps) cells.push_back(range_text(there.steps, short_count));
  cells.push_back(price_cell(machine.on_demand, there.seconds));
  cells.push_back(price_cell(machine.spot, there.seconds));
  const auto price = machine.usual_price();
  if (questions.spend > 0)
    cells.push_back(price ? range_text(part_for(questions.spend, cost_of(there.seconds, *price)), percent_text) : "-");
  if (questions.retrain_seconds > 0)
    cells.push_back(
        price ? range_text(cost_of(there.seconds, *price) * (kMonth / questions.retrain_seconds), money_text) : "-");
  cells.push_back(there.limit);
  return cells;
}

// The answers that are sentences.
std::vector<std::string> answers_of(const Plan& plan, const PlanQuestions& questions) {
  std::vector<std::string> answers;
  if (questions.retrain_seconds > 0 && plan.seconds.high > questions.retrain_seconds)
    answers.push_back(std::string("a training ") +
                      (plan.seconds.low > questions.retrain_seconds ? "takes" : "may take") + " longer than the " +
                      short_seconds(questions.retrain_seconds) + " until the next one");
  if (questions.samples_per_day > 0) answers.push_back(retraining_advice(plan, questions.samples_per_day));
  return answers;
}

void add_machines(nlohmann::ordered_json& json, const Plan& plan, const PlanQuestions& questions) {
  const MachineTable& table = *questions.machines;
  json["prices"] = {{"date", table.date}, {"currency", table.currency}};
  nlohmann::ordered_json& list = json["machines"] = nlohmann::ordered_json::array();
  for (const Elsewhere& there : elsewhere(plan, table)) {
    const MachineType& machine = there.machine;
    nlohmann::ordered_json one = {{"name", machine.name},
                                  {"provider", machine.provider},
                                  {"region", machine.region},
                                  {"fits", there.why_not.empty()}};
    if (!there.why_not.empty()) {
      one["why_not"] = there.why_not;
    } else {
      one["step_seconds"] = json_of(there.step_seconds);
      one["seconds"] = json_of(there.seconds);
      one["steps"] = json_of(there.steps);
      one["limit"] = there.limit;
      if (machine.on_demand) one["cost_on_demand"] = json_of(cost_of(there.seconds, *machine.on_demand));
      if (machine.spot) one["cost_spot"] = json_of(cost_of(there.seconds, *machine.spot));
      if (const auto price = machine.usual_price()) {
        const Estimate cost = cost_of(there.seconds, *price);
        if (questions.spend > 0) one["part_for_spend"] = json_of(part_for(questions.spend, cost));
        if (questions.retrain_seconds > 0) one["cost_a_month"] = json_of(cost * (kMonth / questions.retrain_seconds));
      }
    }
    one["source"] = machine.source;
    list.push_back(std::move(one));
  }
  json["assumptions"] = assumptions(plan);
  json["deployment_notes"] = deployment_notes(plan.job.model);
}

std::string machines_text(const Plan& plan, const PlanQuestions& questions) {
  const MachineTable& table = *questions.machines;
  Cells head = {"MACHINE", "REGION", "TIME", "WIDTH"};
  if (!plan.job.steps) head.emplace_back("STEPS");
  head.emplace_back("ON DEMAND");
  head.emplace_back("SPOT");
  if (questions.spend > 0) head.push_back("FOR " + money_text(questions.spend));
  if (questions.retrain_seconds > 0) head.emplace_back("A MONTH");
  head.emplace_back("LIMIT");
  std::vector<Cells> rows = {head};
  for (const Elsewhere& there : elsewhere(plan, table)) rows.push_back(cells_of(there, plan, questions));
  std::string text = "\non other machines, estimated; a cost is as uncertain as its time. Prices in " + table.currency +
                     " of " + table.date + " change: check them\n" + aligned(rows);
  for (const std::string& one : assumptions(plan)) text += "assumed: " + one + "\n";
  for (const std::string& one : deployment_notes(plan.job.model)) text += "note: " + one + "\n";
  return text;
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
  const Estimate cost = cost_of(plan.seconds, questions.price);
  if (questions.price > 0) text += row("cost", cost, money_text);
  if (questions.price > 0 && questions.spend > 0) {
    text += row("for " + money_text(questions.spend), part_for(questions.spend, cost), percent_text);
    text += row("  steps", steps_within(plan, questions.spend / questions.price * kHour), short_count);
  }
  if (questions.retrain_seconds > 0) {
    const double times = kMonth / questions.retrain_seconds;
    text += row("a month", plan.seconds * times, duration_text);
    if (questions.price > 0) text += row("  cost", cost * times, money_text);
  }
  const double own = job.steps ? 0 : job.max_seconds;
  if (const double within = questions.within_seconds > 0 ? questions.within_seconds : own; within > 0) {
    const Estimate steps = steps_within(plan, within);
    text += row("steps in " + short_seconds(within), steps, short_count);
    const auto epochs = static_cast<double>(job.steps_per_epoch);
    text += row("  epochs", Estimate{steps.expected / epochs, steps.low / epochs, steps.high / epochs}, short_count);
  }
  if (const std::string work = complexity(job); !work.empty()) text += "work: " + work + "\n";
  for (const std::string& note : notes_of(plan)) text += "note: " + note + "\n";
  for (const std::string& note : answers_of(plan, questions)) text += "note: " + note + "\n";
  if (questions.machines) text += machines_text(plan, questions);
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
  const Estimate cost = cost_of(plan.seconds, questions.price);
  if (questions.price > 0) json["cost"] = json_of(cost);
  if (questions.price > 0 && questions.spend > 0) {
    json["part_for_spend"] = json_of(part_for(questions.spend, cost));
    json["steps_for_spend"] = json_of(steps_within(plan, questions.spend / questions.price * kHour));
  }
  if (questions.retrain_seconds > 0) {
    json["seconds_a_month"] = json_of(plan.seconds * (kMonth / questions.retrain_seconds));
    if (questions.price > 0) json["cost_a_month"] = json_of(cost * (kMonth / questions.retrain_seconds));
  }
  if (questions.within_seconds > 0) json["steps_within"] = json_of(steps_within(plan, questions.within_seconds));
  json["work"] = complexity(job);
  json["notes"] = notes_of(plan);
  for (const std::string& note : answers_of(plan, questions)) json["notes"].push_back(note);
  if (questions.machines) add_machines(json, plan, questions);
  return dump_json(json, 2) + "\n";
}

}  // namespace sinew::advise
