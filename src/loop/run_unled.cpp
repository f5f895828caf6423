// Saves the state of a worker that ends because no coordinator leads the run any more, so that a resume continues at
// the last step and not at the newest checkpoint.
//
// A member may write only while a coordinator confirms that it leads (Members::may_write), and here nobody does. Two
// facts take the place of that confirmation:
//
// - This process holds the lock of the run's directory. The supervisor of a run holds it as long as it lives, and every
//   `sinew resume` does, too. So the supervisor is dead, no other attempt runs, and none can begin before this process
//   has written. Of several workers with one directory, one writes at a time.
// - According to view.json, this worker is among those that computed last. A coordinator writes that file before a
//   member receives a view. A new attempt removes the file before it begins; if the end of the attempt before was not
//   recorded, it instead replaces the file when its coordinator makes the first view. So the group did not go on
//   without this worker, and no attempt has made a step since.
//
// So the directory holds no step that is newer than those of the last members, and what it holds of older steps is
// equal to what they computed. A worker writes only if its step is newer than the newest checkpoint: of members that
// are one step apart, the newer state stays. A worker that joined by a URL has a directory of its own and writes there.
//
// The states of the members cannot be compared any more. The parts that the last steps compared were equal.
#include "base/error.h"
#include "cluster/cluster.h"
#include "loop/one_run.h"

namespace sinew::loop {
namespace {

// On a network file system, the lock of a dead machine stays for a while: for 90 s with NFS version 4.
constexpr double kUnledLockSeconds = 120;
constexpr double kUnledLookSeconds = 0.2;
constexpr double kUnledSaveSeconds = 600;

}  // namespace

std::string Run::why_not_save() const {
  return members_->unled(options_.run_directory).value_or("a coordinator leads the run again");
}

std::expected<rundir::RunLock, std::string> Run::lock_of_unled_run() {
  const double end = clock_.monotonic_seconds() + kUnledLockSeconds;
  const auto must_stop = [&] {
    return options_.stop_signals != nullptr && options_.stop_signals->load() > seen_stops_;
  };
  while (true) {
    if (std::string why = why_not_save(); !why.empty()) return std::unexpected(std::move(why));
    auto lock = rundir::RunLock::take(options_.run_directory, clock_);
    if (lock || clock_.monotonic_seconds() >= end || must_stop()) return lock;
    clock_.sleep_seconds(kUnledLookSeconds);
  }
}

// Returns what became of the state, as a part of a sentence.
std::string Run::save_unled() {
  if (end_is_saved_) return "the last state of the run is saved";
  if (!began_at_ || state().step <= *began_at_) return "it has made no step since it began";
  std::string trouble;
  try {
    check_place();
    const auto lock = lock_of_unled_run();
    trouble = lock ? save_under_lock() : lock.error();
  } catch (const Error& error) {
    trouble = error.what();
  }
  const std::string step = "step " + std::to_string(state().step.value);
  return trouble.empty() ? step + " is saved, and sinew resume continues from it" : step + " is not saved: " + trouble;
}

// Saves the state, unless a newer one is saved already. Returns "" or why that is not possible.
std::string Run::save_under_lock() {
  // Another attempt may have begun and ended before this process got the lock.
  if (std::string why = why_not_save(); !why.empty()) return why;
  const std::string root = rundir::file_in(options_.run_directory, rundir::kCheckpoints);
  if (const auto present = checkpoint::list(disk_, root); !present.empty()) {
    const auto newest = checkpoint::verify(disk_, present.back());
    if (newest && newest->step >= state().step) return "";
  }
  trainer_.leave_group();
  trainer_.check_memory();
  writer_.reset();
  // Another member may have taken over since this one led. This one now holds the lock, so it may take over again and
  // write.
  const std::string lines_before = reporter_->trouble();
  const bool anew = disk_.take_over_again();
  if (anew && !lines_before.empty()) return lines_before;  // lines that only the earlier reporter has
  write_decisions(disk_, options_.run_directory, plan_);
  reporter_->lead_alone(anew);
  if (const std::string lines = reporter_->trouble(); !lines.empty()) return lines;
  checkpoint::WriterOptions wanted{root, "", plan_.job.checkpoint.keep, best_to_keep()};
  wanted.in_background = options_.in_background;
  checkpoint::Writer writer(disk_, wanted, clock_);
  writer.set_best(state().evaluation.best_steps);
  if (pending_best_ && !is_saved(pending_best_->step)) {
    writer.submit(pending_best_);
    if (!writer.wait(kUnledSaveSeconds)) return "the disk did not finish the checkpoint of the best step within 600 s";
  }
  writer.submit(trainer_.snapshot(facts()));
  if (!writer.wait(kUnledSaveSeconds)) return "the disk did not finish the checkpoint within 600 s";
  const checkpoint::WriterStatus status = writer.status();
  return status.durable == state().step ? "" : status.trouble;
}

}  // namespace sinew::loop
