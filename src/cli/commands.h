// Declares the commands of `sinew`, and how they read a job file. Each command has its own file; main.cpp lists them
// all.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/terminal_text.h"
#include "spec/spec.h"
#include "study/study.h"

namespace sinew::cli {

// The arguments after the command's name. The function that runs a command returns the exit code. It may throw Error,
// which main prints.
using Arguments = std::vector<std::string>;

// Reads the job file ("-" is standard input) with overrides and the process's environment. If there is a problem,
// prints all problems to stderr and returns nullopt; the command then ends with kUsage. Throws UsageError if the file
// cannot be read.
std::optional<spec::Job> load_job(const std::string& path, const std::vector<std::string>& overrides);

// Like load_job, for a command that can only train models. Throws UsageError if the job runs a command; the error names
// `what`, the calling command.
std::optional<spec::Job> load_training(const std::string& path, const std::vector<std::string>& overrides,
                                       const std::string& what);
// load_job in two steps, for a command that keeps the text as well. It must read the file only once: the file may be a
// pipe, and an edit between two reads would make the kept text differ from the job.
std::string read_job_file(const std::string& path);
std::string job_file_name(const std::string& path);  // as messages name it
// Like load_job, for a text. `name` appears in messages.
std::optional<spec::Job> read_job_text(const std::string& text, const std::string& name,
                                       const std::vector<std::string>& overrides);

int run_validate(const Arguments& arguments);
int run_check(const Arguments& arguments);    // check.cpp
int run_trace(const Arguments& arguments);    // trace.cpp
int run_plan(const Arguments& arguments);     // plan.cpp
int run_find_lr(const Arguments& arguments);  // find_lr.cpp
int run_schema(const Arguments& arguments);
int run_runs(const Arguments& arguments);
int run_train(const Arguments& arguments);
int run_resume(const Arguments& arguments);
int run_run(const Arguments& arguments);
int run_stop(const Arguments& arguments);
int run_ps(const Arguments& arguments);
int run_scale(const Arguments& arguments);    // control.cpp
int run_control(const Arguments& arguments);  // control.cpp
int run_join(const Arguments& arguments);
int run_token(const Arguments& arguments);
int run_chaos(const Arguments& arguments);
int run_coordinator(const Arguments& arguments);
int run_eval(const Arguments& arguments);
int run_predict(const Arguments& arguments);
int run_export(const Arguments& arguments);
int run_inspect(const Arguments& arguments);
int run_init(const Arguments& arguments);
int run_advise(const Arguments& arguments);
int run_tune(const Arguments& arguments);
// Leads a study on this terminal, with so many trials side by side. Returns the exit code.
using OpenStudy = std::function<std::unique_ptr<study::StudySession>(const study::Options&)>;
int lead_study(std::optional<int64_t> parallel, const OpenStudy& open);  // tune.cpp
int run_server(const Arguments& arguments);
int run_checkpoint(const Arguments& arguments);  // checkpoint.cpp
int run_models(const Arguments& arguments);
int run_data(const Arguments& arguments);
int run_repro(const Arguments& arguments);

}  // namespace sinew::cli
