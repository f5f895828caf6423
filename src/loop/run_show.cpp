// Shows a run's progress: lines of metrics, the live line, and status facts for users.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/atomic_write.h"
#include "base/fenced_disk.h"
#include "base/json_text.h"
#include "base/short_number.h"
#include "loop/one_run.h"
#include "rundir/rundir.h"

namespace sinew::loop {

std::string metrics_text(const report::Metrics& metrics) {
  std::string line;
  for (const auto& [name, value] : metrics) {
    if (report::is_detail(name)) continue;
    line.append("  ").append(name).append(" ").append(short_number(value));
  }
  return line;
}

void Run::log_window(bool evaluated) {
  report::Metrics metrics = logged_means_ = window_.means(plan_.data.task != data::Task::regression);
  for (const auto& [from, to] : {std::pair{"lr", "train/learning_rate"}, std::pair{"grad_norm", "train/grad_norm"}}) {
    if (window_.sums.contains(from)) metrics[to] = window_.sums.at(from);
  }
  if (evaluated) {
    for (const auto& [name, value] : state().evaluation.last) {
      if (name.starts_with("val/")) metrics[name] = value;
    }
  }
  const double at = now();
  if (at > rate_began_ && state().samples > rate_samples_) {
    samples_per_second_ = static_cast<double>(state().samples - rate_samples_) / (at - rate_began_);
    metrics["throughput/samples_per_sec"] = samples_per_second_;
  }
  rate_began_ = at;
  rate_samples_ = state().samples;
  reporter_->metrics(state().step, state().samples, metrics);
  window_.sums.clear();
}

double Run::epochs() const {
  const double samples = static_cast<double>(std::max<int64_t>(1, plan_.data.train_size));
  return static_cast<double>(state().cursor.epoch) + static_cast<double>(state().cursor.offset) / samples;
}

// A trace is never worth a run: if the disk does not take it, there is none. While this process may not write, the
// trace waits.
void Run::keep_trace(std::optional<std::string> trace) {
  if (trace) trace_ = std::move(trace);
  if (!trace_ || !is_leader()) return;
  FencedDisk fenced(disk_, [this] { return may_write(); });
  try {
    fenced.check_may_write();
    write_durably(fenced, rundir::file_in(options_.run_directory, rundir::kTraceFile), *trace_);
  } catch (const MayNotWrite&) {
    return;
  } catch (const DiskError& trouble) {
    reporter_->say(report::Level::warning, "trace_failed", std::string("the run has no trace: ") + trouble.what());
  }
  trace_.reset();
}

// Publishes what this worker has spent so far. It takes about a millisecond, and is never worth a run.
void Run::keep_accounts() {
  constexpr double kEverySeconds = 5;
  if (options_.accounts == nullptr || !is_leader() || now() < next_accounts_) return;
  next_accounts_ = now() + kEverySeconds;
  rundir::Outcome so_far;
  so_far.status = rundir::kRunning;
  so_far.job = plan_.job.name;
  so_far.started_wall_seconds = options_.began.wall_seconds;
  so_far.seconds = elapsed();
  so_far.steps = state().step.value;
  so_far.samples = state().samples;
  so_far.epochs = epochs();
  so_far.experiments = experimenter_.results();
  options_.accounts->add_to(so_far);
  FencedDisk fenced(disk_, [this] { return may_write(); });
  try {
    fenced.check_may_write();
    write_atomically(fenced, rundir::file_in(options_.run_directory, rundir::kAccountsFile),
                     rundir::outcome_json(so_far));
  } catch (const MayNotWrite&) {  // the next leader publishes its own
  } catch (const DiskError&) {    // the next ones may reach the disk
  }
}

void Run::show(bool last) {
  const double at = now();
  if (last ? shown_ == state().step : at < next_show_) return;
  next_show_ = at + 0.1;
  if (!last) keep_accounts();
  if (!reporter_->reports()) return;
  shown_ = state().step;
  report::Progress progress;
  progress.step = state().step;
  progress.total_steps = total_steps_.value_or(0);
  progress.epoch = epochs();
  const spec::Duration& whole = plan_.job.trainer.max_duration;
  if (whole.unit == spec::Duration::Unit::epochs) {
    progress.total_epochs = whole.amount;
  } else if (total_steps_) {
    progress.total_epochs = static_cast<double>(*total_steps_) / static_cast<double>(lengths_.steps_per_epoch);
  }
  progress.samples = state().samples;
  progress.samples_per_second = at > rate_began_ + 0.2
                                    ? static_cast<double>(state().samples - rate_samples_) / (at - rate_began_)
                                    : samples_per_second_;
  const bool ends = !total_steps_ || state().step.value < *total_steps_;
  if (ends && pace_.steps().is_measured()) {
    const Range left = seconds_to_end();
    if (std::isfinite(left.high)) {
      progress.eta_seconds = (left.low + left.high) / 2;
      progress.eta_low_seconds = left.low;
      progress.eta_high_seconds = left.high;
    }
  }
  if (const auto best = forecast_to_show(state().outlook); ends && best) {
    progress.forecast_metric = state().outlook.metric;
    progress.forecast_low = best->low;
    progress.forecast_high = best->high;
  }
  progress.shown = window_.means(plan_.data.task != data::Task::regression);
  for (const auto& [name, value] : state().evaluation.last) {
    if (name == "val/accuracy" || name == "val/loss" || name == "val/rmse") progress.shown[name] = value;
  }
  if (progress.shown.empty()) progress.shown = logged_means_;  // the window has just begun
  reporter_->progress(progress);
  if (members_ && members_->is_leader())
    members_->report(writer_ ? writer_->status().durable : std::nullopt, facts_json(progress));
}

std::string Run::facts_json(const report::Progress& progress) const {
  nlohmann::json facts = {{"step", progress.step.value},
                          {"total_steps", progress.total_steps},
                          {"samples", progress.samples},
                          {"samples_per_second", progress.samples_per_second},
                          {"metrics", progress.shown},
                          {"precision", plan_.job.trainer.precision},
                          {"memory_format", plan_.job.trainer.memory_format}};
  if (progress.eta_seconds >= 0) {
    facts["eta_seconds"] = progress.eta_seconds;
    facts["eta_low_seconds"] = progress.eta_low_seconds;
    facts["eta_high_seconds"] = progress.eta_high_seconds;
  }
  if (!progress.forecast_metric.empty())
    facts["best_at_end"] = {{"metric", progress.forecast_metric},
                            {"low", json_number(progress.forecast_low)},
                            {"high", json_number(progress.forecast_high)}};
  return dump_json(facts);
}

}  // namespace sinew::loop
