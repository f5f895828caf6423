// RUN/coordinator.json: where a run's coordinator is, and what it must never give twice (docs/formats/coordinator.md).
//
// Written by each coordinator when it begins, read by workers at every connection and by ps, scale, control. Whoever
// may read it may steer the run: mode 0600.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sinew::cli {

struct GroupFile {
  std::string url, secret;
  int64_t pid = 0;
  int64_t life = 0;             // coordinators this run had before
  std::optional<int64_t> over;  // the run's exit code, once it ended
  bool with_tls() const { return url.starts_with("https://"); }
};

std::string group_file_path(const std::string& run_directory);
// RUN/view.json: the newest view, for a coordinator that takes another's place. A run that begins removes it.
std::string view_file_path(const std::string& run_directory);
// nullopt: there is none. Throws Error when it is there and can not be understood.
std::optional<GroupFile> read_group_file(const std::string& run_directory);
// nullopt, too, where it can not be read just now: for who looks again.
std::optional<GroupFile> group_file_now(const std::string& run_directory);
void write_group_file(const std::string& run_directory, const GroupFile& file);
// Notes that the run ended, if the coordinator `pid` is still the run's newest.
void note_end(const std::string& run_directory, int64_t pid, int64_t code);
// The same, found by the run's name; throws Error in words when nothing of the kind is running.
GroupFile running_group(const std::string& root, const std::string& run, std::string* directory = nullptr);

std::string new_secret();  // 256 bits of the kernel's, as hex digits

}  // namespace sinew::cli
