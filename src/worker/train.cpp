// Implements `sinew train` with one worker, or as a member of several.
#include <algorithm>
#include <cstdio>

#include "base/activity_board.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/printable.h"
#include "base/proc.h"
#include "base/process.h"
#include "distribute/distribute.h"
#include "sandbox/sandbox.h"
#include "worker/injected_faults.h"
#include "worker/tasks.h"

namespace sinew::worker {
namespace {

// Members wait for one another kHangFactor times as long as --hang-after, so that the supervisor ends a hanging worker
// first.
constexpr double kHangFactor = 2;

distribute::JoinOptions join_options(const task::Group& group, distribute::MembershipEnd& ending) {
  distribute::JoinOptions options;
  options.coordinator_file = group.coordinator_file;
  if (!group.link_listen.empty()) options.listen = group.link_listen;
  options.advertise = group.link_advertise;
  options.pace = pace_of_environment();
  options.patience_seconds = kHangFactor * group.hang_seconds;
  options.ending = &ending;
  return options;
}

// Confines this process. Everything before this call is code of Sinew, and everything after it may be code of a model.
void confine_training(const task::Train& task) {
  if (!task.sandbox) return;
  sandbox::Confinement confinement{.run_directory = task.run_directory, .memory_bytes = task.sandbox->memory_bytes};
  if (task.group) {
    const std::string& listen = task.group->link_listen;
    confinement.links = std::make_unique<const sandbox::Links>(sandbox::Links{
        task.run_directory, task.sandbox->hosts, listen.empty() ? distribute::JoinOptions().listen : listen});
  }
  sandbox::confine(confinement);
}

int train_in_group(const task::Train& task, train::RunOptions& options, FlippedBit& flip) {
  const task::Group& group = *task.group;
  distribute::MembershipEnd ending;
  distribute::JoinOptions joining = join_options(group, ending);
  joining.on_joined = [&](MemberId me) {
    flip.set_member(me.value);
    if (group.outlives_parent) outlive_parent();
  };
  auto& standby = joining.standby.emplace();
  standby.run_directory = task.run_directory;
  standby.job = options.job.name;
  standby.keep_address = !task.sandbox;  // a confined process listens only at ports that the kernel chooses
  standby.say = [](const std::string& sentence) {
    std::fprintf(stderr, "sinew-worker: %s\n", printable(sentence, true).c_str());
  };
  options.workers_here = group.local_workers;
  options.join = [&](const train::Identity& identity) { return distribute::join(joining, identity, system_clock()); };
  try {
    return train::run(options, system_disk(), system_clock()).exit_code;
  } catch (const group::Fenced& out) {
    if (ending.exit_code == kRejoin)
      std::fprintf(stderr, "sinew-worker: %s; joining the group again\n", printable(out.what(), true).c_str());
    return ending.exit_code;
  }
}

int train_as_told(const task::Train& task, const rundir::RunLock* lock, ActivityBoard& board) {
  train::RunOptions options;
  options.lock = lock;
  options.resume = task.resume;
  options.ledger = task.ledger;
  options.log_format = task.json_log ? report::LogFormat::json : report::LogFormat::human;
  options.job = task.job_text.empty() ? read_job_file(task.job, task.overrides)
                                      : read_job_text(task.job_text, task.job, task.overrides);
  options.run_directory = task.run_directory;
  // Loading libtorch takes a while on a busy machine.
  options.began_seconds_ago = std::min(process_age_seconds(), kMostStart);
  options.stop_signals = &stop_signals;
  options.checkpoint_signals = &checkpoint_signals;
  const PoisonedShard poison;
  options.on_work = [&](int lane, const Work& work) {
    board.post(lane, work);
    poison.apply(work);
  };
  FlippedBit flip;
  options.faults = flip.faults();
  if (task.decide) return train::decide(options, system_disk(), system_clock());
  if (task.group) return train_in_group(task, options, flip);
  flip.set_member(0);
  return train::run(options, system_disk(), system_clock()).exit_code;
}

}  // namespace

// Posts an error on the activity board, because a worker that does not lead the run writes no report. The supervisor
// reports the error.
int run_train(const task::Train& task) {
  ActivityBoard board(task.activity_board);
  try {
    // A confined worker that is alone can lock no file any more.
    const bool early = task.sandbox && !task.group && !task.decide;
    const auto lock = early ? std::optional(train::lock_run(task.run_directory)) : std::nullopt;
    confine_training(task);
    return train_as_told(task, lock ? &*lock : nullptr, board);
  } catch (const Error& error) {
    board.post({to_string(error), error.hint});
    throw;
  } catch (const std::exception& error) {
    const auto shortage = shortage_of(error);
    board.post(shortage ? PostedError{to_string(*shortage), shortage->hint} : PostedError{error.what(), ""});
    throw;
  }
}

}  // namespace sinew::worker
