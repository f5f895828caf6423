// Inside registry/: records how far the index has read a run's files, in notes of the store.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "rundir/rundir.h"

namespace sinew::registry {

struct ReadProgress {
  rundir::FilePosition metrics, log, attempts;
  int64_t resumes = 0, begins = 0;
  std::string seen;   // the signature of the run when all its files had been read
  bool gone = false;  // true: the index hid the run because its directory was missing; false: a user hid it
};
std::string progress_note_of(const std::string& run);  // the name of the note
std::string to_note(const ReadProgress& reading);
ReadProgress from_note(const std::string& note);  // an empty or damaged note means that nothing was read

// The metric series that come from the run's metrics.jsonl. Other series were logged by clients and are in no file.
// They have their own note, because they seldom change and may be long.
std::string keys_note_of(const std::string& run);
std::string keys_to_note(const std::set<std::string>& keys);  // drops keys that do not fit a note
std::set<std::string> keys_from_note(const std::string& note);

}  // namespace sinew::registry
