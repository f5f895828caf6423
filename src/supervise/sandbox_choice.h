// Decides whether the workers of a command are confined (sandbox/sandbox.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "spec/spec.h"
#include "task/task.h"

namespace sinew::supervise {

// What the user said.
struct SandboxChoice {
  bool on = false, off = false;
  std::string hosts;  // addresses of other machines, separated by commas
};

// What the workers load and need.
struct SandboxNeeds {
  std::vector<std::string> sources;  // paths from which code or weights come
  std::string writable;              // the directory or file that they write, as the user reads it
  std::string mirror = "";           // checkpoint.mirror, which they could not write
  bool links = false;
  std::string coordinator_url = "";  // if the user named it: its host is a machine of the run
  int64_t workers = 1;               // workers that share the memory of this machine
};

// Returns the paths from which the workers of a job load code or weights (some may be empty). `job_file` says what they
// load, so whoever wrote that file decides what code runs.
std::vector<std::string> sources_of(const spec::Job& job, const std::string& job_file,
                                    const std::string& run_directory);

// `paths` are the job file that names the command, and the run directory. Throws Error if the code of a model wrote one
// of them, or if one comes from a registry, because a command runs without the sandbox.
void refuse_untrusted_command(const std::vector<std::string>& paths);

// Returns nullopt if the workers are not confined. Without a choice, they are confined if a source was written by the
// code of a model, or comes from a registry. Tells `say` how the workers are confined. Throws UsageError if the choice
// contradicts itself, if there is a mirror, or if this kernel cannot confine them.
std::optional<task::Sandbox> sandbox_of(const SandboxChoice& choice, const SandboxNeeds& needs,
                                        const std::function<void(const std::string&)>& say);

}  // namespace sinew::supervise
