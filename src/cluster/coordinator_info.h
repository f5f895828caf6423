// Reads and writes RUN/coordinator.json: where a run's coordinator listens, and how many coordinators the run had
// before. A coordinator that replaces a dead one (its successor) computes from this number the ids and generations that
// it may give (docs/formats/coordinator.md).
//
// Each coordinator writes the file when it begins. Workers read it for every new connection; ps, scale and control read
// it, too. A process that can read the file can control the run, so the file's mode is 0600.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sinew::cluster {

struct CoordinatorInfo {
  std::string url;
  std::string secret;                // of the run; in the directory of a worker of another machine: its join token
  int64_t pid = 0;                   // of the coordinator; 0 if none has listened here
  int64_t incarnation = 0;           // number of coordinators that this run had before
  std::optional<int64_t> exit_code;  // the run's exit code, once the run has ended
  bool with_tls() const { return url.starts_with("https://"); }
};

// Returns whether this is the file of a worker that joined by a URL. Such a worker has a directory of its own, which is
// not the run's directory, so it cannot lead the run.
bool joined_by_url(const CoordinatorInfo& info);

// Returns nullopt if the file does not exist. Throws Error if it is invalid, a later version wrote it, or it is a
// symbolic link: it could lead to the secret of another run. Throws DiskError if it cannot be read now; this says
// nothing about its content.
std::optional<CoordinatorInfo> read_coordinator_info(const std::string& run_directory);
std::optional<CoordinatorInfo> read_coordinator_info_file(const std::string& path);
// Like read_coordinator_info, but returns nullopt on every Error: the file cannot be read, is invalid, was written by a
// later version, or is a symbolic link. For callers that read the file again later.
std::optional<CoordinatorInfo> coordinator_info_now(const std::string& run_directory);
// Returns the information of a run's own directory, with the run's secret. Throws Error if the run had no coordinator
// or its first one does not listen yet, or if the directory is that of a worker that joined with a token.
CoordinatorInfo info_with_secret(const std::string& run_directory);
void write_coordinator_info(const std::string& run_directory, const CoordinatorInfo& info);
// Records that the run ended, unless a newer coordinator than `pid` has taken over.
void record_end(const std::string& run_directory, int64_t pid, int64_t exit_code);
// Throws Error (COORDINATOR_ELSEWHERE) unless the coordinator's address is one of this machine, or its host (or
// "host:port") is in `named`, a list with commas. A command or a server that finds the address in a run directory calls
// this before it connects: the directory may come from somebody else, who must not choose where this process sends
// requests.
void check_coordinator_address(const CoordinatorInfo& info, const std::string& named);
// Returns the coordinator of a run that is not over; `run` is the run's directory or name. Throws Error if the run
// never had a coordinator, or has ended.
CoordinatorInfo running_coordinator(const std::string& root, const std::string& run, std::string* directory = nullptr);

std::string new_secret();  // 256 random bits of the kernel, as hex digits

}  // namespace sinew::cluster
