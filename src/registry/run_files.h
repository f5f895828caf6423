// Inside registry/: what a run directory says, apart from its long files.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "report/report.h"
#include "rundir/rundir.h"
#include "store/store.h"

namespace sinew::registry {

struct RunPlaces {
  std::vector<std::string> runs;  // every directory that holds resolved.yaml, sorted
  std::map<std::string, std::string>
      unread;  // folders that could not be listed to their end, and why: runs may be there
};
// As paths below root. Names that begin with a dot and symlinks are passed over. Throws Error when the root itself can
// not be listed.
RunPlaces run_directories(const std::string& root);

// Tells whether any file of the run was changed, in some looks at it.
std::string signature_of(const std::string& directory);

struct RunFiles {
  std::string path;  // below the root
  std::string id, job;
  bool locked = false;
  store::Labels params;
  nlohmann::json environment, data;  // objects; null: not there
  std::optional<rundir::Outcome> outcome;
  std::vector<std::string> checkpoints;
  std::map<std::string, int64_t> model;  // files of model/ and their sizes
  int64_t begun_ms = 0, changed_ms = 0;  // by its name, or its first file; newest change of its growing files
  std::vector<std::string> problems;
};
// Looks at the lock first: a run that ends meanwhile is seen as running, never as dead. nullopt: not a run (any more).
// Throws Error when its resolved.yaml is there and can not be read; of what else can not be read `problems` tells.
std::optional<RunFiles> read_run_files(const std::string& root, const std::string& path);

// Valid UTF-8 without NUL and at most `most` bytes, whatever was given.
std::string clean_text(std::string_view text, size_t most);

}  // namespace sinew::registry
