// Inside registry/: how far a run's files were read, as it is remembered in notes of the store.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "rundir/rundir.h"

namespace sinew::registry {

struct Reading {
  rundir::FilePosition metrics, log, attempts;
  int64_t resumes = 0, begins = 0;
  std::string seen;   // the run's signature, once everything under it was read
  bool gone = false;  // hidden, as its directory was gone; who is hidden without it was deleted by a person
};
std::string note_of(const std::string& run);  // the note's name
std::string to_note(const Reading& reading);
Reading from_note(const std::string& note);  // of no note, or a damaged one: nothing was read

// Which series of a run its metrics.jsonl has; others were logged by clients and are in no file. A note of its own, as
// it seldom changes and may be long.
std::string keys_note_of(const std::string& run);
std::string keys_to_note(const std::set<std::string>& keys);  // as many as a note holds
std::set<std::string> keys_from_note(const std::string& note);

}  // namespace sinew::registry
