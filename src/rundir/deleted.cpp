// Deletes runs in two steps: into the folder .deleted of their root, and from there for good.
#include <filesystem>

#include "base/error.h"
#include "base/printable.h"
#include "rundir/rundir.h"

namespace sinew::rundir {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDeleted = ".deleted";

// Returns the path of the run below the root. Throws UsageError if it is not below the root.
fs::path place_below(const std::string& root, const std::string& directory) {
  std::error_code code;
  const fs::path top = fs::canonical(root, code), run = fs::canonical(directory, code);
  const fs::path place = code ? fs::path() : run.lexically_relative(top);
  if (place.empty() || place == "." || *place.begin() == "..")
    throw UsageError("RUN_NOT_FOUND", directory + " is not below " + root,
                     "name the directory of its runs: --root DIR");
  return place;
}

void move_run(const fs::path& from, const fs::path& to) {
  std::error_code code;
  if (fs::exists(to, code)) throw Error("RUN_EXISTS", to.string() + " already holds a run", "move or delete it first");
  fs::create_directories(to.parent_path(), code);
  if (!code) fs::rename(from, to, code);
  if (code)
    throw Error("DISK_FAILED", "cannot move " + from.string() + " to " + to.string() + ": " + code.message(),
                "check the permissions of both folders, and that they are on one file system");
}

}  // namespace

std::string deleted_root(const std::string& root) {
  return file_in(root, kDeleted);
}

std::string delete_run(const std::string& root, const std::string& directory) {
  const fs::path place = place_below(root, directory);
  const fs::path above = fs::canonical(directory).parent_path();
  // A search has no resolved.yaml, and its trials may go.
  if (const std::string whole = above.parent_path().string(); above.filename() == kTrials && is_run(whole))
    throw UsageError("RUN_IN_USE", directory + " is a fold, and its cross-validation needs all of them",
                     "delete the whole: sinew runs delete " + shell_quoted(whole));
  const std::string cure = "stop it first: sinew stop " + shell_quoted(directory);
  const auto lock = RunLock::take(directory);
  if (!lock) throw UsageError("RUN_IN_USE", lock.error(), cure);
  if (!leading_place(directory).empty())
    throw UsageError("RUN_IN_USE", directory + " is a study that a process leads now", cure);
  const fs::path to = fs::path(deleted_root(root)) / place;
  move_run(fs::canonical(directory), to);  // not a link that leads to the run
  return to.string();
}

std::string restore_run(const std::string& root, const std::string& name) {
  const std::string from = find_run(deleted_root(root), name);
  const fs::path to = fs::path(root) / place_below(deleted_root(root), from);
  move_run(from, to);
  return to.string();
}

void remove_deleted_run(const std::string& root, const std::string& name) {
  const std::string directory = find_run(deleted_root(root), name);
  place_below(deleted_root(root), directory);
  std::error_code code;
  fs::remove_all(directory, code);
  if (code) throw Error("DISK_FAILED", "cannot remove " + directory + ": " + code.message(), "check its permissions");
}

}  // namespace sinew::rundir
