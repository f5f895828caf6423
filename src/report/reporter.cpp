// The Reporter: shows what happens in a training on the screen, and writes it to files of the run directory.
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/disk.h"
#include "base/json_text.h"
#include "report/append_file.h"
#include "report/lines.h"
#include "report/metric_lines.h"
#include "report/progress_line.h"
#include "report/report.h"
#include "report/screen.h"
#include "report/tensorboard.h"
#include "rundir/rundir.h"

namespace sinew::report {
namespace {

constexpr double kFlushSeconds = 1.0;
constexpr double kLiveSeconds = 0.1;  // the least time between two drawings of the live line

const char* name_of(Level level) {
  switch (level) {
    case Level::info: return "info";
    case Level::warning: return "warning";
    case Level::error: return "error";
  }
  return "info";
}

}  // namespace

struct Reporter::State {
  State(ReporterOptions given, Disk& the_disk, Clock& the_clock)
      : options(std::move(given)),
        disk(the_disk),
        clock(the_clock),
        screen(options),
        metrics(disk, file(rundir::kMetricsFile), options.may_write,
                [this] { return go_on(rundir::kMetricsFile, newest_metrics); }),
        log(disk, file(rundir::kLogFile), options.may_write, [this] { return go_on_with_log(); }),
        ledger(disk, file(rundir::kLedgerFile), options.may_write,
               [this] { return go_on(rundir::kLedgerFile, newest_ledger); }) {}

  std::string file(const char* name) const { return rundir::file_in(options.directory, name); }
  std::unique_ptr<Disk::File> go_on(const char* name, int64_t& newest);
  std::unique_ptr<Disk::File> go_on_with_log();
  bool already_written(Step at, const Metrics& values) const;
  void open_events();
  void flush_files();
  void flush_when_due();
  void warn_about_failed_files();
  void show(const Progress& progress, bool last);
  void say(Level level, const std::string& event, const std::string& text, const Metrics& metrics);

  // Returns all files, in the order in which trouble() lists their errors. Without TensorBoard, the log is in the list
  // twice.
  std::vector<AppendFile*> files() { return {&metrics, &ledger, events ? &*events : &log, &log}; }

