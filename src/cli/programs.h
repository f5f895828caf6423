// The two programs of Sinew on disk, and handing this process over to the one with libtorch.
#pragma once

#include <string>

#include "supervise/supervise.h"
#include "task/task.h"

namespace sinew::cli {

// The path that starts this program once more. While it runs, an upgrade may put another program at its path; then this
// is the kernel's handle of the old one.
std::string this_program();

// Both programs: sinew-worker lies beside sinew. The variable SINEW_WORKER names another worker program (for tests).
supervise::Programs programs();

// Replaces this process by sinew-worker with that task. Only returns by throwing. `label`: shown in lists of processes.
int become_worker(const task::Task& task, const std::string& label);

// A path as it is; else the run of that name ("last", the end of an id) below `root`.
std::string path_of_model(const std::string& root, const std::string& name);

// "test.path=x" and "data.test.path=x" both mean the override data.test.path=x. Throws UsageError for other sections.
std::string data_override(const std::string& word);

}  // namespace sinew::cli
