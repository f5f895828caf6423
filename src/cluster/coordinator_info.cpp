#include "cluster/coordinator_info.h"

#include <nlohmann/json.hpp>
#include <span>

#include "base/disk.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/private_files.h"
#include "rundir/rundir.h"

namespace sinew::cluster {
namespace {

constexpr size_t kMostBytes = 64 << 10;

}  // namespace

std::optional<CoordinatorInfo> read_coordinator_info(const std::string& run_directory) {
  const std::string path = rundir::file_in(run_directory, rundir::kCoordinatorFile);
  if (!system_disk().exists(path)) return std::nullopt;
  const Error broken("COORDINATOR_FILE_INVALID", "cannot understand " + path,
                     "remove it: the next start of the run writes a new one");
  std::string text(kMostBytes, '\0');
  text.resize(system_disk().read_at(path, 0, std::as_writable_bytes(std::span(text))));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) throw broken;
  try {
    CoordinatorInfo file;
    file.url = json.at("url").get<std::string>();
    file.secret = json.at("secret").get<std::string>();
    file.pid = json.at("pid").get<int64_t>();
    file.life = json.at("life").get<int64_t>();
    if (json.contains("over")) file.over = json.at("over").get<int64_t>();
    if (file.life < 0 || file.life > 1'000'000'000) throw broken;
    return file;
  } catch (const nlohmann::json::exception&) {
    throw broken;
  }
}

std::optional<CoordinatorInfo> coordinator_info_now(const std::string& run_directory) {
  try {
    return read_coordinator_info(run_directory);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void write_coordinator_info(const std::string& run_directory, const CoordinatorInfo& file) {
  nlohmann::ordered_json json = {{"url", file.url}, {"secret", file.secret}, {"pid", file.pid}, {"life", file.life}};
  if (file.over) json["over"] = *file.over;
  const std::string text = json.dump() + "\n";
  const PrivateFiles only_ours;
  write_durably(system_disk(), rundir::file_in(run_directory, rundir::kCoordinatorFile),
                std::as_bytes(std::span(text)));
}

void record_end(const std::string& run_directory, int64_t pid, int64_t code) {
  auto file = read_coordinator_info(run_directory);
  if (!file || file->pid != pid) return;
  file->over = code;
  write_coordinator_info(run_directory, *file);
}

CoordinatorInfo running_coordinator(const std::string& root, const std::string& run, std::string* directory) {
  const bool is_path = system_disk().exists(rundir::file_in(run, rundir::kCoordinatorFile));
  const std::string found = is_path ? run : rundir::find_run(root, run);
  if (directory != nullptr) *directory = found;
  const auto file = read_coordinator_info(found);
  if (!file) {
    throw Error("RUN_WITHOUT_COORDINATOR", found + " has no coordinator: it was not started with several workers",
                "sinew train JOB --workers N; sinew runs shows every run");
  }
  if (file->over) {
    throw Error("RUN_NOT_RUNNING", found + " is not running: it ended with exit code " + std::to_string(*file->over),
                *file->over == 0 ? "sinew runs show " + found : "sinew resume " + found + " --workers N resumes it");
  }
  return *file;
}

std::string new_secret() {
  return random_hex(32);
}

}  // namespace sinew::cluster
