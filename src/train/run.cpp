// Runs one training with an engine: opens what the loop needs, joins the group, and runs the loop.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/energy.h"
#include "base/error.h"
#include "base/exit_code.h"
#include "base/fenced_disk.h"
#include "base/machine.h"
#include "base/resource_use.h"
#include "base/stage_timer.h"
#include "base/terminal.h"
#include "base/write_fence.h"
#include "rundir/rundir.h"
#include "train/engine_trainer.h"
#include "train/worker_accounts.h"

namespace sinew::train {
namespace {

Machine machine_of(const RunOptions& options) {
  Machine machine = this_machine();
  machine.cores = std::max<int64_t>(1, machine.cores / std::max<int64_t>(1, options.workers_here));
  return machine;
}

// A run decides once: who goes on with it, or joins it, takes what its resolved.yaml says.
spec::Job as_decided(spec::Job job, const std::string& run_directory, Disk& disk) {
  if (!spec::wants_fastest(job) || !rundir::is_run(run_directory)) return job;
  const std::string file = rundir::file_in(run_directory, rundir::kResolvedFile);
  const spec::Reading decided = spec::read_job(read_text(disk, file), file);
  if (!decided.problems.empty()) return job;
  job.trainer.precision = decided.job.trainer.precision;
  job.trainer.memory_format = decided.job.trainer.memory_format;
  return job;
}

// The members of a group each resolve the job, so what they could decide differently stays the default, and what only a
// measurement decides was decided before. With `arithmetic_alone`, memory decides nothing. Returns nullopt if a stop
// was asked for before everything was decided.
std::optional<Resolved> resolve_for_training(const RunOptions& options, const data::Dataset& data,
                                             const Machine& machine, Disk& disk, bool arithmetic_alone = false) {
  const spec::Job job = as_decided(options.job, options.run_directory, disk);
  Resolved resolved = resolve(job, data.info(), machine);
  resolved.written.tune = {};  // training does not use it
  const bool shows = !options.quiet && options.log_format == report::LogFormat::human;
  const double budget_seconds = options.budget_from_first_step ? 0 : job.budget.seconds;
  if (spec::wants_fastest(job) && options.join)
    throw Error("FASTEST_UNDECIDED",
                "the group has decided which precision is the fastest, and this worker does not know",
                "give trainer.precision and trainer.memory_format as in resolved.yaml of the run");
  FastestOptions fastest{.budget_seconds = budget_seconds, .stop_signals = options.stop_signals};
  if (shows) fastest.say = report::print_beside_run;
  if (!choose_fastest(resolved, job, data, machine, fastest)) return std::nullopt;
  if (arithmetic_alone) return resolved;
  FitOptions fit{.sharers = options.workers_here,
                 .may_change_shards = !options.join,
                 .budget_seconds = budget_seconds,
                 .stop_signals = options.stop_signals};
  if (shows) fit.say = report::print_beside_run;
  if (!fit_to_memory(resolved, job, data, fit)) return std::nullopt;
  return resolved;
}

loop::Plan decisions_of(const Resolved& resolved, const Machine& machine) {
  return {.resolved_yaml = spec::to_yaml(resolved.written, resolved.reasons), .environment = environment_json(machine)};
}

// Throws Error if the job has no step or no valid schedule. This comes before the worker joins the others.
void check_lengths(const spec::Job& job, const data::DataInfo& info) {
  const loop::Lengths lengths = loop::lengths_of(job, info.train_size, info.tokens_per_sample);
  loop::Schedule(job.scheduler, lengths);
  loop::check_declines(job, lengths);
}

// The coordinator compares identities field by field, and names the fields that differ. Options that a machine may
// decide are fields of their own; the digest covers the other options.
Identity identity_of(const Resolved& resolved, const data::DataInfo& info, Engine& engine) {
  const spec::TrainerOptions& trainer = resolved.written.trainer;
  const nlohmann::json job = {{"options", to_hex(digest_of(spec::to_yaml(resolved.written, {})))},
                              {"data", to_hex(info.digest)},
                              {"model", to_hex(digest_of(engine.code_identity()))},
                              {"trainer.device", trainer.device},
                              {"trainer.precision", trainer.precision},
                              {"trainer.memory_format", trainer.memory_format}};
  return {job.dump(), numerics_json(), to_hex(engine.probe())};
}

// Joins the group. If the group refuses this worker, the error also names the options that differ from the group's.
std::unique_ptr<Membership> join_group(const RunOptions& options, const Identity& identity,
                                       const std::string& resolved_yaml, Disk& disk) {
  try {
    return options.join(identity);
  } catch (const Error& refused) {
    const std::string file = rundir::file_in(options.run_directory, rundir::kResolvedFile);
    if (refused.code != ErrorCode("COORDINATOR_IDENTITY_DIFFERS") || !disk.exists(file)) throw;
    const auto changes = rundir::job_changes(read_text(disk, file), resolved_yaml);
    if (changes.empty()) throw;
    throw Error(refused.code, std::string(refused.what()) + "; compared with " + file + ": " + to_string(changes),
                refused.hint);
  }
}

loop::RunOptions loop_options(const RunOptions& options, loop::BeginTime began, const rundir::RunPlace& place) {
  loop::RunOptions wanted{.run_directory = options.run_directory, .resume = options.resume, .ledger = options.ledger};
  wanted.screen.format = options.log_format;
  wanted.screen.terminal = terminal_of;
  if (options.quiet) wanted.screen.output = wanted.screen.errors = [](std::string_view) {};
  wanted.screen.tells_crash = !options.join;  // otherwise, the supervisor of the workers says it
  wanted.stop_signals = options.stop_signals;
  wanted.checkpoint_signals = options.checkpoint_signals;
  wanted.workers_here = options.workers_here;
  wanted.on_work = options.on_work;
  wanted.began = began;
  wanted.experiment = options.experiment;
  wanted.budget_from_first_step = options.budget_from_first_step;
  wanted.place_lost = [&place] { return place.lost(); };
  wanted.page = [directory = options.run_directory](const rundir::Outcome& outcome) {
    return report::run_page(directory, outcome);
  };
  return wanted;
}

// A disk that can be written only as long as the run's path leads to the run's directory.
FencedDisk disk_of(const rundir::RunPlace& place, Disk& disk) {
  return {disk, [&place] { return place.lost().empty(); }, FencedDisk::Checks::creations};
}

// `fence` is the disk of a worker that is alone. A member makes its own, because its number is its id in the group.
RunResult run_in_place(const RunOptions& options, const loop::BeginTime& began, const rundir::RunPlace& place,
                       Disk& disk, WriteFence* fence, Clock& clock) {
  std::optional<EnergyCounter> energy;
  const spec::BudgetOptions& budget = options.job.budget;
  if (budget.kilowatt_hours > 0 && budget.watts <= 0) energy.emplace();
  const ResourceUse at_begin = resource_use();
  const auto data = open_data(options.job);
  const ResourceUse with_data = resource_use();
  const Machine machine = machine_of(options);
  const auto decided = resolve_for_training(options, *data, machine, disk);
  // The run does not exist yet, or goes on from its checkpoint: there is nothing to save.
  if (!decided) return {.exit_code = kResumable};
  const Resolved& resolved = *decided;
  // A worker that is alone writes the decisions now, so that a run exists even if its model cannot be built. In a
  // group, the leader writes them once it was admitted; a resumed run does so once its checkpoint was compared.
  loop::Plan decisions = decisions_of(resolved, machine);
  if (fence != nullptr && !rundir::is_run(options.run_directory))
    loop::write_decisions(*fence, options.run_directory, decisions);
  check_lengths(resolved.job, data->info());
  StageTimer stages(*resolved.job.trainer.lanes, began.monotonic_seconds, clock);
  EngineTrainer trainer(resolved, *data, options, disk, &stages);
  std::unique_ptr<Membership> membership;
  std::optional<WriteFence> of_member;
  if (options.join) {
    membership =
        join_group(options, identity_of(resolved, data->info(), trainer.engine()), decisions.resolved_yaml, disk);
    trainer.engine().set_reducer(membership->reducer());
    fence = &of_member.emplace(disk, options.run_directory, membership->id().value);
  }
  loop::Plan plan = trainer.plan();
  plan.environment = std::move(decisions.environment);
  loop::RunOptions wanted = loop_options(options, began, place);
  WorkerAccounts accounts({.program_bytes = at_begin.peak_memory_bytes,
                           .data_bytes = with_data.peak_memory_bytes - at_begin.peak_memory_bytes,
                           .workers_here = options.workers_here},
                          stages, trainer, membership ? &membership->reducer() : nullptr, clock);
  wanted.stages = &stages;
  wanted.accounts = &accounts;
  if (energy) wanted.joules = [&energy] { return energy->joules(); };
  return loop::run(plan, wanted, trainer, membership ? &membership->members() : nullptr, *fence, clock);
}

// Reports a run that failed before its loop could.
void report_failure(Disk& disk, const rundir::Attempt& attempt, const Error& error, const Clock& clock) {
  const auto outcome = rundir::report_failed_attempt(disk, attempt, error.what(), error.hint, clock.wall_seconds());
  if (outcome) report::keep_run_page(disk, attempt.run_directory, *outcome);
}

// Calls `work`. A run that fails before its loop can report also leaves a report. But if the run already has a report,
// a mistake on the command line must not replace it.
template <typename Work>
auto reporting_failure(const RunOptions& options, Disk& reads, Disk& writes, Clock& clock, double began_wall_seconds,
                       const rundir::RunPlace& place, const Work& work) {
  const rundir::Attempt attempt{options.run_directory, options.job.name, began_wall_seconds,
                                rundir::report_text(reads, options.run_directory)};
  try {
    return work();
  } catch (const WriterReplaced&) {
    throw;
  } catch (const Error& error) {
    const bool says_something = attempt.report_at_begin.empty() || dynamic_cast<const UsageError*>(&error) == nullptr;
    if (says_something && place.lost().empty()) report_failure(writes, attempt, error, clock);
    throw;
  } catch (const std::exception& error) {
    const auto shortage = shortage_of(error);
    if (!shortage) throw;
    if (place.lost().empty()) report_failure(writes, attempt, *shortage, clock);
    throw *shortage;
  }
}

}  // namespace

rundir::RunLock lock_run(const std::string& run_directory) {
  auto lock = rundir::RunLock::take(run_directory);
  if (!lock) throw Error("RUN_IN_USE", lock.error(), "wait for that process to end, stop it, or use another --run-dir");
  return std::move(*lock);
}

RunResult run(const RunOptions& options, Disk& disk, Clock& clock) {
  loop::BeginTime began = loop::begin_time(clock);
  began.wall_seconds -= options.began_seconds_ago;
  began.monotonic_seconds -= options.began_seconds_ago;
  if (options.join) {  // the supervisor of the workers holds the lock
    const rundir::RunPlace place(options.run_directory);
    FencedDisk here = disk_of(place, disk);
    return run_in_place(options, began, place, here, nullptr, clock);
  }
  const auto own = options.lock == nullptr ? std::optional(lock_run(options.run_directory)) : std::nullopt;
  const rundir::RunPlace place(options.run_directory, own ? own->descriptor() : options.lock->descriptor());
  FencedDisk here = disk_of(place, disk);
  WriteFence fence(here, options.run_directory, WriteFence::free_number(here, options.run_directory));
  fence.take_over();  // an earlier worker may live, if the lock file was removed or its machine lost the lock
  rundir::remove_abandoned_writes(fence, options.run_directory);
  // An earlier attempt may have had several workers. Those that are left must not continue this run by their view.
  fence.remove_file(rundir::file_in(options.run_directory, rundir::kViewFile));
  // Another process may have run here since the user's command checked the directory.
  if (!options.resume && rundir::is_run(options.run_directory))
    throw UsageError("RUN_EXISTS", options.run_directory + " already holds a run",
                     "resume it: sinew resume " + options.run_directory + "; or name another --run-dir");
  return reporting_failure(options, here, fence, clock, began.wall_seconds, place,
                           [&] { return run_in_place(options, began, place, here, &fence, clock); });
}

int decide(const RunOptions& options, Disk& disk, Clock& clock) {
  const rundir::RunPlace place(options.run_directory);
  FencedDisk here = disk_of(place, disk);
  return reporting_failure(options, here, here, clock, clock.wall_seconds(), place, [&] {
    const auto data = open_data(options.job);
    const Machine machine = machine_of(options);
    // the workers of a group decide the rest, each for itself
    const auto resolved = resolve_for_training(options, *data, machine, here, /*arithmetic_alone=*/true);
    if (!resolved) return static_cast<int>(kResumable);
    check_lengths(resolved->job, data->info());
    loop::write_decisions(here, options.run_directory, decisions_of(*resolved, machine));
    return static_cast<int>(kDone);
  });
}

}  // namespace sinew::train
