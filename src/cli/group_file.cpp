#include "cli/group_file.h"

#include <nlohmann/json.hpp>
#include <span>

#include "base/disk.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/private_files.h"
#include "report/report.h"

namespace sinew::cli {
namespace {

constexpr size_t kMostBytes = 64 << 10;

}  // namespace

std::string group_file_path(const std::string& run_directory) {
  return run_directory + "/coordinator.json";
}

std::string view_file_path(const std::string& run_directory) {
  return run_directory + "/view.json";
}

std::optional<GroupFile> read_group_file(const std::string& run_directory) {
  const std::string path = group_file_path(run_directory);
  if (!system_disk().exists(path)) return std::nullopt;
  const Error broken("cannot understand " + path, "it is written anew when the run is started; remove it");
  std::string text(kMostBytes, '\0');
  text.resize(system_disk().read_at(path, 0, std::as_writable_bytes(std::span(text))));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) throw broken;
  try {
    GroupFile file;
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

std::optional<GroupFile> group_file_now(const std::string& run_directory) {
  try {
    return read_group_file(run_directory);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void write_group_file(const std::string& run_directory, const GroupFile& file) {
  nlohmann::ordered_json json = {{"url", file.url}, {"secret", file.secret}, {"pid", file.pid}, {"life", file.life}};
  if (file.over) json["over"] = *file.over;
  const std::string text = json.dump() + "\n";
  const PrivateFiles only_ours;
  write_durably(system_disk(), group_file_path(run_directory), std::as_bytes(std::span(text)));
}

void note_end(const std::string& run_directory, int64_t pid, int64_t code) {
  auto file = read_group_file(run_directory);
  if (!file || file->pid != pid) return;
  file->over = code;
  write_group_file(run_directory, *file);
}

GroupFile running_group(const std::string& root, const std::string& run, std::string* directory) {
  const bool is_path = system_disk().exists(group_file_path(run));
  const std::string found = is_path ? run : report::pick_run(root, run).directory;
  if (directory != nullptr) *directory = found;
  const auto file = read_group_file(found);
  if (!file) {
    throw Error(found + " has no coordinator: it was not started with several workers",
                "sinew train JOB --workers N; sinew runs shows every run");
  }
  if (file->over) {
    throw Error(found + " is not running: it ended with exit code " + std::to_string(*file->over),
                *file->over == 0 ? "sinew runs show " + found : "sinew resume " + found + " --workers N goes on");
  }
  return *file;
}

std::string new_secret() {
  return random_hex(32);
}

}  // namespace sinew::cli
