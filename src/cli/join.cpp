// `sinew join`: one more worker for a run, from this machine; kept alive until the run is over.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "base/clock.h"
#include "base/disk.h"
#include "base/process.h"
#include "cli/commands.h"
#include "cli/group_file.h"
#include "cli/supervision.h"
#include "cli/worker_process.h"

namespace sinew::cli {
namespace {

constexpr const char* kHelp =
    "usage: sinew join RUN [options]\n"
    "       sinew join URL --secret-file FILE JOB RUN_DIR [key=value ...]\n\n"
    "A worker on this machine takes part in a run that 'sinew train --workers N --listen ADDRESS' supervises "
    "elsewhere.\n"
    "RUN: its directory, where both machines see it. URL: where its coordinator listens (coordinator.json says it); "
    "then\n"
    "JOB and the overrides are those of the run, and RUN_DIR is a directory of this machine.\n\n"
    "options:\n"
    "  --secret-file FILE  holds the secret of coordinator.json\n"
    "  --root DIR          where RUN is looked for by name (default: runs)\n\n"
    "First Ctrl-C: the worker hands over and leaves (exit code 75). Second: it is killed.";

constexpr double kLookSeconds = 0.05;

struct Wishes {
  std::string where, secret_file, root = "runs";
  std::vector<std::string> more;  // JOB, RUN_DIR and overrides
  bool by_url() const { return where.starts_with("http://") || where.starts_with("https://"); }
};

Wishes parse(const Arguments& arguments) {
  Wishes wishes;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const auto value = [&] {
      if (i + 1 == arguments.size()) throw UsageError(word + " needs a value", "sinew join --help");
      return arguments[++i];
    };
    if (word == "--secret-file") {
      wishes.secret_file = value();
    } else if (word == "--root") {
      wishes.root = value();
    } else if (word.starts_with("-")) {
      throw UsageError("no option '" + word + "'", "sinew join --help");
    } else if (wishes.where.empty()) {
      wishes.where = word;
    } else {
      wishes.more.push_back(word);
    }
  }
  if (wishes.where.empty()) throw UsageError("join needs a run", "sinew join --help");
  if (wishes.by_url() && (wishes.secret_file.empty() || wishes.more.size() < 2))
    throw UsageError("with a URL join needs --secret-file, JOB and RUN_DIR", "sinew join --help");
  if (!wishes.by_url() && !(wishes.secret_file.empty() && wishes.more.empty()))
    throw UsageError("with a run's directory join needs nothing else", "sinew join --help");
  return wishes;
}

std::string read_secret(const std::string& path) {
  std::string text(1024, '\0');
  text.resize(system_disk().read_at(path, 0, std::as_writable_bytes(std::span(text))));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  if (text.empty()) throw UsageError(path + " holds no secret");
  return text;
}

// What the worker is told, and where it finds the coordinator.
ProcessOptions worker_of(const Wishes& wishes) {
  ProcessOptions process;
  std::string directory;
  if (wishes.by_url()) {
    directory = wishes.more[1];
    system_disk().make_directories(directory);
    GroupFile file;
    file.url = wishes.where;
    file.secret = read_secret(wishes.secret_file);
    write_group_file(directory, file);
    process.command = {worker_program(), "train", wishes.more[0], directory, "--group"};
    process.command.insert(process.command.end(), wishes.more.begin() + 2, wishes.more.end());
  } else {
    running_group(wishes.root, wishes.where, &directory);
    process.command = {worker_program(), "train", directory + "/resolved.yaml", directory, "--group", "--resume"};
  }
  process.environment["SINEW_COORDINATOR_FILE"] = group_file_path(directory);
  if (std::getenv("MKL_CBWR") == nullptr) process.environment["MKL_CBWR"] = "AUTO";
  process.death_signal = SIGKILL;
  return process;
}

volatile std::sig_atomic_t asked = 0, last_signal = 0;
void on_signal(int signal) {
  asked = asked + 1;
  last_signal = signal;
}

// One life; 128 + signal when a second signal cut it short.
ProcessEnd live(const ProcessOptions& options) {
  Process worker(options);
  int told = 0;
  while (true) {
    if (const auto end = worker.wait(kLookSeconds)) return *end;
    if (asked > told) {
      worker.send(told == 0 ? SIGTERM : SIGKILL);
      told = asked;
    }
  }
}

}  // namespace

int run_join(const Arguments& arguments) {
  if (print_help_if_asked(arguments, kHelp)) return kDone;
  const Wishes wishes = parse(arguments);
  if (wishes.by_url() && !load_job(wishes.more[0], {wishes.more.begin() + 2, wishes.more.end()})) return kUsage;
  const ProcessOptions options = worker_of(wishes);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, on_signal);
  const SupervisionOptions limits;
  Clock& clock = system_clock();
  for (int64_t failures = 0;;) {
    const double began = clock.monotonic_seconds();
    const ProcessEnd end = live(options);
    if (asked >= 2) return 128 + last_signal;
    if (end.signal == 0 && end.code != kAnotherLife) return end.code;
    if (asked > 0) return kResumable;
    const bool young = clock.monotonic_seconds() - began < limits.young_seconds;
    failures = young ? failures + 1 : 0;
    std::fprintf(stderr, "sinew join: the worker %s%s\n", to_string(end).c_str(),
                 failures < limits.most_failures ? "; it begins another life" : " again and again");
    if (failures >= limits.most_failures) return kTrainingError;
    if (young) clock.sleep_seconds(limits.first_delay);
  }
}

}  // namespace sinew::cli
