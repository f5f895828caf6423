#include "supervise/first_decision.h"

#include <csignal>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/process.h"
#include "rundir/rundir.h"

namespace sinew::supervise {
namespace {

constexpr double kDecisionTurnSeconds = 0.05;

}  // namespace

std::vector<std::string> decided_options(const spec::Job& job, const std::string& precision,
                                         const std::string& memory_format) {
  std::vector<std::string> options;
  const auto take = [&](const std::string& wanted, const char* key, const std::string& decided) {
    if (wanted == spec::kFastest && !decided.empty()) options.push_back(key + decided);
  };
  take(job.trainer.precision, "trainer.precision=", precision);
  take(job.trainer.memory_format, "trainer.memory_format=", memory_format);
  return options;
}

void take_decided(std::vector<std::string>& overrides, const std::vector<std::string>& decided) {
  for (const std::string& option : decided) {
    std::erase(overrides, option.substr(0, option.find('=') + 1) + spec::kFastest);
    overrides.push_back(option);
  }
}

std::optional<int> decide_first(const WorkerLaunch& launch, SignalSource& signals) {
  if (rundir::is_run(launch.run_directory)) return std::nullopt;
  const WorkerStart start = decision_start(launch);
  Process worker(start.process);
  int stop = 0;
  std::optional<ProcessEnd> end;
  while (!(end = worker.wait(kDecisionTurnSeconds))) {
    const int signal = signals.next();
    if (signal == 0 || signal == SIGUSR1) continue;  // there is no state that could be saved
    worker.send(stop == 0 ? SIGTERM : SIGKILL);
    stop = signal;
  }
  if (stop != 0) return 128 + stop;
  if (*end == ProcessEnd{}) return std::nullopt;
  if (end->signal != 0)
    throw Error("FASTEST_UNDECIDED",
                "the process that measures which precision is the fastest was ended: " + to_string(*end),
                "give trainer.precision and trainer.memory_format; a signal 9 is often a lack of memory");
  return end->code;
}

}  // namespace sinew::supervise
