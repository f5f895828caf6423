#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/disk.h"
#include "base/error.h"
#include "base/json_text.h"
#include "rundir/rundir.h"

namespace sinew::rundir {
namespace {

namespace fs = std::filesystem;

// levels below the root: <job>/<utc>-<id> has two, and further directories may group runs
constexpr int kDeepestRun = 6;

void collect(const fs::path& directory, int depth, std::vector<std::string>& runs) {
  std::error_code code;
  if (is_run(directory.string())) return runs.push_back(directory.string());
  if (depth == 0) return;
  for (fs::directory_iterator it(directory, code), end; !code && it != end; it.increment(code)) {
    std::error_code ignored;
    if (it->is_symlink(ignored) || !it->is_directory(ignored)) continue;  // `latest` is a link to another run
    if (it->path().filename().string().starts_with('.')) continue;        // .sinew holds data about runs, but no runs
    collect(it->path(), depth - 1, runs);
  }
}

// Returns the file's text, or "" if the file is missing, too large or unreadable.
std::string small_text(const std::string& path) {
  constexpr uint64_t kMost = 8 << 20;
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return "";
  try {
    return system_disk().size(path) > kMost ? "" : read_text(system_disk(), path);
  } catch (const DiskError&) {
    return "";
  }
}

double first_metrics_time(const std::string& directory) {
  constexpr int64_t kPiece = 64 << 10;
  try {
    const std::string text = read_piece(file_in(directory, kMetricsFile), {}, kPiece).text;
    const auto line = nlohmann::ordered_json::parse(text.substr(0, text.find('\n')), nullptr, false);
    if (!line.is_object() || !line.contains("time")) return 0;
    return number_in_json(line["time"]).value_or(0);
  } catch (const DiskError&) {
    return 0;
  }
}

std::string id_of(const std::string& directory) {
  return fs::path(directory).filename().string();
}

std::string job_of(const std::string& directory) {
  try {
    const auto options = flat_options(small_text(file_in(directory, kResolvedFile)));
    if (const auto name = options.find("name"); name != options.end()) return name->second;
  } catch (const Error&) {  // then the directory's name serves instead
  }
  return fs::path(directory).parent_path().filename().string();
}

std::string newest_of(const std::vector<std::string>& directories) {
  std::pair<double, std::string> newest;
  for (const std::string& directory : directories)
    newest = std::max(newest, {started_wall_seconds(directory), directory});
  return newest.second;
}

}  // namespace

bool is_run(const std::string& directory) {
  std::error_code ignored;
  return fs::exists(file_in(directory, kResolvedFile), ignored);
}

std::vector<std::string> run_directories(const std::string& root) {
  std::vector<std::string> directories;
  collect(root, kDeepestRun, directories);
  return directories;
}

double started_wall_seconds(const std::string& directory) {
  const auto outcome = parse_outcome(small_text(file_in(directory, kOutcomeFile)));
  if (outcome && outcome->started_wall_seconds > 0) return outcome->started_wall_seconds;
  if (const double named = utc_of_compact(id_of(directory)); named > 0) return named;
  if (const double first = first_metrics_time(directory); first > 0) return first;
  struct stat facts {};
  const bool there = ::stat(file_in(directory, kResolvedFile).c_str(), &facts) == 0;
  return there ? static_cast<double>(facts.st_mtim.tv_sec) : 0;
}

std::string find_run(const std::string& root, const std::string& name) {
  std::error_code code;
  if (name != "last" && fs::is_directory(name, code)) {
    if (is_run(name)) return name;
    throw Error("RUN_NOT_FOUND", name + " is not a run: it has no resolved.yaml",
                "give a run directory, the end of a run's id, or last");
  }
  const std::vector<std::string> directories = run_directories(root);
  if (directories.empty()) throw Error("RUN_NOT_FOUND", "no runs under " + root, "say where they are with --root");
  if (name == "last") return newest_of(directories);
  std::vector<std::string> fitting;
  for (const std::string& directory : directories) {
    const std::string id = id_of(directory);
    if (name.empty()) break;
    if (id.ends_with(name) || (name.ends_with("/" + id) && job_of(directory) + "/" + id == name))
      fitting.push_back(directory);
  }
  if (fitting.size() == 1) return fitting[0];
  if (fitting.empty())
    throw Error("RUN_NOT_FOUND", "no run '" + name + "' under " + root, "'sinew runs list' shows them");
  std::string all;
  for (size_t i = 0; i < std::min<size_t>(fitting.size(), 5); ++i) all += (i == 0 ? "" : ", ") + fitting[i];
  throw Error("RUN_AMBIGUOUS", std::to_string(fitting.size()) + " runs end in '" + name + "'",
              "name one of them: " + all);
}

}  // namespace sinew::rundir
