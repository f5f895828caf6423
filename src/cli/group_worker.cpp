#include "cli/group_worker.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/disk.h"
#include "base/signals.h"
#include "cli/commands.h"
#include "cli/group_file.h"
#include "cli/supervision.h"
#include "cli/worker_process.h"
#include "http/http.h"

namespace sinew::cli {
namespace {

constexpr double kLookSeconds = 0.05;
constexpr double kOverSeconds = 1;  // between two looks whether the run is over

volatile std::sig_atomic_t asked = 0, insisted = 0, last_signal = 0;
void on_signal(int signal) {
  if (can_insist(signal)) insisted = insisted + 1;
  if (can_insist(signal) || asked == 0) last_signal = signal;
  asked = 1;
}

// The run's exit code, where the supervisor notes it. A look that fails is one more look later.
std::optional<int> over(const std::string& run_directory) {
  const auto file = group_file_now(run_directory);
  if (!file || !file->over) return std::nullopt;
  return static_cast<int>(*file->over);
}

// One life. A worker that does not hear that the run is over is ended.
ProcessEnd live(const ProcessOptions& options, const std::string& run_directory, Clock& clock) {
  const SupervisionOptions limits;
  Process worker(options);
  bool told = false, killed = false;
  double next_look = 0;
  std::optional<double> over_since;
  while (true) {
    if (const auto end = worker.wait(kLookSeconds)) return *end;
    if (asked > 0 && !std::exchange(told, true)) worker.send(SIGTERM);
    if (insisted > 1 && !std::exchange(killed, true)) worker.send(SIGKILL);
    const double now = clock.monotonic_seconds();
    if (now < next_look) continue;
    next_look = now + kOverSeconds;
    if (!over_since && over(run_directory)) over_since = now;
    if (over_since && now - *over_since >= limits.end_seconds) worker.send(SIGKILL);
  }
}

}  // namespace

ProcessOptions group_worker(const GroupWork& work, const std::string& url, bool later, std::optional<int64_t> sharers) {
  const std::string resolved = work.run_directory + "/resolved.yaml";
  const bool goes_on = later && system_disk().exists(resolved);
  ProcessOptions process;
  process.command = {worker_program(), "train", goes_on ? resolved : work.job, work.run_directory, "--group"};
  if (work.resume || later) process.command.emplace_back("--resume");
  process.command.insert(process.command.end(), work.flags.begin(), work.flags.end());
  if (!goes_on) process.command.insert(process.command.end(), work.overrides.begin(), work.overrides.end());
  process.environment["SINEW_COORDINATOR_FILE"] = group_file_path(work.run_directory);
  process.environment["SINEW_HANG_AFTER"] = std::to_string(work.hang_seconds);
  if (sharers) process.environment["SINEW_LOCAL_WORKERS"] = std::to_string(*sharers);
  if (std::getenv("MKL_CBWR") == nullptr) process.environment["MKL_CBWR"] = "AUTO";
  const std::string here = http::address_towards(url);
  if (std::getenv("SINEW_LINK_LISTEN") == nullptr && !here.empty()) process.environment["SINEW_LINK_LISTEN"] = here;
  process.death_signal = SIGKILL;  // whoever started it ended; the newest checkpoint stands
  return process;
}

int keep_worker(const std::string& name, const std::string& run_directory,
                const std::function<ProcessOptions(bool later)>& make, Clock& clock) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, on_signal);
  const SupervisionOptions limits;
  int64_t failures = 0;
  for (bool later = false;; later = true) {
    const double began = clock.monotonic_seconds();
    const ProcessEnd end = live(make(later), run_directory, clock);
    if (insisted > 1) return 128 + last_signal;
    if (end.signal == 0 && end.code != kRejoin) return end.code;
    if (asked > 0) return kResumable;
    if (const auto code = over(run_directory)) return *code;
    const bool young = clock.monotonic_seconds() - began < limits.young_seconds;
    failures = young ? failures + 1 : 0;
    std::fprintf(stderr, "%s: the worker %s%s\n", name.c_str(), to_string(end).c_str(),
                 failures < limits.most_failures ? "; it begins another life" : " again and again");
    if (failures >= limits.most_failures) return kTrainingError;
    if (young) clock.sleep_seconds(limits.first_delay);
  }
}

}  // namespace sinew::cli
