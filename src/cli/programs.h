// Finds the two programs of Sinew on disk. Replaces this process by sinew-worker, the program with libtorch.
#pragma once

#include <string>

#include "supervise/supervise.h"
#include "task/task.h"

namespace sinew::cli {

class Options;

// Returns a path with which this program can be started again. If an upgrade has replaced the file, the path is
// /proc/self/exe, the kernel's link to the old file.
std::string this_program();

// Returns the paths of both programs. sinew-worker is in the directory of sinew. The environment variable SINEW_WORKER
// names another worker program (for tests).
supervise::Programs programs();

// From now on SIGUSR1 does not kill this process. A launcher or a user may send SIGUSR1 to all processes of a run. Only
// a supervisor and a worker that trains alone save a checkpoint when they get it.
void ignore_checkpoint_requests();

// Replaces this process by sinew-worker with that task, or throws Error. `label` appears in the list of processes.
int become_worker(const task::Task& task, const std::string& label);

// Prepares a task in which the worker trains a job and no run is left: reads the job, checks out the weights that it
// begins with (an override then names them), and decides whether the worker is confined; `written` is what it may write
// all the same. Returns false if the job has problems, which were shown. Throws Error.
bool prepare_training(const std::string& job, std::vector<std::string>& overrides, const std::string& command,
                      const supervise::SandboxChoice& choice, const std::string& written,
                      std::optional<task::Sandbox>& sandbox);

// Prints a sentence to stderr: "sinew: ...".
void print_sentence(const std::string& sentence);

// Adds --sandbox and --no-sandbox, and --sandbox-hosts if there may be links.
Options& add_sandbox(Options& options, supervise::SandboxChoice& choice, bool links = false);

// See registry::path_of_model. SINEW_STORE names another store than that of `root`.
std::string path_of_model(const std::string& root, const std::string& name);
inline constexpr char kModelHelp[] =
    "a run (its directory, the end of its id, or last), a registered model (NAME, NAME@champion or NAME/3), a model "
    "directory or a checkpoint";

// "test.path=x" and "data.test.path=x" both mean the override data.test.path=x. Throws UsageError for other sections.
std::string data_override(const std::string& word);

}  // namespace sinew::cli
