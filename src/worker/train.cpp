// `sinew train`: training with one worker, or as a member of several.
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <sstream>

#include "base/activity_board.h"
#include "base/error.h"
#include "distribute/distribute.h"
#include "worker/tasks.h"

namespace sinew::worker {
namespace {

constexpr double kPatience = 2;  // factor on --hang-after: the supervisor ends a hanging worker first

// Reads a number of at least `least` from the environment; `otherwise` if the variable is not set. Throws Error if it
// is no such number.
double number_from(const char* name, double least, double otherwise) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (*end != '\0' || !std::isfinite(value) || value < least)
    throw Error(std::string(name) + "=" + text + " is no number of at least " + std::to_string(least),
                std::string("unset ") + name);
  return value;
}

std::string text_from(const char* name, const std::string& otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : text;
}

// A shard that ends or hangs the worker that computes it, for drills: SINEW_POISON=STEP:SHARD:HOW.
class Poison {
 public:
  Poison() {
    const std::string text = text_from("SINEW_POISON", "");
    if (text.empty()) return;
    char colons[2] = {};
    std::istringstream(text) >> step_ >> colons[0] >> shard_ >> colons[1] >> how_;
    const bool known = how_ == "segv" || how_ == "abort" || how_ == "oom" || how_ == "error" || how_ == "hang";
    if (colons[0] != ':' || colons[1] != ':' || !known)
      throw Error("SINEW_POISON=" + text + " is no STEP:SHARD:segv, abort, oom, error or hang", "unset SINEW_POISON");
  }

  void strike(const Work& work) const {
    if (how_.empty() || work.kind != Work::Kind::computing || work.step != step_ || work.shard != shard_) return;
    if (how_ == "error") throw Error("this shard fails: SINEW_POISON", "unset SINEW_POISON");
    if (how_ == "hang") {
      while (true) ::pause();
    }
    // When memory runs out, the kernel kills the process with SIGKILL.
    std::raise(how_ == "segv" ? SIGSEGV : how_ == "abort" ? SIGABRT : SIGKILL);
  }

 private:
  int64_t step_ = 0, shard_ = 0;
  std::string how_;  // empty: no poison
};

distribute::JoinOptions join_options(const std::string& run_directory, distribute::Ending& ending) {
  distribute::JoinOptions options;
  options.coordinator_file = text_from("SINEW_COORDINATOR_FILE", run_directory + "/coordinator.json");
  options.listen = text_from("SINEW_LINK_LISTEN", options.listen);
  options.advertise = text_from("SINEW_LINK_ADVERTISE", "");
  options.pace = number_from("SINEW_PACE", 1, 1);
  options.patience_seconds = kPatience * number_from("SINEW_HANG_AFTER", 0.001, options.patience_seconds / kPatience);
  options.ending = &ending;
  return options;
}

}  // namespace

// JOB RUN_DIR [--resume] [--ledger] [--json] [--group] [key=value ...]
int run_train(const Words& words) {
  train::RunOptions options;
  Words overrides;
  bool group = false;
  for (size_t i = 2; i < words.size(); ++i) {
    if (words[i] == "--resume") {
      options.resume = true;
    } else if (words[i] == "--ledger") {
      options.ledger = true;
    } else if (words[i] == "--json") {
      options.log_format = report::LogFormat::json;
    } else if (words[i] == "--group") {
      group = true;
    } else {
      overrides.push_back(words[i]);
    }
  }
  options.job = read_job_file(words.at(0), overrides);
  options.run_directory = words.at(1);
  options.stop_signals = &stop_signals;
  options.checkpoint_signals = &checkpoint_signals;
  ActivityBoard board(text_from("SINEW_ACTIVITY_BOARD", ""));
  const Poison poison;
  options.on_work = [&](int lane, const Work& work) {
    board.post(lane, work);
    poison.strike(work);
  };
  if (!group) return train::run(options, system_disk(), system_clock()).exit_code;

  distribute::Ending ending;
  const distribute::JoinOptions joining = join_options(options.run_directory, ending);
  options.workers_here = static_cast<int64_t>(number_from("SINEW_LOCAL_WORKERS", 1, 1));
  options.join = [&](const train::Identity& identity) { return distribute::join(joining, identity, system_clock()); };
  try {
    return train::run(options, system_disk(), system_clock()).exit_code;
  } catch (const group::Fenced& out) {
    if (ending.exit_code == kRejoin) std::fprintf(stderr, "sinew-worker: %s; joining anew\n", out.what());
    return ending.exit_code;
  }
}

}  // namespace sinew::worker
