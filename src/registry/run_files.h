// Inside registry/: finds run directories and reads their small files.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/beneath.h"
#include "report/report.h"
#include "rundir/rundir.h"
#include "store/store.h"

namespace sinew::registry {

struct RunDirectories {
  std::vector<std::string> runs;  // all directories with a resolved.yaml, sorted
  // Folders that could not be listed completely, each with the reason. They may contain further runs.
  std::map<std::string, std::string> unlisted;
};
// Returns paths below the root. Skips symbolic links and names that begin with a dot. Throws Error if the root itself
// cannot be listed.
RunDirectories run_directories(const std::string& root);

// Opens a run's directory below the root. Returns nullopt if it is gone. Throws Error (RUN_UNREADABLE) if it cannot be
// opened or if a symbolic link leads to it. No link is followed, because a user who may write to the root could
// otherwise lead this program to other files of its owner.
std::optional<BeneathFile> open_run(const std::string& root, const std::string& path);
// Opens a file or folder of the run in the same way. An Error names `path`, the run's path, in its message.
std::optional<BeneathFile> open_in_run(const BeneathFile& run, const std::string& path, const std::string& name);

// Returns a digest of the sizes, inodes and times of the run's files. It changes if any of these files changes.
std::string signature_of(const std::string& directory);

struct RunFiles {
  std::string path;  // the run's path below the root
  std::string id, job;
  bool locked = false;
  store::Labels params;
  nlohmann::json environment, data;  // objects, or null if the file is missing
  std::optional<rundir::Outcome> outcome;
  std::vector<std::string> checkpoints;
  std::map<std::string, int64_t> model;  // files in model/ and their sizes
  // begun_ms: the time in the directory's name, or else that of its first file. changed_ms: the last change of a
  // growing file.
  int64_t begun_ms = 0, changed_ms = 0;
  std::vector<std::string> problems;
};
// Checks the lock before it reads the files. So a run that ends meanwhile counts as running, and never as dead. Returns
// nullopt if the directory is not a run, or is gone. Throws Error if job.yaml or resolved.yaml exists but cannot be
// read; `problems` lists other unreadable files.
std::optional<RunFiles> read_run_files(const std::string& root, const std::string& path);

// Returns the text as valid UTF-8 without NUL, cut off at `most` bytes.
std::string clean_text(std::string_view text, size_t most);

}  // namespace sinew::registry
