// Finds and copies the checkpoints that a command writes, by the convention of docs/guides/commands.md.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <tuple>

#include "base/disk.h"
#include "base/error.h"
#include "jobs/changed_at.h"
#include "jobs/jobs.h"

namespace sinew::jobs {
namespace {

namespace fs = std::filesystem;

bool is_complete_name(const std::string& name) {
  if (name.empty() || name[0] == '.' || name[0] == '_') return false;
  return std::ranges::none_of(std::initializer_list<const char*>{".tmp", ".part", ".partial"},
                              [&](const char* ending) { return name.ends_with(ending); });
}

// Returns the last number in the name (1000 of "step-00001000" and of "net_1000.pt"), or -1 if it has none.
double last_number(const std::string& name) {
  const auto is_digit = [](char letter) { return std::isdigit(static_cast<unsigned char>(letter)) != 0; };
  size_t end = name.size();
  while (end > 0 && !is_digit(name[end - 1])) --end;
  size_t begin = end;
  while (begin > 0 && is_digit(name[begin - 1])) --begin;
  return end == 0 ? -1 : std::stod(name.substr(begin, std::min<size_t>(end - begin, 300)));
}

void sync_file(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = file >= 0 && ::fsync(file) == 0;
  const int code = errno;
  if (file >= 0) ::close(file);
  if (!synced) throw fs::filesystem_error("fsync", path, std::error_code(code, std::generic_category()));
}

void sync_all(const fs::path& path) {
  const fs::file_status status = fs::symlink_status(path);
  if (fs::is_regular_file(status)) return sync_file(path);
  if (!fs::is_directory(status)) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) sync_all(entry.path());
  system_disk().sync_directory(path);
}

// Returns the newest modification time of the path and everything below it.
double all_changed_at(const fs::path& path) {
  double newest = changed_at(path);
  if (!fs::is_directory(fs::symlink_status(path))) return newest;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path))
    newest = std::max(newest, changed_at(entry.path()));
  return newest;
}

constexpr const char* kMark = "/.carried";  // this file's modification time is when the copy was complete

}  // namespace

std::string newest_checkpoint(const std::string& directory) {
  std::error_code code;
  std::tuple<double, double, std::string> newest{-2, 0, ""};
  for (fs::directory_iterator at(directory, code), end; !code && at != end; at.increment(code)) {
    const std::string name = at->path().filename().string();
    if (!is_complete_name(name)) continue;
    std::error_code unreadable;
    const fs::file_status status = at->symlink_status(unreadable);
    const bool kept = fs::is_regular_file(status) || fs::is_directory(status);
    if (!kept || fs::is_empty(at->path(), unreadable) || unreadable) continue;
    newest = std::max(newest, {last_number(name), changed_at(at->path()), at->path().string()});
  }
  return std::get<2>(newest);
}

bool carry_checkpoint(const std::string& from, const std::string& to) {
  const fs::path newest = newest_checkpoint(from);
  if (newest.empty()) return false;
  const fs::path there = fs::path(to) / newest.filename(), unfinished = fs::path(to) / ".unfinished";
  try {
    fs::create_directories(to);
    fs::remove_all(unfinished);
    fs::copy(newest, unfinished, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    sync_all(unfinished);
    write_durably(system_disk(), to + kMark, newest.string() + "\n");
    fs::rename(unfinished, there);
    system_disk().sync_directory(to);
  } catch (const fs::filesystem_error& error) {
    throw Error("JOBS_CHECKPOINT_NOT_COPIED",
                "cannot copy the checkpoint " + newest.string() + " to " + to + ": " + error.code().message(),
                "free some space there, or check the permissions of both directories");
  }
  return true;
}

bool has_own_checkpoint(const std::string& directory) {
  const std::string newest = newest_checkpoint(directory);
  if (newest.empty()) return false;
  try {
    return !fs::exists(directory + kMark) || all_changed_at(newest) > changed_at(directory + kMark);
  } catch (const fs::filesystem_error&) {
    return false;  // it cannot be read, or it changes right now
  }
}

}  // namespace sinew::jobs
