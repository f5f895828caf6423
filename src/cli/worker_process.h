// From `sinew` to `sinew-worker`, the half with libtorch.
#pragma once

#include <string>
#include <vector>

namespace sinew::cli {

// What starts this very program once more: its path while that is its path, and where an upgrade put another there what
// the kernel still holds.
std::string this_program();

// The program beside this one; SINEW_WORKER names another (tests do).
std::string worker_program();

// Replaces this process by the worker that stands beside it, with these words. Only returns by throwing.
int become_worker(std::vector<std::string> words);

// A path as it is; else the run of that name ('last', the end of an id) below `root`.
std::string path_of_model(const std::string& root, const std::string& name);

// "test.path=x" and "data.test.path=x" are the override data.test.path=x. Throws UsageError for other sections.
std::string data_override(const std::string& word);

}  // namespace sinew::cli
