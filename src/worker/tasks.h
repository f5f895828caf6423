// Declares the functions that carry out the tasks of `sinew-worker` (task/task.h), and reads jobs for them.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "sandbox/sandbox.h"
#include "spec/spec.h"
#include "task/task.h"

namespace sinew::worker {

// The job or an override has problems. what() has one line for each problem, and each line ends with a line break.
struct JobRefused : UsageError {
  explicit JobRefused(const std::string& lines) : UsageError("JOB_UNREADABLE", lines, "") {}
};

// The following two functions throw JobRefused if the job or an override has problems.
spec::Job read_job_file(const std::string& path, const std::vector<std::string>& overrides);
spec::Job read_job_text(const std::string& yaml, const std::string& name, const std::vector<std::string>& overrides);

// Flush what was printed, and fail because it could not be printed. If the program that reads the output has ended, as
// `head` does, both end this process quietly. Otherwise they throw Error.
void flush_stdout();
[[noreturn]] void output_failed();

// stop_signals is SIGINT, SIGTERM or SIGHUP once it has asked the training to stop. checkpoint_signals counts the
// SIGUSR1 that this process has received.
extern std::atomic<int> stop_signals, checkpoint_signals;

// Seconds until a worker begins to train. If the kernel tells more, it counts in another time than this process.
inline constexpr double kMostStart = 60;

// Confines this process, if the task says so: without network and without writes. Returns the file at `output`, which
// this process writes all the same; null if the process is not confined or `output` is empty.
std::unique_ptr<sandbox::OutsideFile> confine(const std::optional<task::Sandbox>& wanted, const std::string& output,
                                              sandbox::OutsideFile::Kind kind);

// Each function carries out one kind of task and returns the exit code.
int run_train(const task::Train& task);
int run_eval(const task::Evaluate& task);
int run_inspect(const task::Inspect& task);
int run_predict(const task::Predict& task);
int run_check(const task::Check& task);
int run_export(const task::Export& task);
int run_plan(const task::Plan& task);
int run_advise(const task::Advise& task);
int run_find_rate(const task::FindRate& task);

}  // namespace sinew::worker
