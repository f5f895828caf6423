// `sinew stop RUN`: ends what runs on this machine, by the signal its own terminal would send.
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "base/clock.h"
#include "base/disk.h"
#include "base/process.h"
#include "cli/commands.h"
#include "cli/numbers.h"
#include "jobs/jobs.h"
#include "report/report.h"

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

// Who holds the run's lock, as it wrote there: "pid 17 on host". 0: nobody that this machine knows.
pid_t holder_of(const std::string& directory) {
  const std::string text = read_text(system_disk(), directory + "/.lock");
  long pid = 0;
  char host[300] = {};
  if (std::sscanf(text.c_str(), "pid %ld on %299s", &pid, host) != 2 || pid <= 0) return 0;
  if (host != host_name())
    throw Error(directory + " runs on " + host, "stop it there, or: sinew control " + directory + " stop");
  std::error_code code;
  const auto program = std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", code);
  return !code && program.filename().string().starts_with("sinew") ? static_cast<pid_t>(pid) : 0;
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
  const pid_t holder = holder_of(directory);
  if (holder > 0) {
    ::kill(holder, SIGTERM);
    if (words.now) clock.sleep_seconds(kLookSeconds);  // two signals at once would be one
    if (words.now) ::kill(holder, SIGTERM);
  }
  const double end = clock.monotonic_seconds() + static_cast<double>(words.wait_seconds);
  while (status_of(directory) == "running") {
    if (clock.monotonic_seconds() >= end)
      throw Error(directory + " still runs", "give it more time with --wait, or stop it at once with --now");
    clock.sleep_seconds(kLookSeconds);
  }
  // All who held it may have been killed while it was waited for: what they watched over is ended, too.
  if (!jobs::attempts_of(directory).empty()) jobs::clear_up(directory, clock);
  std::printf("%s: %s\n", directory.c_str(), status_of(directory).c_str());
  return kDone;
}

}  // namespace sinew::cli
