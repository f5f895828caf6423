// `sinew-worker`: the program that uses libtorch. `sinew` starts it; users rarely do.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <string>
#include <variant>

#include "base/error.h"
#include "base/machine.h"
#include "base/printable.h"
#include "base/signals.h"
#include "base/terminal_text.h"
#include "model/model.h"
#include "report/report.h"
#include "train/train.h"
#include "worker/tasks.h"

namespace sinew::worker {
std::atomic<int> stop_signals{0}, checkpoint_signals{0};
}

namespace {

using namespace sinew;
using worker::checkpoint_signals;
using worker::stop_signals;

// The number of stop signals that can make a stop immediate. StopRequests (base/signals.h) counts in the same way, but
// a signal handler needs atomic variables.
std::atomic<int> insistent_signals{0};
RepeatedStops repeated_stops;

// Safe to call from a signal handler.
double monotonic_seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The first signal asks for a checkpoint and an orderly end. A second signal ends the process at once, unless one of
// the two was SIGHUP. Stop signals after the first ask for nothing new, so training sees only one stop request.
void on_stop(int signal) {
  if (repeated_stops.repeats(signal, monotonic_seconds())) return;
  if (can_insist(signal) && insistent_signals.fetch_add(1) >= 1) {
    report::leave_live_line();
    _exit(128 + signal);
  }
  int none = 0;
  stop_signals.compare_exchange_strong(none, signal);
}
void on_checkpoint(int) {
  checkpoint_signals.fetch_add(1);
}

// Only training handles SIGINT, SIGTERM and SIGHUP, because only training has a state to save, and a plan has a
// directory to remove. Every other task ends at the first signal, like most programs. A signal that the parent process
// ignored stays ignored.
void install_signals(bool training) {
  struct sigaction action {};
  action.sa_flags = SA_RESTART;
  action.sa_handler = on_stop;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (training && !parent_ignored(signal)) sigaction(signal, &action, nullptr);
  }
  action.sa_handler = on_checkpoint;
  sigaction(SIGUSR1, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` then fails like a write on a full disk
}

// Returns the exit code. The text may quote data, a model or a job of any origin.
int say_error(const Error& error) {
  const std::string hint = error.hint.empty() ? "" : "\n  try: " + error.hint;
  report::print_beside_run("sinew: " + printable(to_string(error) + hint, true));
  return dynamic_cast<const UsageError*>(&error) != nullptr ? kUsage : kTrainingError;
}

// MKL chooses kernels by memory alignment unless MKL_CBWR is set, and it reads that variable when it loads. The program
// therefore sets it and executes itself again.
void pin_kernels(char** argv) {
  if (std::getenv("MKL_CBWR") != nullptr) return;
  setenv("MKL_CBWR", "AUTO", 1);
  execv("/proc/self/exe", argv);
}

int run(const task::Task& task) {
  if (const auto* train = std::get_if<task::Train>(&task)) return worker::run_train(*train);
  if (const auto* evaluate = std::get_if<task::Evaluate>(&task)) return worker::run_eval(*evaluate);
  if (const auto* predict = std::get_if<task::Predict>(&task)) return worker::run_predict(*predict);
  if (const auto* inspect = std::get_if<task::Inspect>(&task)) return worker::run_inspect(*inspect);
  if (const auto* exported = std::get_if<task::Export>(&task)) return worker::run_export(*exported);
  if (const auto* plan = std::get_if<task::Plan>(&task)) return worker::run_plan(*plan);
  if (const auto* advise = std::get_if<task::Advise>(&task)) return worker::run_advise(*advise);
  if (const auto* rate = std::get_if<task::FindRate>(&task)) return worker::run_find_rate(*rate);
  return worker::run_check(std::get<task::Check>(task));
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  try {
    begin_program();
    pin_kernels(argv);
    const task::Task task = argc < 2 ? task::parse("") : task::read(argv[1]);
    install_signals(std::holds_alternative<task::Train>(task) || std::holds_alternative<task::Plan>(task) ||
                    std::holds_alternative<task::Advise>(task));
    model::install_keyed_random();
    return run(task);
  } catch (const worker::JobRefused& refused) {
    print_text(stderr, printable(refused.what(), true));  // each line has its own code
    return kUsage;
  } catch (const Error& error) {
    return say_error(error);
  } catch (const std::exception& error) {
    if (const auto shortage = shortage_of(error)) return say_error(*shortage);
    report::print_beside_run("sinew: " + printable(error.what(), true));
    return kTrainingError;
  }
}
