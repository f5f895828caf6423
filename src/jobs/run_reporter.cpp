#include "jobs/run_reporter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/disk.h"
#include "base/joined.h"
#include "rundir/rundir.h"

namespace sinew::jobs {
namespace {

constexpr size_t kMostShown = 4;      // most metrics in the live line
constexpr size_t kMostHeld = 10'000;  // the most lines of one step that are held back

// Returns the command as a user would type it, on one line of limited length.
std::string as_typed(const std::vector<std::string>& words) {
  constexpr size_t kMost = 200;
  std::string text = joined(words, " ", [](const std::string& word) {
    const bool plain = !word.empty() && word.find_first_of(" \t\n'\"$`\\*?;|&<>()") == std::string::npos;
    return plain ? word : "'" + word + "'";
  });
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (text.size() <= kMost) return text;
  text.resize(kMost);
  text += " ...";
  return text;
}

}  // namespace

RunReporter::RunReporter(const CommandRun& run, std::string directory, Clock& clock)
    : run_(run), directory_(std::move(directory)), clock_(clock) {
  open_reporter(std::nullopt);
  restore_watch();
}

void RunReporter::open_reporter(std::optional<int64_t> resumed_at) {
  reporter_.reset();  // the old reporter writes its records before the new one drops records
  report::ReporterOptions options;
  options.directory = directory_;
  options.format = run_.format;
  options.terminal = run_.terminal;
  options.output = run_.output;
  options.errors = run_.errors;
  options.tensorboard = run_.job.logging.tensorboard;
  if (resumed_at) options.resumed_at = Step(*resumed_at);
  reporter_ = std::make_unique<report::Reporter>(options, system_disk(), clock_);
  std::map<std::string, std::string> params;
  for (const spec::NamedValue& param : run_.job.command.params) params[param.name] = param.value;
  if (!params.empty()) reporter_->hparams(params);
}

// Restores the metric watch from the records of earlier attempts.
void RunReporter::restore_watch() {
  watch_.emplace(run_.job);
  newest_step_ = -1;
  samples_ = 0;
  for (const report::MetricRecord& record : report::read_metrics(rundir::file_in(directory_, rundir::kMetricsFile))) {
    newest_step_ = std::max(newest_step_, record.step);
    samples_ = std::max(samples_, record.samples);
    watch_->take(record.step, record.values);
  }
}

void RunReporter::attempt_begins(int64_t attempt, const std::vector<std::string>& command,
                                 const std::string& resume_from) {
  newest_before_ = newest_step_;
  settled_ = false;
  broken_ = 0;
  say(report::Level::info, "attempt-begin",
      (attempt == 1 ? run_.job.name + ": " : "attempt " + std::to_string(attempt) + ": ") + as_typed(command) +
          (resume_from.empty() ? "" : "\nresumes from " + resume_from));
  if (attempt == 1) say(report::Level::info, "run-directory", "run directory: " + run_.directory);
}

void RunReporter::attempt_ends(int64_t attempt, const AttemptResult& result, int64_t lost_bytes, bool another_follows) {
  settle(std::nullopt);
  if (broken_ > 1) {
    say(report::Level::warning, "broken-metrics",
        std::to_string(broken_) + " lines looked like metrics but could not be parsed; they were treated as text");
  }
  if (lost_bytes > 0)
    say(report::Level::warning, "disk", std::to_string(lost_bytes) + " bytes of output could not be written");
  const std::string text = "attempt " + std::to_string(attempt) + ": " + result.why;
  if (another_follows) {
    say(report::Level::warning, "attempt-end", text);
  } else {
    reporter_->flush();
  }
}

void RunReporter::note_broken(const std::string& why) {
  if (++broken_ == 1) say(report::Level::warning, "broken-metrics", "a line looks like metrics, but " + why);
}

std::optional<MetricWatch::Verdict> RunReporter::take_line(std::string_view text, bool file, bool& taken) {
  MetricLine line = read_metric_line(text);
  taken = line.kind == MetricLine::Kind::metrics;
  if (line.kind == MetricLine::Kind::broken || (file && !taken && !text.empty()))
    note_broken(line.why.empty() ? "has neither a step nor only numbers" : line.why);
  if (!taken) return std::nullopt;
  if (line.step && !settled_) {
    const bool behind_all = held_.empty() && *line.step > newest_before_;
    const bool second = !held_.empty() && line.step != held_.front().step;
    if (behind_all || second || held_.size() >= kMostHeld) settle(line.step);
  }
  if (!settled_ && (line.step || !held_.empty())) {
    held_.push_back(std::move(line));
    return std::nullopt;
  }
  return record(line);
}

// Decides which records an attempt replaces. An attempt that resumes from a checkpoint repeats steps, so the old
// records of these steps must be dropped. The attempt's second step shows where it resumed. Its first step does not
// show this: the command may evaluate the model before it continues, and call that step 0. `second` is nullopt if the
// attempt ended without a second step.
void RunReporter::settle(std::optional<int64_t> second) {
  settled_ = true;
  if (held_.empty()) return;
  const std::vector<MetricLine> held = std::exchange(held_, {});
  const int64_t first = *held.front().step, next = second.value_or(std::numeric_limits<int64_t>::max());
  int64_t from = std::min(first, next);
  bool stands = false;  // true: an earlier attempt already has a record of the first step
  reporter_->flush();
  for (const report::MetricRecord& old : report::read_metrics(rundir::file_in(directory_, rundir::kMetricsFile))) {
    stands = stands || old.step == first;
    if (old.step > first && old.step < next) from = next;
  }
  if (from <= newest_step_) {
    open_reporter(from - 1);
    restore_watch();
  }
  if (stands && first < from) return;
  for (const MetricLine& line : held) record(line);
}

std::optional<MetricWatch::Verdict> RunReporter::record(const MetricLine& line) {
  const int64_t step = line.step.value_or(newest_step_ + 1);
  newest_step_ = std::max(newest_step_, step);
  samples_ = std::max(samples_, line.samples.value_or(0));
  if (line.epoch) epoch_ = *line.epoch;
  reporter_->metrics(Step(step), samples_, line.values);
  fresh_ = true;
  show(line, step);
  return watch_->take(step, line.values);
}

void RunReporter::show(const MetricLine& line, int64_t step) {
  report::Progress progress;
  progress.step = Step(step);
  progress.samples = samples_;
  if (std::isfinite(epoch_)) progress.epoch = epoch_;
  for (const auto& [name, value] : line.values) {
    if (progress.shown.size() < kMostShown) progress.shown[name] = value;
  }
  reporter_->progress(progress);
}

void RunReporter::say(report::Level level, const std::string& event, const std::string& text) {
  reporter_->say(level, event, text);
}

void RunReporter::tick() {
  if (std::exchange(fresh_, false)) reporter_->flush();
}

void RunReporter::keep_logged_metrics(const std::string& server_run_id) {
  std::set<std::string> printed;  // the server knows these from metrics.jsonl
  for (const auto& [name, value] : watch_->last()) printed.insert(name);
  const auto logged = run_.logged(server_run_id, printed);
  const std::string& trouble = logged ? logged->left_out : logged.error();
  if (!trouble.empty())
    say(report::Level::warning, "server",
        "the run directory lacks metrics that were logged at " + run_.server + ": " + trouble);
  if (logged && !logged->records.empty()) report::write_logged_metrics(system_disk(), directory_, *logged);
}

void RunReporter::finish(const End& end) {
  const bool failed = end.status == "failed";
  reporter_->finish(end.status == "done");
  const double seconds = clock_.wall_seconds() - started_;
  rundir::Outcome outcome;
  outcome.status = end.status;
  outcome.exit_code = end.code;
  outcome.job = run_.job.name;
  outcome.started_wall_seconds = started_;
  outcome.seconds = std::max(0.0, seconds);
  outcome.steps = std::max<int64_t>(0, newest_step_);
  outcome.samples = samples_;
  outcome.epochs = std::isfinite(epoch_) ? epoch_ : 0;
  outcome.best = watch_->best();
  outcome.objective = watch_->objective();
  outcome.last = watch_->last();
  if (failed) outcome.error = end.why;
  if (failed) outcome.hint = end.hint;
  reporter_->flush();
  if (const std::string trouble = report::keep_run_page(system_disk(), directory_, outcome); !trouble.empty())
    say(report::Level::warning, "page_failed", "the run has no report.html: " + trouble);
  write_durably(system_disk(), rundir::file_in(directory_, rundir::kOutcomeFile), rundir::outcome_json(outcome));
  say(failed ? report::Level::error : report::Level::info, "run-end",
      end.status + ": " + end.why + (failed && !end.hint.empty() ? "\n  try: " + end.hint : ""));
  reporter_->flush();
}

}  // namespace sinew::jobs
