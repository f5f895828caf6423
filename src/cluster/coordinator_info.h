// RUN/coordinator.json: where a run's coordinator is, and the numbers it must never give twice
// (docs/formats/coordinator.md).
//
// Each coordinator writes it when it starts; workers read it at every connection, and so do ps, scale and control. Its
// mode is 0600, because any reader can control the run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sinew::cluster {

struct CoordinatorInfo {
  std::string url, secret;
  int64_t pid = 0;
  int64_t life = 0;             // coordinators that this run had before
  std::optional<int64_t> over;  // the run's exit code, once it has ended
  bool with_tls() const { return url.starts_with("https://"); }
};

// nullopt: there is no file. Throws Error if the file cannot be understood.
std::optional<CoordinatorInfo> read_coordinator_info(const std::string& run_directory);
// Also nullopt if the file cannot be read now. For callers that look again later.
std::optional<CoordinatorInfo> coordinator_info_now(const std::string& run_directory);
void write_coordinator_info(const std::string& run_directory, const CoordinatorInfo& info);
// Records that the run ended, if the process `pid` is still the run's newest coordinator.
void record_end(const std::string& run_directory, int64_t pid, int64_t code);
// The coordinator of a run that goes on, found by the run's directory or name. Throws Error if the run is not running
// with a coordinator.
CoordinatorInfo running_coordinator(const std::string& root, const std::string& run, std::string* directory = nullptr);

std::string new_secret();  // 256 random bits from the kernel as hexadecimal digits

}  // namespace sinew::cluster
