// Inside registry/: records in the store (SetNote) how far the index has read the files of a run.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "rundir/rundir.h"

namespace sinew::registry {

struct ReadProgress {
  rundir::FilePosition metrics, log, attempts;
  int64_t resumes = 0, begins = 0;
  std::string seen;  // the run's signature at the time when all its files had been read
  // true: the index hid the run because its directory was missing; when the directory comes back, so does the run
  bool gone = false;
};
std::string progress_note_of(const std::string& run);  // the name of the note
std::string to_note(const ReadProgress& reading);
ReadProgress from_note(const std::string& note);  // an empty or damaged note means that nothing has been read

// The names of the series that come from the run's metrics.jsonl. Clients logged all other series, which are in no
// file. These names have a note of their own, because they seldom change and may be long.
std::string keys_note_of(const std::string& run);
std::string keys_to_note(const std::set<std::string>& keys);  // drops names that do not fit into a note
std::set<std::string> keys_from_note(const std::string& note);

}  // namespace sinew::registry
