// Implements `sinew train` with one worker, or as a member of several.
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <sstream>

#include "base/activity_board.h"
#include "base/error.h"
#include "base/machine.h"
#include "distribute/distribute.h"
#include "worker/tasks.h"

namespace sinew::worker {
namespace {

// Members wait for one another kHangFactor times as long as --hang-after, so that the supervisor ends a hanging worker
// first.
constexpr double kHangFactor = 2;

// Reads a number from an environment variable. Returns `otherwise` if the variable is not set. Throws Error if its
// value is not a number, or is less than `least`.
double number_from(const char* name, double least, double otherwise) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (*end != '\0' || !std::isfinite(value) || value < least)
    throw Error("WORKER_BAD_ENVIRONMENT",
                std::string(name) + "=" + text + " is not a number of at least " + std::to_string(least),
                std::string("unset ") + name);
  return value;
}

std::string text_from(const char* name, const std::string& otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : text;
}

// Kills or hangs the worker when it computes one particular shard. Tests set SINEW_POISON=STEP:SHARD:HOW.
class Poison {
 public:
  Poison() {
    const std::string text = text_from("SINEW_POISON", "");
    if (text.empty()) return;
    char colons[2] = {};
    std::istringstream(text) >> step_ >> colons[0] >> shard_ >> colons[1] >> how_;
    const bool known = how_ == "segv" || how_ == "abort" || how_ == "oom" || how_ == "error" || how_ == "hang";
    if (colons[0] != ':' || colons[1] != ':' || !known)
      throw Error("WORKER_BAD_ENVIRONMENT",
                  "SINEW_POISON=" + text + " must be STEP:SHARD:HOW, where HOW is segv, abort, oom, error or hang",
                  "unset SINEW_POISON");
  }

  void apply(const Work& work) const {
    if (how_.empty() || work.kind != Work::Kind::computing || work.step != step_ || work.shard != shard_) return;
    if (how_ == "error") throw Error("WORKER_POISONED", "SINEW_POISON makes this shard fail", "unset SINEW_POISON");
    if (how_ == "hang") {
      while (true) ::pause();
    }
    // "oom" raises SIGKILL, because the kernel kills a process with SIGKILL when memory runs out.
    std::raise(how_ == "segv" ? SIGSEGV : how_ == "abort" ? SIGABRT : SIGKILL);
  }

 private:
  int64_t step_ = 0, shard_ = 0;
  std::string how_;  // empty: no shard is poisoned
};

// Flips one bit of one gradient that this worker computes, once, as a faulty processor would. Tests set
// SINEW_FLIP=STEP:MEMBER:WHAT.
class Flip {
 public:
  Flip() {
    const std::string text = text_from("SINEW_FLIP", "");
    if (text.empty()) return;
    char colons[2] = {};
    std::string what;
    std::istringstream(text) >> step_ >> colons[0] >> member_ >> colons[1] >> what;
    if (colons[0] != ':' || colons[1] != ':' || (what != "shard" && what != "audit"))
      throw Error("WORKER_BAD_ENVIRONMENT",
                  "SINEW_FLIP=" + text +
                      " must be STEP:MEMBER:WHAT, where MEMBER is 0 for a worker without a group and WHAT is shard or "
                      "audit",
                  "unset SINEW_FLIP");
    in_audit_ = what == "audit";
    left_ = true;
  }

  void set_member(int64_t member) { me_ = member; }

  void apply(const Work& work, bool audit, std::vector<torch::Tensor>& gradients) {
    if (!left_ || work.step != step_ || me_ != member_ || audit != in_audit_) return;
    for (torch::Tensor& gradient : gradients) {
      if (!gradient.defined() || gradient.numel() == 0 || !left_.exchange(false)) continue;
      gradient = gradient.clone();
      static_cast<unsigned char*>(gradient.mutable_data_ptr())[2] ^= 0x40;  // the highest bit of the fraction
    }
  }

 private:
  int64_t step_ = 0, member_ = 0;
  bool in_audit_ = false;
  std::atomic<bool> left_{false};
  std::atomic<int64_t> me_{-1};  // not known yet
};

distribute::JoinOptions join_options(const task::Group& group, distribute::MembershipEnd& ending) {
  distribute::JoinOptions options;
  options.coordinator_file = group.coordinator_file;
  if (!group.link_listen.empty()) options.listen = group.link_listen;
  options.advertise = group.link_advertise;
  options.pace = number_from("SINEW_PACE", 1, 1);
  options.patience_seconds = kHangFactor * group.hang_seconds;
  options.ending = &ending;
  return options;
}

int train_in_group(const task::Group& group, train::RunOptions& options, Flip& flip) {
  distribute::MembershipEnd ending;
  distribute::JoinOptions joining = join_options(group, ending);
  joining.on_joined = [&flip](MemberId me) { flip.set_member(me.value); };
  options.workers_here = group.local_workers;
  options.join = [&](const train::Identity& identity) { return distribute::join(joining, identity, system_clock()); };
  try {
    return train::run(options, system_disk(), system_clock()).exit_code;
  } catch (const group::Fenced& out) {
    if (ending.exit_code == kRejoin) std::fprintf(stderr, "sinew-worker: %s; joining the group again\n", out.what());
    return ending.exit_code;
  }
}

int train_as_told(const task::Train& task, ActivityBoard& board) {
  train::RunOptions options;
  options.resume = task.resume;
  options.ledger = task.ledger;
  options.log_format = task.json_log ? report::LogFormat::json : report::LogFormat::human;
  options.job = task.job_text.empty() ? read_job_file(task.job, task.overrides)
                                      : read_job_text(task.job_text, task.job, task.overrides);
  options.run_directory = task.run_directory;
  options.stop_signals = &stop_signals;
  options.checkpoint_signals = &checkpoint_signals;
  const Poison poison;
  options.on_work = [&](int lane, const Work& work) {
    board.post(lane, work);
    poison.apply(work);
  };
  Flip flip;
  options.on_gradients = [&flip](const Work& work, bool audit, std::vector<torch::Tensor>& gradients) {
    flip.apply(work, audit, gradients);
  };
  if (task.group) return train_in_group(*task.group, options, flip);
  flip.set_member(0);
  return train::run(options, system_disk(), system_clock()).exit_code;
}

}  // namespace

// Posts an error on the activity board, because a worker that does not lead the run writes no report. The supervisor
// reports the error.
int run_train(const task::Train& task) {
  ActivityBoard board(task.activity_board);
  try {
    return train_as_told(task, board);
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
