// `sinew-worker`: the program that uses libtorch. `sinew` starts it; users rarely do.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/model.h"
#include "train/train.h"
#include "worker/tasks.h"

namespace sinew::worker {
std::atomic<int> stop_signals{0}, checkpoint_signals{0};
}

namespace {

using namespace sinew;
using worker::checkpoint_signals;
using worker::stop_signals;
using worker::Words;

void on_stop(int signal) {
  // The first signal asks for a checkpoint and an orderly end; the second ends the process at once.
  if (stop_signals.fetch_add(1) >= 1) _exit(128 + signal);
}
void on_checkpoint(int) {
  checkpoint_signals.fetch_add(1);
}

// Only training has something to save. Every other task ends at the first signal, like most programs.
void install_signals(bool training) {
  struct sigaction action {};
  action.sa_flags = SA_RESTART;
  action.sa_handler = on_stop;
  if (training) {
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
  }
  action.sa_handler = on_checkpoint;
  sigaction(SIGUSR1, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

// MKL chooses kernels by memory alignment unless MKL_CBWR is set, and it reads that variable when it loads. The program
// therefore sets it and executes itself again.
void pin_kernels(char** argv) {
  if (std::getenv("MKL_CBWR") != nullptr) return;
  setenv("MKL_CBWR", "AUTO", 1);
  execv("/proc/self/exe", argv);
}

// sinew-worker check JOB [--json] [--time=S] [key=value ...]
int run_check(const std::vector<std::string>& words) {
  bool json = false;
  train::SanityOptions options;
  std::vector<std::string> overrides;
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--json") {
      json = true;
    } else if (words[i].starts_with("--time=")) {
      options.seconds = std::strtod(words[i].c_str() + 7, nullptr);
    } else {
      overrides.push_back(words[i]);
    }
  }
  options.job = worker::read_job_file(words.at(0), overrides);
  const auto data = train::open_data(options.job);
  options.dataset = data.get();
  if (!json) {
    std::printf("%s: %s on %lld training samples\n", options.job.name.c_str(), options.job.model.name.c_str(),
                static_cast<long long>(data->info().train_size));
    options.on_finding = [](const train::SanityFinding& finding) {
      std::printf("%s\n", finding_text(finding).c_str());
      std::fflush(stdout);
    };
  }
  const double began = system_clock().monotonic_seconds();
  const auto findings = train::check_sanity(options, system_clock());
  if (json) std::fputs(findings_json(options.job.name, findings).c_str(), stdout);
  if (!json) std::printf("%s\n", train::findings_summary(findings, system_clock().monotonic_seconds() - began).c_str());
  return train::all_sane(findings) ? 0 : 4;
}

struct Task {
  const char* name;
  size_t words;  // minimum number of words after the name
  int (*run)(const Words&);
};
constexpr Task kTasks[] = {
    {"train", 2, worker::run_train},
    {"eval", 2, worker::run_eval},
    {"inspect", 1, worker::run_inspect},
    {"predict", 4, worker::run_predict},
};

}  // namespace

int main(int argc, char** argv) {
  pin_kernels(argv);
  const Words words(argv + 1, argv + argc);
  install_signals(!words.empty() && words[0] == "train");
  model::install_keyed_random();
  try {
    for (const Task& task : kTasks) {
      if (!words.empty() && words[0] == task.name && words.size() > task.words)
        return task.run({words.begin() + 1, words.end()});
    }
    if (words.size() >= 2 && words[0] == "check") return run_check({words.begin() + 1, words.end()});
    std::fprintf(stderr, "sinew-worker: started without a task\n  try: sinew train JOB\n");
    return kUsage;
  } catch (const Error& error) {
    std::fprintf(stderr, "sinew: %s\n", error.what());
    if (!error.hint.empty()) std::fprintf(stderr, "  try: %s\n", error.hint.c_str());
    return kTrainingError;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sinew: %s\n", error.what());
    return kTrainingError;
  }
}
