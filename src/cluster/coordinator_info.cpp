#include "cluster/coordinator_info.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <sstream>

#include "base/beneath.h"
#include "base/disk.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/machine.h"
#include "base/private_files.h"
#include "cluster/join_token.h"
#include "cluster/json.h"
#include "cluster/protocol.h"
#include "http/http.h"
#include "rundir/rundir.h"

namespace sinew::cluster {
namespace {

constexpr size_t kMostBytes = 64 << 10;
constexpr size_t kLongestField = 4096;
constexpr int64_t kMostIncarnations = 1'000'000'000;
constexpr int64_t kVersion = 2;

// Version 1 had no "version". It called the incarnation "life" and the exit code "over".
CoordinatorInfo info_of(Fields& fields, bool first_version) {
  CoordinatorInfo info;
  info.url = fields.text("url", kLongestField);
  info.secret = fields.text("secret", kLongestField);
  if (info.secret.empty()) fields.blame("\"secret\" is empty");
  info.pid = fields.whole("pid", 0);
  info.incarnation = fields.whole(first_version ? "life" : "incarnation", 0, std::nullopt, kMostIncarnations);
  const char* exit_code = first_version ? "over" : "exit_code";
  if (fields.has(exit_code)) info.exit_code = fields.whole(exit_code, 0, std::nullopt, 255);
  return info;
}

std::string path_in(const std::string& run_directory) {
  return rundir::file_in(run_directory, rundir::kCoordinatorFile);
}

// A file that cannot be read now is not a damaged file: it may have any content.
[[noreturn]] void fail_to_read(const std::string& path, int code) {
  throw DiskError("cannot read " + path + ": " + std::strerror(code),
                  code == EMFILE || code == ENFILE
                      ? hint_of_limit(code)
                      : "check the disk of this path, its owner and its permissions, and that it is a regular file",
                  code);
}

std::string text_in(const BeneathFile& file, const std::string& path) {
  std::string text(kMostBytes, '\0');
  try {
    text.resize(system_disk().read_at(file.path(), 0, std::as_writable_bytes(std::span(text))));
  } catch (const DiskError& error) {  // its message names the descriptor
    fail_to_read(path, error.system_code);
  }
  return text;
}

}  // namespace

bool joined_by_url(const CoordinatorInfo& info) {
  return info.pid == 0 || join_token_of(info.secret);
}

std::optional<CoordinatorInfo> read_coordinator_info(const std::string& run_directory) {
  return read_coordinator_info_file(path_in(run_directory));
}

std::optional<CoordinatorInfo> read_coordinator_info_file(const std::string& path) {
  const std::filesystem::path place(path);
  const std::string folder = place.has_parent_path() ? place.parent_path().string() : ".";
  const auto directory = open_directory(folder);
  const auto file =
      directory ? open_beneath(*directory, place.filename().string()) : std::unexpected(directory.error());
  if (!file && (file.error() == ENOENT || file.error() == ENOTDIR)) return std::nullopt;
  if (!file && file.error() == ELOOP) {
    throw Error("COORDINATOR_FILE_INVALID", path + " is a symbolic link",
                "remove it; the next coordinator of the run writes it again");
  }
  if (!file) fail_to_read(path, file.error());
  const auto json = parse_json(text_in(*file, path));
  if (!json) {
    throw Error("COORDINATOR_FILE_INVALID", path + " is not JSON",
                "remove it; the next coordinator of the run writes it again");
  }
  Fields fields(*json);
  const int64_t version = fields.whole("version", 1, 1);
  if (fields.problem().empty() && version > kVersion) {
    throw Error("COORDINATOR_FILE_VERSION",
                path + " has version " + std::to_string(version) + ", and this program reads versions up to " +
                    std::to_string(kVersion),
                "use the version of sinew that started the run");
  }
  const CoordinatorInfo info = info_of(fields, version == 1);
  if (!fields.problem().empty()) {
    throw Error("COORDINATOR_FILE_INVALID", path + " cannot be understood: " + fields.problem(),
                "remove it; the next coordinator of the run writes it again");
  }
  return info;
}

CoordinatorInfo info_with_secret(const std::string& run_directory) {
  const auto info = read_coordinator_info(run_directory);
  if (!info) {
    throw Error("RUN_WITHOUT_COORDINATOR",
                run_directory + " has no coordinator: the run was not started with several workers",
                "start it with: sinew train JOB --workers N --listen ADDRESS");
  }
  if (join_token_of(info->secret)) {
    throw UsageError("TOKEN_NEEDS_SECRET", run_directory + " has a join token, and not the run's secret",
                     "run this command on the machine of the run's coordinator");
  }
  if (info->url.empty()) {
    throw Error(kNotReady, "the first coordinator of " + run_directory + " does not listen yet",
                "try again in two seconds; `sinew ps` shows whether the run has begun");
  }
  return *info;
}

std::optional<CoordinatorInfo> coordinator_info_now(const std::string& run_directory) {
  try {
    return read_coordinator_info(run_directory);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void check_coordinator_address(const CoordinatorInfo& info, const std::string& named) {
  const std::string host = http::host_of(info.url);
  const size_t after = info.url.find("://");
  const std::string authority = after == std::string::npos ? "" : info.url.substr(after + 3);
  bool trusted = http::is_this_machine(host);
  std::istringstream list(named);
  for (std::string name; std::getline(list, name, ',');) trusted |= name == host || name == authority;
  if (trusted && !host.empty()) return;
  throw Error("COORDINATOR_ELSEWHERE",
              "the run's coordinator.json names the address '" + info.url + "', which is not of this machine",
              "if you trust it, name its host: SINEW_COORDINATORS=" + (host.empty() ? "HOST" : host) +
                  " (several with commas)");
}

CoordinatorInfo running_coordinator(const std::string& root, const std::string& run, std::string* directory) {
  const bool is_path = system_disk().exists(path_in(run));
  const std::string found = is_path ? run : rundir::find_run(root, run);
  if (directory != nullptr) *directory = found;
  const auto info = read_coordinator_info(found);
  if (!info) {
    throw Error("RUN_WITHOUT_COORDINATOR", found + " has no coordinator: the run was not started with several workers",
                "start it with: sinew train JOB --workers N; 'sinew runs' lists all runs");
  }
  if (info->exit_code) {
    throw Error("RUN_NOT_RUNNING", found + " does not run: it ended with exit code " + std::to_string(*info->exit_code),
                *info->exit_code == 0 ? "see its results with: sinew runs show " + found
                                      : "continue it with: sinew resume " + found + " --workers N");
  }
  return *info;
}

void write_coordinator_info(const std::string& run_directory, const CoordinatorInfo& info) {
  Json json = {{"version", kVersion},
               {"url", info.url},
               {"secret", info.secret},
               {"pid", info.pid},
               {"incarnation", info.incarnation}};
  if (info.exit_code) json["exit_code"] = *info.exit_code;
  const std::string text = dump(json) + "\n";
  const PrivateFiles only_ours;
  write_durably(system_disk(), path_in(run_directory), std::as_bytes(std::span(text)));
}

void record_end(const std::string& run_directory, int64_t pid, int64_t exit_code) {
  auto info = read_coordinator_info(run_directory);
  if (!info || info->pid != pid) return;
  info->exit_code = exit_code;
  write_coordinator_info(run_directory, *info);
}

std::string new_secret() {
  return random_hex(32);
}

}  // namespace sinew::cluster
