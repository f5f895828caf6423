#include "base/write_fence.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/check.h"

namespace sinew {
namespace {

namespace fs = std::filesystem;

constexpr int kMostRemovals = 100;  // attempts to remove a directory in which another process still makes files
// Far above all numbers that occur. A name with a higher one is not of a writer.
constexpr int64_t kHighest = 1'000'000'000'000'000'000;

// Returns the path without doubled or trailing slashes, "." and "..".
std::string normal(const std::string& path) {
  std::string text = fs::path(path).lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

bool is_below(std::string_view path, std::string_view directory) {
  if (directory == ".") return !path.starts_with('/') && !path.starts_with("..");
  return path.size() > directory.size() && path.starts_with(directory) &&
         (directory.ends_with('/') || path[directory.size()] == '/');
}

std::string path_in(const std::string& directory, const std::string& name) {
  return (fs::path(directory) / name).string();
}

std::string name_of(const std::string& path) {
  return fs::path(normal(path)).filename().string();
}

std::optional<int64_t> number_of(const std::string& name) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = error == std::errc() && end == name.data() + name.size();
  return whole && number > 0 && number < kHighest && std::to_string(number) == name ? std::optional(number)
                                                                                    : std::nullopt;
}

// A call returns one of these codes if a directory on its path does not exist.
bool is_missing(int code) {
  return code == ENOENT || code == ESTALE;
}

}  // namespace

WriteFence::WriteFence(Disk& disk, const std::string& run_directory, int64_t number)
    : disk_(disk),
      run_(normal(run_directory)),
      writers_(normal(path_in(run_, kDirectory))),
      number_(number),
      own_(path_in(writers_, std::to_string(number))) {
  SINEW_CHECK(number > 0, number);
}

int64_t WriteFence::highest_number(Disk& disk, const std::string& run_directory) {
  const std::string writers = path_in(normal(run_directory), kDirectory);
  int64_t highest = 0;
  if (!disk.exists(writers)) return highest;
  for (const Entry& entry : disk.list(writers)) highest = std::max(highest, number_of(entry.name).value_or(0));
  return highest;
}

// Throws the error of a writer whose directory is gone: a later writer has removed it, or a user has removed it
// together with the whole run.
void WriteFence::fail_replaced() {
  replaced_ = true;
  const std::string me = "writer " + std::to_string(number_) + " (this process)";
  if (!later_writer_exists()) {
    throw WriterReplaced("RUN_DIRECTORY_LOST", own_ + " was removed, and with it the right of " + me + " to write",
                         "nothing was written there since; resume the run, or restore its directory");
  }
  throw WriterReplaced(
      "CHECKPOINT_MAY_NOT_WRITE",
      "another process has taken over the run in " + run_ + "; " + me + " may write nothing there any more",
      "nothing: the process that took over writes the run; look at it with: sinew ps");
}

bool WriteFence::later_writer_exists() const {
  try {
    const int64_t highest = highest_number(disk_, run_);
    return highest > number_ || (highest == number_ && !made_);  // another process with the same number
  } catch (const Error&) {
    return false;
  }
}

void WriteFence::check() {
  if (replaced_ || (taken_over_ && !disk_.exists(own_))) fail_replaced();
}

// ---- taking over ---------------------------------------------------------------------------------------------------

// While this function runs, an earlier writer may be inside any call of the disk, or suspended. Until this function
// removes the earlier writer's directory, the changes of that writer count as made before the takeover; later ones
// fail. A later writer may begin, too. If it has made its directory before this one looks, this one sees the higher
// number. Otherwise, the later writer finds and removes the directory of this one, which was made before this one
// looked.
void WriteFence::take_over() {
  if (replaced_) fail_replaced();
  if (taken_over_) return;
  const bool again = made_;  // a call before this one has failed
  make_own_directory();
  act([&] {
    const std::vector<Entry> writers = disk_.list(writers_);
    for (const Entry& entry : writers) {
      if (number_of(entry.name).value_or(0) <= number_) continue;
      disk_.remove_all(own_);
      fail_replaced();
    }
    for (const Entry& entry : again ? disk_.list(own_) : std::vector<Entry>())
      disk_.remove_all(path_in(own_, entry.name));
    for (const Entry& entry : writers) {
      if (entry.name != name_of(own_)) remove_writer(entry.name);
    }
  });
  check();
  taken_over_ = true;
}

void WriteFence::make_own_directory() {
  if (made_) return;
  disk_.make_directories(writers_);
  try {
    disk_.make_directory(own_);
  } catch (const DiskError& error) {
    if (error.system_code == EEXIST) fail_replaced();  // another process has this number
    throw;
  }
  made_ = true;
}

// Removes what `.writers/NAME` is: the directory of an earlier writer, or what another program left there.
void WriteFence::remove_writer(const std::string& name) {
  std::string away = path_in(own_, ".gone-" + name);
  try {
    disk_.rename(path_in(writers_, name), away);
  } catch (const DiskError& error) {
    if (error.system_code == ENOENT && disk_.exists(own_)) return;  // its writer removed it
    if (error.system_code != EXDEV) throw;
    away = path_in(writers_, name);  // overlayfs cannot rename a directory of a lower layer
  }
  for (int attempt = 1;; ++attempt) {
    try {
      return disk_.remove_all(away);
    } catch (const DiskError& error) {
      // A call that had begun before the rename has made another file in the directory.
      const bool filled = error.system_code == ENOTEMPTY || error.system_code == EEXIST;
      if ((!filled && error.system_code != ENOENT) || attempt == kMostRemovals) throw;
    }
  }
}

bool WriteFence::take_over_again() {
  if (taken_over_ && !replaced_ && disk_.exists(own_)) return false;
  number_ = free_number(disk_, run_);
  own_ = path_in(writers_, std::to_string(number_));
  made_ = taken_over_ = replaced_ = false;
  take_over();
  return true;
}

// ---- changes -------------------------------------------------------------------------------------------------------

WriteFence::Place WriteFence::place_of(const std::string& path) const {
  const std::string at = normal(path);
  if (!is_below(at, run_)) return Place::outside;
  return is_below(at, own_) ? Place::own : Place::run;
}

// Makes a change in the run directory. Throws WriterReplaced if the change fails because this writer's directory does
// not exist any more.
void WriteFence::act(const std::function<void()>& change) {
  try {
    change();
  } catch (const DiskError& error) {
    if (is_missing(error.system_code) && !disk_.exists(own_)) fail_replaced();
    if (error.system_code != EXDEV) throw;
    throw DiskError(error.what(), "use no links and mount points in " + run_ + ": all of it must be on one file system",
                    EXDEV);
  }
}

std::string WriteFence::staging(const std::string& hidden) {
  if (place_of(hidden) == Place::outside) return disk_.staging(hidden);
  take_over();
  return path_in(own_, name_of(hidden));
}

// New names appear only in the own directory. Anything else is a mistake of the caller.
void WriteFence::make(const std::string& path, const std::function<void()>& change) {
  const Place place = place_of(path);
  SINEW_CHECK(place != Place::run, path, own_);
  place == Place::outside ? change() : act(change);
}

std::unique_ptr<Disk::File> WriteFence::create(const std::string& path) {
  std::unique_ptr<File> file;
  make(path, [&] { file = disk_.create(path); });
  return file;
}

std::unique_ptr<Disk::File> WriteFence::create_new(const std::string& path) {
  std::unique_ptr<File> file;
  make(path, [&] { file = disk_.create_new(path); });
  return file;
}

void WriteFence::symlink(const std::string& target, const std::string& path) {
  make(path, [&] { disk_.symlink(target, path); });
}

std::unique_ptr<Disk::File> WriteFence::append(const std::string& path) {
  if (place_of(path) != Place::run) return disk_.append(path);
  take_over();
  const std::string copy = path_in(own_, ".growing-" + name_of(path));
  std::unique_ptr<File> file;
  act([&] {
    file = disk_.create(copy);
    try {
      if (disk_.exists(path)) {
        copy_bytes(disk_, path, 0, disk_.size(path), *file);
        file->sync();  // otherwise a crash could leave an empty file under the name
      }
      disk_.rename(copy, path);
    } catch (const DiskError& error) {
      if (disk_.exists(own_)) disk_.remove_file(copy);
      throw;
    }
  });
  return file;
}

// Does not make the own directory again: that would undo a takeover.
void WriteFence::make_directories(const std::string& path) {
  if (place_of(path) != Place::own) return disk_.make_directories(path);
  std::string at = own_;
  for (const fs::path& name : fs::path(normal(path)).lexically_relative(own_)) {
    at = path_in(at, name.string());
    act([&] {
      try {
        disk_.make_directory(at);
      } catch (const DiskError& error) {
        if (error.system_code != EEXIST) throw;
      }
    });
  }
}

void WriteFence::rename(const std::string& from, const std::string& to) {
  const Place begin = place_of(from), end = place_of(to);
  if (begin == Place::outside && end == Place::outside) return disk_.rename(from, to);
  SINEW_CHECK(begin == Place::own || end == Place::own, from, to, own_);
  act([&] { disk_.rename(from, to); });
}

void WriteFence::move_away(const std::string& path, const std::function<void(const std::string& away)>& remove) {
  const Place place = place_of(path);
  if (place == Place::outside) return remove(path);
  if (place == Place::own) return act([&] { remove(path); });
  take_over();
  const std::string away = path_in(own_, ".removed-" + std::to_string(names_++));
  act([&] {
    try {
      disk_.rename(path, away);
    } catch (const DiskError& error) {
      if (is_missing(error.system_code) && disk_.exists(own_)) return;  // nothing has this name
      throw;
    }
    remove(away);
  });
}

void WriteFence::remove_file(const std::string& path) {
  move_away(path, [&](const std::string& away) { disk_.remove_file(away); });
}

void WriteFence::remove_all(const std::string& path) {
  move_away(path, [&](const std::string& away) { disk_.remove_all(away); });
}

void WriteFence::sync_directory(const std::string& path) {
  if (place_of(path) != Place::own) return disk_.sync_directory(path);
  act([&] { disk_.sync_directory(path); });
}

}  // namespace sinew
