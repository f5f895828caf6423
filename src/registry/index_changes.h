// Inside registry/: from what a run directory says, and what the store has of it, to the changes in between. Pure.
#pragma once

#include <optional>
#include <vector>

#include "registry/run_files.h"

namespace sinew::registry {

struct RunStanding {
  store::RunState state = store::RunState::kRunning;
  const char* status = "running";  // as `sinew runs` has it
  std::string why;
  int64_t ended_ms = 0;
};
RunStanding standing_of(const RunFiles& files);

// A record for a run that has none.
store::Create creation_of(const RunFiles& files, const std::string& experiment);

// Brings tags, body and state up to date. `resumes`: how many attempts it had after the first, by its files. `gone`:
// its directory was, and for that it was hidden; now it is there again.
std::vector<store::Change> changes_of(const RunFiles& files, const store::Record& record, int64_t resumes, bool gone);

}  // namespace sinew::registry