  ReporterOptions options;
  Disk& disk;
  Clock& clock;
  Screen screen;
  AppendFile metrics, log, ledger;
  std::optional<AppendFile> events;                 // the file of TensorBoard events
  std::optional<Step> step;                         // the step of the last call that named one
  int64_t newest_metrics = -1, newest_ledger = -1;  // last steps that another process or an earlier attempt has written
  bool has_hparams = false, finished = false;
  double flushed_at = 0;
  std::optional<double> shown_at;
  std::optional<Progress> unshown;        // the newest progress that the line has not shown yet
  std::vector<std::string> warned_about;  // paths of the files for which a warning was printed
  std::string line;                       // reused buffer
};

// Opens the metrics or the ledger of an earlier attempt or of another process, without the records that this attempt
// will repeat. Sets `newest` to the step of the newest record that stays, if this process goes on with the run.
std::unique_ptr<Disk::File> Reporter::State::go_on(const char* name, int64_t& newest) {
  const Step step_kept =
      options.resumed_at.value_or(Step(std::numeric_limits<int64_t>::max()));  // max: drops only incomplete last lines
  const bool goes_on = options.takes_over || options.resumed_at;
  return go_on_after(disk, file(name), step_kept, [&](std::string_view text) {
    const auto line_step = step_of_line(text);
    if (goes_on && line_step && *line_step <= step_kept.value) newest = std::max(newest, *line_step);
    return line_step;
  });
}

std::unique_ptr<Disk::File> Reporter::State::go_on_with_log() {
  return go_on_after(
      disk, file(rundir::kLogFile), Step(std::numeric_limits<int64_t>::max()),
      [](std::string_view text) { return text.ends_with('}') ? std::optional<int64_t>(0) : std::nullopt; });
}

// Returns whether another process or attempt has already written these metrics of this step. It is not enough to
// compare steps: the final test of a model writes a line for an earlier step, which may already have a line of an
// evaluation. So the file must have all names. Throughput differs between processes, so a missing throughput alone
// makes no new record.
bool Reporter::State::already_written(Step at, const Metrics& values) const {
  if (at.value > newest_metrics) return false;
  std::set<std::string> names;
  try {
    for_each_line(disk, metrics.path(), [&](const Line& line) {
      if (line.too_long || step_of_line(line.text) != at.value) return;
      const auto record = parse_metrics_line(line.text);
      for (const auto& [name, value] : record ? record->values : Metrics()) names.insert(name);
    });
  } catch (const DiskError&) {
    return false;  // a record that is written twice is better than one that is lost
  }
  return std::all_of(values.begin(), values.end(), [&](const auto& value) {
    return names.contains(value.first) || value.first.starts_with("throughput/");
  });
}

void Reporter::State::open_events() {
  if (!options.tensorboard) return;
  const double now = clock.wall_seconds();
  const auto end_earlier_session = [this]() -> std::unique_ptr<Disk::File> {
    try {
      cut_session_end(disk, options.directory);
    } catch (const DiskError& error) {
      events->fail(text_with_hint(error));  // the new file does not depend on it
    }
    return nullptr;
  };
  events.emplace(disk, new_event_path(disk, options.directory, now), options.may_write, end_earlier_session);
  events->append(version_record(now));
  metrics.flush();  // sets newest_metrics if this process may write
  const int64_t kept = options.resumed_at ? options.resumed_at->value : options.takes_over ? newest_metrics : -1;
  events->append(session_start_record(now, kept + 1));
}

void Reporter::State::flush_files() {
  for (AppendFile* file : files()) file->flush();  // drops old records even if there is nothing to write
  flushed_at = clock.monotonic_seconds();
  warn_about_failed_files();
}

void Reporter::State::flush_when_due() {
  if (clock.monotonic_seconds() - flushed_at >= kFlushSeconds) flush_files();
}

void Reporter::State::warn_about_failed_files() {
  for (AppendFile* file : files()) {
    const std::string trouble = file->trouble();
    if (trouble.empty() || std::find(warned_about.begin(), warned_about.end(), file->path()) != warned_about.end())
      continue;
    warned_about.push_back(file->path());
    say(Level::warning, "disk", trouble + "; training continues, and Sinew tries to write again every second", {});
  }
}

void Reporter::State::say(Level level, const std::string& event, const std::string& text, const Metrics& metrics) {
  nlohmann::ordered_json json = {{"ts", utc_iso(clock.wall_seconds())}, {"level", name_of(level)}, {"event", event}};
  if (step) json["step"] = step->value;
  json["text"] = text;
  for (const auto& [name, value] : metrics) json["metrics"][name] = json_number(value);
  const std::string written = dump_json(json);
  log.append(written + "\n");
  log.flush();
  if (options.format == LogFormat::json) {
    screen.line(written);
  } else {
    screen.message(level, text);
  }
}

void Reporter::State::show(const Progress& progress, bool last) {
  shown_at = clock.monotonic_seconds();
  unshown.reset();
  if (options.format == LogFormat::json) {
    nlohmann::ordered_json json = {{"ts", utc_iso(clock.wall_seconds())}, {"level", "info"}, {"event", "progress"}};
    json.update(progress_json(progress));
    screen.line(dump_json(json));
  } else if (screen.has_live_line()) {
    screen.live(
        [progress, color = screen.color()](int columns) { return progress_line(progress, columns, true, color); });
  } else {
    screen.line(progress_line(progress, screen.columns(), false, false));
  }
  if (last) screen.end_live();
}

Reporter::Reporter(ReporterOptions options, Disk& disk, Clock& clock)
    : state_(std::make_unique<State>(std::move(options), disk, clock)) {
  state_->open_events();
  state_->flush_files();
}

// No exception may leave a destructor: not WriterReplaced, and not the one that ends a simulated process.
Reporter::~Reporter() {
  try {
    flush();
  } catch (...) {
  }
}

void Reporter::hparams(const std::map<std::string, std::string>& values) {
  if (!state_->events || state_->has_hparams) return;
  state_->has_hparams = true;
  state_->events->append(hparams_record(state_->clock.wall_seconds(), values));
  state_->flush_when_due();
}

void Reporter::metrics(Step step, int64_t samples, const Metrics& values) {
  State& state = *state_;
  state.step = step;
  if (values.empty() || state.already_written(step, values)) return;
  const double now = state.clock.wall_seconds();
  state.line.clear();
  append_metrics_line(state.line, step.value, samples, now, values);
  state.metrics.append(state.line);
  if (state.events) state.events->append(scalars_record(now, step.value, values));
  state.flush_when_due();
}

void Reporter::progress(const Progress& progress) {
  State& state = *state_;
  state.step = progress.step;
  const bool live = state.screen.has_live_line() && state.options.format == LogFormat::human;
  const double interval = live ? kLiveSeconds : state.options.plain_interval_seconds;
  if (!state.shown_at || state.clock.monotonic_seconds() - *state.shown_at >= interval) {
    state.show(progress, false);
  } else {
    state.unshown = progress;
  }
  state.flush_when_due();
}

void Reporter::say(Level level, const std::string& event, const std::string& text, const Metrics& metrics) {
  state_->say(level, event, text, metrics);
  state_->flush_when_due();
  state_->warn_about_failed_files();
}

void Reporter::pass_on(std::string_view line, bool errors) {
  State& state = *state_;
  if (state.options.format == LogFormat::json) {
    nlohmann::ordered_json json = {{"ts", utc_iso(state.clock.wall_seconds())},
                                   {"level", "info"},
                                   {"event", "output"},
                                   {"stream", errors ? "stderr" : "stdout"},
                                   {"text", line}};
    state.screen.line(dump_json(json));
  } else {
    state.screen.pass_on(line, errors);
  }
  state.flush_when_due();
}

void Reporter::ledger(Step step, Digest digest) {
  if (!state_->options.ledger || step.value <= state_->newest_ledger) return;
  state_->line.clear();
  append_ledger_line(state_->line, step.value, digest);
  state_->ledger.append(state_->line);
  state_->flush_when_due();
}

void Reporter::finish(bool success) {
  if (std::exchange(state_->finished, true)) return;
  // Do not show the delayed progress if a later step was reported meanwhile.
  const std::optional<Progress> unshown = std::exchange(state_->unshown, std::nullopt);
  if (unshown && unshown->step >= state_->step) state_->show(*unshown, true);
  state_->screen.end_live();
  if (state_->events && state_->has_hparams) {
    state_->events->append(session_end_record(state_->clock.wall_seconds(), success));
  }
  flush();
}

void Reporter::flush() {
  state_->flush_files();
}

bool Reporter::waits_to_begin() const {
  return std::ranges::any_of(state_->files(), &AppendFile::waits_to_go_on);
}

bool Reporter::waits_for_permission() const {
  return std::ranges::any_of(state_->files(), &AppendFile::waits_for_permission);
}

std::string Reporter::trouble() const {
  std::string all;
  for (AppendFile* file : state_->files()) {
    const std::string trouble = file->trouble();
    if (trouble.empty() || all.find(trouble) != std::string::npos) continue;
    all += (all.empty() ? "" : "; ") + trouble;
  }
  return all;
}

}  // namespace sinew::report
