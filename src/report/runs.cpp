// Reads run directories: a single run, all runs below a root, or the run that a user names.
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>

#include "base/disk.h"
#include "base/error.h"
#include "report/curves.h"
#include "report/lines.h"
#include "report/metric_lines.h"
#include "report/report.h"
#include "rundir/rundir.h"

namespace sinew::report {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxBroken = 100;

// Returns the text of a small file, or "" if the file is missing or unreadable. Adds an unreadable file to `problems`.
std::string read_text(const std::string& directory, const char* name, std::vector<std::string>& problems) {
  constexpr uint64_t kMaxBytes = 8 << 20;
  const std::string path = rundir::file_in(directory, name);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return "";
  const auto fail = [&](const std::string& why) {
    problems.push_back(std::string(name) + ": " + why);
    return std::string();
  };
  try {
    if (!fs::is_regular_file(path)) return fail("not a file");
    if (system_disk().size(path) > kMaxBytes) return fail("too large");
    return sinew::read_text(system_disk(), path);
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

double changed_at(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 ? static_cast<double>(facts.st_mtim.tv_sec) : 0;
}

struct Direction {
  bool lower = false;
};

void take_best(RunSummary& run, std::map<std::string, Direction>& directions, const MetricRecord& record) {
  for (const auto& [name, value] : record.values) {
    run.last[name] = value;
    if (std::isnan(value)) continue;
    const auto [known, added] = directions.try_emplace(name);
    if (added) known->second.lower = lower_is_better(name);
    const auto [best, first] = run.best.try_emplace(name, value);
    if (!first && !(known->second.lower ? value < best->second : value > best->second)) continue;
    best->second = value;
    run.best_step[name] = record.step;
  }
}

void read_metrics_of(RunSummary& run) {
  std::map<std::string, Direction> directions;
  double first = 0, last = 0;
  for (const char* file : kFilesOfMetrics) {
    try {
      for_each_record(rundir::file_in(run.directory, file), &run.problems, [&](const MetricRecord& record) {
        take_best(run, directions, record);
        run.steps = std::max(run.steps, record.step);
        run.samples = std::max(run.samples, record.samples);
        if (first == 0) first = record.wall_seconds;
        last = std::max(last, record.wall_seconds);
      });
    } catch (const Error& error) {
      run.problems.push_back(error.what());
    }
  }
  if (run.started_wall_seconds == 0) run.started_wall_seconds = first;
  if (last > run.started_wall_seconds) run.seconds = last - run.started_wall_seconds;
}

void take_outcome(RunSummary& run, const rundir::Outcome& outcome) {
  if (outcome.started_wall_seconds > 0) run.started_wall_seconds = outcome.started_wall_seconds;
  run.seconds = outcome.seconds;
  run.steps = std::max(run.steps, outcome.steps);
  run.samples = std::max(run.samples, outcome.samples);
  if (run.job.empty()) run.job = outcome.job;
  for (const auto& [name, value] : outcome.last) run.last[name] = value;
  run.folds = outcome.folds;
  run.digest = outcome.digest;
  run.error = outcome.error;
  if (outcome.best) run.monitored = {outcome.best->metric, outcome.best->value, outcome.best->step};
  if (outcome.objective) {
    run.objective = outcome.objective->text;
    run.objective_met = outcome.objective->met;
  }
}

void read_outcome_of(RunSummary& run) {
  const bool running = rundir::is_running(run.directory);
  run.status = running ? "running" : "interrupted";
  const size_t problems_before = run.problems.size();
  const std::string text = read_text(run.directory, rundir::kOutcomeFile, run.problems);
  if (text.empty()) {
    std::error_code ignored;
    if (fs::exists(rundir::file_in(run.directory, rundir::kOutcomeFile), ignored) &&
        run.problems.size() == problems_before) {
      run.problems.push_back("report.json: empty");
    }
    return;
  }
  std::string why;
  const auto outcome = rundir::parse_outcome(text, &why);
  if (!outcome) {
    run.problems.push_back("report.json: " + why);
    return;
  }
  if (!running) run.status = outcome->status;
  take_outcome(run, *outcome);
}

void read_options_of(RunSummary& run) {
  const std::string text = read_text(run.directory, rundir::kResolvedFile, run.problems);
  if (!run.problems.empty()) return;
  try {
    run.options = rundir::flat_options(text);
  } catch (const std::exception& error) {
    run.problems.push_back(std::string("resolved.yaml: ") + error.what());
  }
  if (const auto name = run.options.find("name"); name != run.options.end()) run.job = name->second;
  if (const auto goal = run.options.find("objective"); goal != run.options.end()) {
    if (goal->second != "none" && goal->second != "null" && goal->second != "~") run.objective = goal->second;
  }
}

void read_checkpoints_of(RunSummary& run) {
  std::error_code code;
  for (fs::directory_iterator it(rundir::file_in(run.directory, rundir::kCheckpoints), code), end; !code && it != end;
       it.increment(code)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with("step-")) run.checkpoints.push_back(name);
  }
  std::sort(run.checkpoints.begin(), run.checkpoints.end());
}

}  // namespace

void for_each_record(const std::string& path, std::vector<std::string>* broken,
                     const std::function<void(const MetricRecord&)>& visit) {
  size_t unnamed = 0;
  const std::string name = fs::path(path).filename().string();
  for_each_line(path, [&](const Line& line) {
    std::string why = "the line is longer than a megabyte";
    const auto record = line.too_long ? std::nullopt : parse_metrics_line(line.text, &why);
    if (record) return visit(*record);
    if (!line.whole || broken == nullptr) return;
    if (broken->size() < kMaxBroken) {
      broken->push_back(name + ":" + std::to_string(line.number) + ": " + why);
    } else {
      ++unnamed;
    }
  });
  if (unnamed > 0) broken->push_back(name + ": " + std::to_string(unnamed) + " more broken lines");
}

std::vector<MetricRecord> read_metrics(const std::string& path, std::vector<std::string>* broken) {
  std::vector<MetricRecord> records;
  for_each_record(path, broken, [&](const MetricRecord& record) { records.push_back(record); });
  return records;
}

void write_logged_metrics(Disk& disk, const std::string& directory, const LoggedMetrics& logged) {
  std::string text;
  for (const MetricRecord& record : logged.records)
    append_metrics_line(text, record.step, record.samples, record.wall_seconds, record.values);
  write_durably(disk, rundir::file_in(directory, rundir::kLoggedMetricsFile), text);
}

std::optional<RunSummary> read_run(const std::string& directory, const rundir::Outcome* outcome) {
  std::error_code code;
  if (!fs::exists(rundir::file_in(directory, rundir::kResolvedFile), code)) return std::nullopt;
  RunSummary run;
  const fs::path path = fs::path(directory).has_filename() ? fs::path(directory) : fs::path(directory).parent_path();
  run.directory = path.string();
  run.id = fs::absolute(path, code).lexically_normal().filename().string();
  run.started_wall_seconds = utc_of_compact(run.id);
  read_options_of(run);
  read_metrics_of(run);
  if (outcome != nullptr) {
    take_outcome(run, *outcome);
    run.status = outcome->status;
  } else {
    read_outcome_of(run);
    if (run.status == "running" || run.status == "interrupted") take_folds(run);
  }
  read_checkpoints_of(run);
  if (run.job.empty()) run.job = fs::absolute(path, code).lexically_normal().parent_path().filename().string();
  if (run.started_wall_seconds == 0)
    run.started_wall_seconds = changed_at(rundir::file_in(directory, rundir::kResolvedFile));
  return run;
}

std::optional<RunSummary> read_run(const std::string& directory) {
  return read_run(directory, nullptr);
}

std::vector<RunSummary> find_runs(const std::string& root) {
  std::vector<RunSummary> runs;
  for (const std::string& directory : rundir::run_directories(root)) {
    if (auto run = read_run(directory)) runs.push_back(std::move(*run));
  }
  std::sort(runs.begin(), runs.end(), [](const RunSummary& a, const RunSummary& b) {
    if (a.started_wall_seconds != b.started_wall_seconds) return a.started_wall_seconds > b.started_wall_seconds;
    return a.directory > b.directory;
  });
  return runs;
}

RunSummary pick_run(const std::string& root, const std::string& name) {
  const std::string directory = rundir::find_run(root, name);
  auto run = read_run(directory);
  if (!run) throw Error("RUN_NOT_FOUND", directory + " is gone", "'sinew runs list' shows the runs there are");
  return std::move(*run);
}

}  // namespace sinew::report
