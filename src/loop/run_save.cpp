// Saves checkpoints during a run, and ensures that the last state is on disk before the run ends.
#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/fenced_disk.h"
#include "base/hex.h"
#include "loop/one_run.h"
#include "rundir/rundir.h"

namespace sinew::loop {
namespace {

constexpr double kFinalSaveSeconds = 600;  // the run fails if the last checkpoint takes longer
// The least time between two tries to save the best state, and after a try that failed for another reason than a
// missing lease.
constexpr double kBestSeconds = 1, kFailedBestSeconds = 10;
constexpr double kAbandonedMirrorSeconds = 10;  // time to finish the chunk that the writer is copying

}  // namespace

// Each run has a directory of its own below checkpoint.mirror, because checkpoints of two runs have the same names and
// each run deletes those that it does not keep. The file `mirror` in the run directory stores the name, so a resumed or
// moved run keeps its mirror.
std::string Run::mirror_of_run() {
  const std::string& mirror = plan_.job.checkpoint.mirror;
  if (mirror.empty()) return "";
  const std::string file = options_.run_directory + "/mirror";
  std::string directory = disk_.exists(file) ? read_text(disk_, file) : "";
  while (directory.ends_with('\n')) directory.pop_back();
  if (directory.empty()) {
    const auto path = std::filesystem::absolute(options_.run_directory).lexically_normal();
    directory = (path.has_filename() ? path : path.parent_path()).filename().string() + "-" + random_hex(4);
    if (!plan_.job.name.empty()) directory = plan_.job.name + "/" + directory;
    unrecorded_mirror_ = directory;
    record_mirror();
  }
  return mirror + "/" + directory;
}

// Writes the file `mirror`. A member may write it only while it holds the lease, because the others may have continued
// without it and chosen another name. Training does not wait for the lease; the member tries again at the next step.
void Run::record_mirror() {
  if (unrecorded_mirror_.empty()) return;
  FencedDisk fenced(disk_, [this] { return may_write(); });
  try {
    fenced.check_may_write();  // checked before the work starts, because every step may come here
    write_durably(fenced, options_.run_directory + "/mirror", unrecorded_mirror_ + "\n");
  } catch (const MayNotWrite&) {
    return;
  } catch (const DiskError& trouble) {
    reporter_->say(report::Level::warning, "mirror",
                   std::string(trouble.what()) + "; a resumed run would use another directory below the mirror");
  }
  unrecorded_mirror_.clear();
}

StateFacts Run::facts() const {
  return {.data_digest = plan_.data.digest,
          .resolved_job = plan_.resolved_yaml,
          .model = plan_.model,
          .window = window_.sums,
          .evaluation_window = evaluation_window_.sums,
          .seconds = elapsed(),
          .joules = energy_.before + energy_.used};
}

checkpoint::Writer& Run::writer() {
  if (writer_) return *writer_;
  const auto& options = plan_.job.checkpoint;
  checkpoint::WriterOptions wanted{rundir::file_in(options_.run_directory, rundir::kCheckpoints), mirror_of_run(),
                                   options.keep, best_to_keep()};
  wanted.in_background = options_.in_background;
  if (members_) {
    // The step thread takes over the disk, with the reporter.
    wanted.may_write = [this] { return disk_.has_taken_over() && may_write() && !reporter_->has_unwritten(); };
  } else if (options_.place_lost) {
    wanted.may_write = [this] { return may_write(); };
  }
  writer_ = std::make_unique<checkpoint::Writer>(disk_, wanted, clock_);
  writer_->set_best(state().evaluation.best_steps);
  return *writer_;
}

void Run::save(bool best) {
  if (best && !is_leader() && members_->has_run_directory()) hold_best(trainer_.snapshot(facts()));
  if (!is_leader() || last_saved_ == state().step) return;
  check_place();
  // First saves a best state that still waits, because later checkpoints say that it exists.
  if (!best && (pending_best_ || !writer().ready())) {
    const checkpoint::WriterStatus status = writer().status();
    if (++reported_skipped_saves_ <= 3) {
      reporter_->say(report::Level::warning, "checkpoint_skipped",
                     "the disk is behind: checkpoint of step " + std::to_string(state().step.value) +
                         " skipped; the newest durable checkpoint is " +
                         (status.durable ? "of step " + std::to_string(status.durable->value) : "not written yet"));
    }
    return;
  }
  reporter_->flush();
  checkpoint::OwnedSnapshot taken = trainer_.snapshot(facts());
  check_confirmed(taken.digest);
  last_saved_ = state().step;
  if (best) {
    hold_best(std::move(taken));
    writer().set_best(state().evaluation.best_steps);
    submit_pending();
  } else {
    writer().submit(std::move(taken));
  }
}

// Ensures that all members have the state of this step, before it is saved or counts as the end of the run. A worker
// that computes alone checks its own memory, because no other member can. `own` is the state's digest if it is already
// known.
void Run::confirm(std::optional<Digest> own) {
  if (!members_ || !members_->has_peers()) trainer_.check_memory();
  if (!members_) return;
  if (!own) own = trainer_.digest();
  trainer_.compare(*own);
  report_work(Work::Kind::recording);
  confirmed_ = {state().step, *own};
}

void Run::check_confirmed(Digest own) const {
  if (!members_) return;
  if (confirmed_ && confirmed_->first == state().step && confirmed_->second == own) return;
  throw MemoryChanged("the state of step " + std::to_string(state().step.value) + " has digest " + to_hex(own) +
                      (confirmed_ ? ", and that of all members at step " + std::to_string(confirmed_->first.value) +
                                        " had digest " + to_hex(confirmed_->second)
                                  : ", and was not compared with that of the others"));
}

// A run that ends with the best state needs its checkpoint, even if the job keeps no other of the best ones.
int64_t Run::best_to_keep() const {
  const spec::EarlyStoppingOptions& early = plan_.job.early_stopping;
  const bool restores = !early.monitor.empty() && early.restore_best;
  return std::max<int64_t>(plan_.job.checkpoint.keep_best, restores ? 1 : 0);
}

void Run::hold_best(checkpoint::OwnedSnapshot taken) {
  pending_best_ = std::make_shared<const checkpoint::OwnedSnapshot>(std::move(taken));
  submitted_best_ = false;
  next_best_try_ = now();
}

// The best state is not skipped as other checkpoints are, because the run ends with it, and nothing can make it again.
// It waits in memory until it is on disk: while the disk is busy or fails, and while this worker has no lease. If the
// leader dies before it has saved the state, the next leader saves its own copy.
void Run::submit_best() {
  if (!pending_best_) return;
  const bool tried = is_leader() && submitted_best_;
  const checkpoint::WriterStatus status = tried ? writer().status() : checkpoint::WriterStatus();
  // If the checkpoint read back damaged, the copy in memory may be what is damaged, so another try is of no use.
  if (tried && (status.saved == pending_best_->step || (!status.writing && status.damaged)))
    return pending_best_.reset();
  if (now() < next_best_try_ + (tried && !status.refused ? kFailedBestSeconds : 0)) return;
  if (is_leader() && !writer().ready()) return;
  next_best_try_ = now() + kBestSeconds;
  if (!tried && is_saved(pending_best_->step)) return pending_best_.reset();  // by another leader
  if (is_leader()) submitted_best_ = writer().submit(pending_best_);
}

bool Run::is_saved(Step step) const {
  const std::string root = rundir::file_in(options_.run_directory, rundir::kCheckpoints);
  const std::vector<std::string> present = checkpoint::list(disk_, root);
  return std::ranges::any_of(present, [&](const std::string& one) { return checkpoint::step_of(one) == step; });
}

// Saves what waits in memory, and records the mirror's name if that waits for the lease.
void Run::submit_pending() {
  submit_best();
  if (!writer_) return;
  record_mirror();
  const std::string trouble = save_trouble();
  if (trouble != reported_trouble_ && !trouble.empty()) {
    reporter_->say(
        report::Level::warning, "checkpoint_failed",
        (trouble.starts_with("saved, ") ? "checkpoint " : "checkpoint not saved: ") + trouble + "; training continues");
  }
  reported_trouble_ = trouble;
}

// Returns why nothing can be saved. The writer also refuses while lines of the run wait in memory. If the disk does not
// take these lines, that is the reason.
std::string Run::save_trouble() {
  const checkpoint::WriterStatus status = writer().status();
  const std::string lines = status.refused && reporter_->has_unwritten() ? reporter_->trouble() : "";
  return lines.empty() ? status.trouble : lines;
}

// Waits until no write is in progress. If the mirror takes too long, the writer abandons it, because the run needs only
// the primary copy; a write to the mirror may then still be in progress. Throws TRAIN_SAVE_FAILED if the primary copy
// does not become durable.
void Run::wait_for_disk() {
  if (writer().wait(kFinalSaveSeconds)) return;
  const bool there = writer().status().durable == state().step;
  if (const std::string& mirror = plan_.job.checkpoint.mirror; !mirror.empty()) {
    reporter_->say(
        report::Level::warning, "mirror_left",
        "checkpoint.mirror " + mirror + " did not receive a copy within 600 s; the run no longer waits for it");
    writer().abandon_mirror();
    if (writer().wait(there ? kAbandonedMirrorSeconds : kFinalSaveSeconds)) return;
  }
  if (!there && writer().status().durable != state().step)
    throw Error("TRAIN_SAVE_FAILED", "the disk did not finish a checkpoint within 600 s",
                "check the disk of the run directory");
}

void Run::finish_saving() {
  check_place();
  wait_for_disk();
  submit_pending();
  wait_for_disk();
  submit_pending();
  if (pending_best_ || writer().status().durable != state().step) with_lease([this] { save_last(); });
  submit_pending();
  check_place();
  if (members_) members_->check_membership();
}

// Saves the last state. Throws MayNotWrite if this process must not write (it holds no lease, or lost its place), and
// Error if the state cannot be saved.
void Run::save_last() {
  reporter_->flush();
  if (pending_best_) {
    next_best_try_ = -kFailedBestSeconds;
    submit_best();
    wait_for_disk();
    submit_best();
  }
  if (!pending_best_ && writer().status().durable != state().step) {
    last_saved_.reset();
    save(false);
    wait_for_disk();
  }
  const checkpoint::WriterStatus status = writer().status();
  if (!pending_best_ && status.durable == state().step) return;
  const std::string trouble = save_trouble();
  if (status.refused && trouble == status.trouble) throw MayNotWrite("CHECKPOINT_MAY_NOT_WRITE", trouble, "");
  check_place();  // the run ends with the cause: its directory is lost, or another process has taken over
  disk_.check();
  throw Error("TRAIN_SAVE_FAILED",
              "the last checkpoint (step " + std::to_string(state().step.value) + ") could not be saved: " + trouble,
              "free space on the disk and run sinew resume; " +
                  (status.durable ? "the newest durable checkpoint is of step " + std::to_string(status.durable->value)
                                  : std::string("there is no durable checkpoint yet")));
}

}  // namespace sinew::loop
