// Inside registry/: computes the changes that bring the store's record of a run up to date with the run's files. Pure.
#pragma once

#include <optional>
#include <vector>

#include "registry/run_files.h"

namespace sinew::registry {

struct RunStatus {
  store::RunState state = store::RunState::kRunning;
  const char* status = "running";  // the status that `sinew runs` shows
  std::string why;
  int64_t ended_ms = 0;
};
RunStatus status_of(const RunFiles& files);

// Returns the change that creates the record of a new run.
store::Create creation_of(const RunFiles& files, const std::string& experiment);

// Returns the changes that bring body, tags and state up to date. `resumes` is the number of attempts after the first,
// as the run's files show. If `gone`, the index hid the record while the directory was missing, so the record becomes
// visible again.
std::vector<store::Change> changes_of(const RunFiles& files, const store::Record& record, int64_t resumes, bool gone);

}  // namespace sinew::registry
