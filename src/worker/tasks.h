// The tasks of `sinew-worker`, and how they read a job. `sinew` has already checked their words.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "spec/spec.h"

namespace sinew::worker {

using Words = std::vector<std::string>;

// These print all problems of the job or of an override, and then end the process with exit code 2.
spec::Job read_job_file(const std::string& path, const Words& overrides);
spec::Job read_job_text(const std::string& yaml, const std::string& name, const Words& overrides);

// Number of signals that this process has received: SIGINT and SIGTERM, SIGUSR1.
extern std::atomic<int> stop_signals, checkpoint_signals;

int run_train(const Words& words);    // JOB RUN_DIR [--resume] [--ledger] [--json] [--group] [key=value ...]
int run_eval(const Words& words);     // WHAT PART [--json] [data.key=value ...]
int run_inspect(const Words& words);  // FILE; a job file may be followed by [key=value ...]
int run_predict(const Words& words);  // WHAT DATA OUT FORMAT [data.key=value ...]; OUT "-": standard output

}  // namespace sinew::worker
