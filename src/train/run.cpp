// A training run of the engine: opens what the loop needs, joins the group, and runs the loop.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/fenced_disk.h"
#include "base/machine.h"
#include "rundir/rundir.h"
#include "train/engine_trainer.h"

namespace sinew::train {
namespace {

int terminal_columns() {
  const char* columns = std::getenv("COLUMNS");
  return columns != nullptr && std::atoi(columns) > 20 ? std::atoi(columns) : 100;
}

rundir::RunLock take_lock(const std::string& run_directory) {
  auto lock = rundir::RunLock::take(run_directory);
  if (!lock) throw Error("RUN_IN_USE", lock.error(), "wait for that process to end, stop it, or use another --run-dir");
  return std::move(*lock);
}

// Decides every auto and writes the decisions into the run directory.
Resolved resolve_in_run(const RunOptions& options, const data::DataInfo& info, Disk& disk) {
  Machine machine = this_machine();
  machine.cores = std::max<int64_t>(1, machine.cores / std::max<int64_t>(1, options.workers_here));
  Resolved resolved = resolve(options.job, info, machine);
  resolved.written.tune = {};  // training does not use it
  write_durably(disk, rundir::file_in(options.run_directory, rundir::kResolvedFile),
                spec::to_yaml(resolved.written, resolved.reasons));
  write_durably(disk, rundir::file_in(options.run_directory, rundir::kEnvironmentFile), environment_json(machine));
  return resolved;
}

// Throws Error if the job has no step or no schedule, before this worker joins the others.
void check_lengths(const spec::Job& job, const data::DataInfo& info) {
  loop::Schedule(job.scheduler, loop::lengths_of(job, info.train_size, info.tokens_per_sample));
}

Identity identity_of(const Resolved& resolved, const data::DataInfo& info, Engine& engine) {
  const Digest parts[] = {digest_of(spec::to_yaml(resolved.written, {})), info.digest,
                          digest_of(engine.replica(0).identity())};
  return {to_hex(digest_of(std::span(parts))), numerics_json(), to_hex(engine.probe())};
}

loop::RunOptions loop_options(const RunOptions& options, loop::BeginTime began, const rundir::RunPlace& place) {
  loop::RunOptions wanted{.run_directory = options.run_directory, .resume = options.resume, .ledger = options.ledger};
  wanted.screen.format = options.log_format;
  wanted.screen.terminal = isatty(STDOUT_FILENO) == 1 && options.log_format == report::LogFormat::human;
  wanted.screen.color = wanted.screen.terminal && std::getenv("NO_COLOR") == nullptr;
  wanted.screen.columns = terminal_columns();
  wanted.stop_signals = options.stop_signals;
  wanted.checkpoint_signals = options.checkpoint_signals;
  wanted.on_work = options.on_work;
  wanted.began = began;
  wanted.place_lost = [&place] { return place.lost(); };
  return wanted;
}

// The disk, as long as the run's path leads to the run's directory.
FencedDisk disk_of(const rundir::RunPlace& place, Disk& disk) {
  return {disk, [&place] { return place.lost().empty(); }, FencedDisk::Checks::creations};
}

RunResult run_in_place(const RunOptions& options, const loop::BeginTime& began, const rundir::RunPlace& place,
                       Disk& disk, Clock& clock) {
  const auto data = open_data(options.job);
  const Resolved resolved = resolve_in_run(options, data->info(), disk);
  check_lengths(resolved.job, data->info());
  EngineTrainer trainer(resolved, *data, options.run_directory, options.on_work, disk);
  std::unique_ptr<Membership> membership;
  if (options.join) {
    membership = options.join(identity_of(resolved, data->info(), trainer.engine()));
    trainer.engine().set_reducer(membership->reducer());
  }
  return loop::run(trainer.plan(), loop_options(options, began, place), trainer,
                   membership ? &membership->members() : nullptr, disk, clock);
}

}  // namespace

RunResult run(const RunOptions& options, Disk& disk, Clock& clock) {
  const loop::BeginTime began = loop::begin_time(clock);
  if (options.join) {  // the supervisor of the workers holds the lock
    const rundir::RunPlace place(options.run_directory);
    FencedDisk here = disk_of(place, disk);
    return run_in_place(options, began, place, here, clock);
  }
  const rundir::RunLock lock = take_lock(options.run_directory);
  const rundir::RunPlace place(options.run_directory, lock.descriptor());
  FencedDisk here = disk_of(place, disk);
  rundir::remove_abandoned_writes(here, options.run_directory);
  // Another process may have run here since the user's command checked the directory.
  if (!options.resume && rundir::is_run(options.run_directory))
    throw UsageError("RUN_EXISTS", options.run_directory + " already holds a run",
                     "resume it: sinew resume " + options.run_directory + "; or name another --run-dir");
  const rundir::Attempt attempt{options.run_directory, options.job.name, began.wall_seconds,
                                rundir::report_text(disk, options.run_directory)};
  try {
    return run_in_place(options, began, place, here, clock);
  } catch (const Error& error) {
    // A run that fails before its loop can report it leaves a report, too. But a mistake on the command line says
    // nothing about a run that has a report.
    const bool says_something = attempt.report_at_begin.empty() || dynamic_cast<const UsageError*>(&error) == nullptr;
    if (says_something && place.lost().empty())
      rundir::report_failed_attempt(disk, attempt, error.what(), error.hint, clock.wall_seconds());
    throw;
  } catch (const std::exception& error) {
    const auto shortage = shortage_of(error);
    if (!shortage) throw;
    if (place.lost().empty()) {
      rundir::report_failed_attempt(disk, attempt, shortage->what(), shortage->hint, clock.wall_seconds());
    }
    throw *shortage;
  }
}

}  // namespace sinew::train
