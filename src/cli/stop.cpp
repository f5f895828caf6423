// `sinew stop RUN`: ends what runs on this machine, by the signal its own terminal would send.
#include <sys/stat.h>

#include <csignal>
#include <cstdio>
#include <filesystem>

#include "base/clock.h"
#include "base/disk.h"
#include "base/number_text.h"
#include "base/process.h"
#include "cli/commands.h"
#include "jobs/jobs.h"
#include "report/report.h"
#include "rundir/rundir.h"

namespace sinew::cli {
namespace {

constexpr double kLookSeconds = 0.05;
constexpr const char* kHelp =
    "usage: sinew stop RUN [options]\n\n"
    "Ends a run of this machine: a training finishes its step and saves, a command gets SIGTERM and its grace; both "
    "can\n"
    "be resumed. What is left of a run whose sinew was killed is ended, too. RUN: a run directory, the end of its "
    "name,\n"
    "or 'last'.\n\n"
    "options:\n"
    "  --now            stop at once: a training does not finish its step, a command is killed\n"
    "  --wait SECONDS   how long to wait for the end (default: 120)\n"
    "  --root DIR       where runs are looked for (default: runs)";

struct Words {
  std::string run, root = "runs";
  int64_t wait_seconds = 120;
  bool now = false;
};

Words parse(const Arguments& arguments) {
  Words words;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const auto value = [&] {
      if (i + 1 == arguments.size()) throw UsageError(word + " needs a value", "sinew stop --help");
      return arguments[++i];
    };
    if (word == "--root") {
      words.root = value();
    } else if (word == "--wait") {
      words.wait_seconds = whole_number(word, value(), 0, 86'400);
    } else if (word == "--now") {
      words.now = true;
    } else if (word.starts_with("-")) {
      throw UsageError("no option '" + word + "'", "sinew stop --help");
    } else if (words.run.empty()) {
      words.run = word;
    } else {
      throw UsageError("stop takes one run, and '" + word + "' is a second", "sinew runs lists all of them");
    }
  }
  if (words.run.empty()) throw UsageError("stop needs a run", "sinew stop last; sinew runs lists them");
  return words;
}

// Anybody may write a number into a file of their own, and a number becomes another process's. Throws Error where that
// is not to be seen.
bool has_open(pid_t pid, const std::string& path) {
  struct stat wanted {};
  if (::stat(path.c_str(), &wanted) != 0) return false;
  std::error_code code;
  for (std::filesystem::directory_iterator at("/proc/" + std::to_string(pid) + "/fd", code), end; !code && at != end;
       at.increment(code)) {
    struct stat facts {};
    const bool there = ::stat(at->path().c_str(), &facts) == 0;
    if (there && facts.st_dev == wanted.st_dev && facts.st_ino == wanted.st_ino) return true;
  }
  if (code == std::errc::permission_denied)
    throw Error(path + " is held by pid " + std::to_string(pid) + " of another user",
                "stop the run as that user, or with sudo");
  return false;
}

// The process of this machine that holds the run's lock. 0: it has ended, and the reapers of its command may still hold
// the lock.
pid_t holder_of(const std::string& directory) {
  const auto holder = rundir::lock_holder(directory);
  if (!holder) return 0;
  if (holder->host != host_name())
    throw Error("RUN_ELSEWHERE", directory + " runs on " + holder->host,
                "stop it there, or: sinew control " + directory + " stop");
  return has_open(holder->pid, rundir::file_in(directory, rundir::kLockFile)) ? holder->pid : 0;
}

void wait_for_end(const std::string& directory, const Words& words, Clock& clock) {
  const double end = clock.monotonic_seconds() + static_cast<double>(words.wait_seconds);
  bool asked = false;
  while (rundir::lock_is_held(directory)) {
    // Two signals at once would be one; so --now goes on sending until it is heard.
    const pid_t holder = asked && !words.now ? 0 : holder_of(directory);
    if (holder > 0) asked = ::kill(holder, SIGTERM) == 0 || asked;
    if (clock.monotonic_seconds() >= end) {
      throw Error(directory + " still runs",
                  asked ? "give it more time with --wait, or stop it at once with --now"
                        : "who holds it was not found; fuser -v " + directory + "/.lock shows it");
    }
    clock.sleep_seconds(kLookSeconds);
  }
}

std::string status_of(const std::string& directory) {
  const auto run = report::read_run(directory);
  return run ? run->status : "interrupted";
}

}  // namespace

int run_stop(const Arguments& arguments) {
  if (print_help_if_asked(arguments, kHelp)) return kDone;
  const Words words = parse(arguments);
  const report::RunSummary run = report::pick_run(words.root, words.run);
  const std::string& directory = run.directory;
  Clock& clock = system_clock();
  if (run.status != "running") {
    const int open = jobs::attempts_of(directory).empty() ? 0 : jobs::clear_up(directory, clock);
    std::printf("%s was not running: %s%s\n", directory.c_str(), run.status.c_str(),
                open > 0 ? "; its sinew was killed, and nothing of it is left" : "");
    return kDone;
  }
  wait_for_end(directory, words, clock);
  // All who held it may have been killed while it was waited for: what they watched over is ended, too.
  if (!jobs::attempts_of(directory).empty()) jobs::clear_up(directory, clock);
  std::printf("%s: %s\n", directory.c_str(), status_of(directory).c_str());
  return kDone;
}

}  // namespace sinew::cli
