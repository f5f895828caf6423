// Implements `sinew advise JOB`, which trains a job for some seconds and says what limits it. With --apply it also
// changes the options of the job, and trains it again to see what they gain.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "base/clock.h"
#include "base/disk.h"
#include "base/exit_code.h"
#include "base/printable.h"
#include "base/process.h"
#include "base/short_number.h"
#include "base/terminal.h"
#include "base/terminal_text.h"
#include "sandbox/sandbox.h"
#include "spec/spec.h"
#include "train/train.h"
#include "worker/scratch.h"
#include "worker/tasks.h"

namespace sinew::worker {
namespace {

constexpr double kWarmUpSeconds = 3;
constexpr double kExperimentSeconds = 20;  // at most; it ends when it is made

// Removes what a short run has left. A confined process cannot remove the folders themselves.
void clear(const std::string& directory) {
  Disk& disk = system_disk();
  for (const Disk::Entry& entry : disk.list(directory)) {
    const std::string path = directory + "/" + entry.name;
    if (entry.name == rundir::kLockFile) continue;
    if (!entry.directory) {
      disk.remove_file(path);
      continue;
    }
    for (const Disk::Entry& inner : disk.list(path)) {
      if (inner.directory) {
        disk.remove_all(path + "/" + inner.name);
      } else {
        disk.remove_file(path + "/" + inner.name);
      }
    }
  }
}

struct Place {
  const std::string& directory;  // of the short runs
  const rundir::RunLock& lock;
};

// The options of a short run, in a directory that has become empty.
train::RunOptions prepare(const task::Advise& task, const spec::Job& job, const Place& place,
                          const std::string& doing) {
  if (!task.json && terminal_of(STDERR_FILENO).present) print_text(stderr, "trains " + doing + " ...\n");
  clear(place.directory);
  train::RunOptions options;
  options.job = job;
  options.run_directory = place.directory;
  options.lock = &place.lock;
  options.stop_signals = &stop_signals;
  return options;
}

train::MeasuredJob measure(const task::Advise& task, const spec::Job& job, const Place& place, double seconds,
                           const std::string& doing, bool operators) {
  const auto options = prepare(task, job, place, "for " + short_seconds(seconds) + " " + doing);
  return train::measure_job(options, seconds, operators, system_clock());
}

// Of the conditions under which a step could be faster or slower. There is none if a step takes too long.
std::vector<ConditionTime> experiment(const task::Advise& task, const spec::Job& job, const Place& place) {
  if (stop_signals.load() > 0) return {};
  const auto options = prepare(task, job, place, "for an experiment");
  try {
    return train::experiment_with(options, std::max(kExperimentSeconds, task.seconds), system_clock());
  } catch (const Error& error) {
    if (error.code != ErrorCode("PLAN_STOPPED")) throw;
    return {};  // the job was measured before
  }
}

void show(const std::string& text) {
  print_text(stdout, printable(text, true));
  std::fflush(stdout);
}

// What the remedies change, with the values of the options so far.
std::vector<advise::Applied::Change> changes_of(const std::vector<advise::Remedy>& remedies, const spec::Job& job) {
  const auto before = spec::flat_values(spec::to_yaml(job)).value_or(std::map<std::string, std::string>());
  std::vector<advise::Applied::Change> changes;
  for (const advise::Remedy& remedy : remedies) {
    for (const std::string& option : remedy.options) {
      const size_t equals = option.find('=');
      const std::string key = option.substr(0, equals);
      const auto found = before.find(key);
      changes.push_back({key, found == before.end() ? "auto" : found->second, option.substr(equals + 1), remedy.what});
    }
  }
  return changes;
}

// Writes the job with the changes, and measures it again.
void apply(const task::Advise& task, const std::string& yaml, const Place& place, sandbox::OutsideFile& file,
           advise::Applied& applied) {
  std::vector<std::string> overrides;
  spec::Reasons reasons;
  for (const auto& change : applied.changes) {
    overrides.push_back(change.key + "=" + change.after);
    reasons[change.key] = change.reason;
  }
  const std::string text = spec::with_options(yaml, task.job, overrides, reasons, own_environment());
  const spec::Job job = read_job_text(text, task.output, {});
  applied.after = measure(task, job, place, task.seconds, "with the changes", false).samples_per_second;
  file.write(text);
  file.commit();
  applied.file = task.output;
}

}  // namespace

int run_advise(const task::Advise& task) {
  const Scratch scratch;
  const rundir::RunLock lock = train::lock_run(scratch.path());
  const Place place{scratch.path(), lock};
  // the overrides first, so that a change of the same option replaces them
  const std::string yaml =
      spec::with_options(read_text(system_disk(), task.job), task.job, task.overrides, {}, own_environment());
  const spec::Job job = read_job_text(yaml, task.job, {});
  std::optional<sandbox::OutsideFile> file;
  if (task.apply) file.emplace(task.output, sandbox::OutsideFile::Kind::output);
  if (task.sandbox) sandbox::confine({.run_directory = scratch.path(), .memory_bytes = task.sandbox->memory_bytes});
  // the first run of a process is slower than later ones, which would look like a gain
  if (task.apply) measure(task, job, place, std::min(task.seconds, kWarmUpSeconds), "to warm up", false);
  train::MeasuredJob before = measure(task, job, place, task.seconds, "to measure the job", true);
  before.record.experiments = experiment(task, before.job, place);
  if (job.trainer.precision == spec::kFastest)
    before.job.trainer.precision = spec::kFastest;  // it needs no such remedy
  advise::Verdict verdict = advise::judge(before.record, &before.job);
  verdict.samples_per_second = before.samples_per_second;
  if (!task.json) show(advise::verdict_text(verdict, before.record.time));
  if (!task.apply) {
    if (task.json) show(advise::verdict_json(verdict));
    flush_stdout();
    return kDone;
  }
  const std::vector<advise::Remedy> remedies = advise::to_apply(verdict, task.change_result);
  advise::Applied applied{.changes = changes_of(remedies, before.job),
                          .predicted = advise::together(remedies),
                          .before = before.samples_per_second,
                          .after = before.samples_per_second};
  if (!task.json) show(advise::applied_text(applied));
  if (!remedies.empty()) {
    apply(task, yaml, place, *file, applied);
    if (!task.json) show(advise::measured_text(applied));
  }
  if (task.json) show(advise::applied_json(verdict, applied));
  flush_stdout();
  return kDone;
}

}  // namespace sinew::worker
