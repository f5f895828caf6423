#include "registry/run_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>

#include "base/disk.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json_text.h"
#include "registry/registry.h"
#include "rundir/rundir.h"

namespace sinew::registry {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using rundir::file_in;

constexpr int kMaxDepth = 6;                       // as deep as `sinew runs` searches
constexpr uint64_t kMaxSmallFileBytes = 64 << 20;  // data.json may list 20'000 files for each split
constexpr size_t kMaxValues =
    100'000;  // of a JSON file, names and brackets included; a value may take 100 times its text
constexpr size_t kMaxParamBytes = 6000;
constexpr const char* kSignatureFiles[] = {rundir::kResolvedFile, rundir::kEnvironmentFile, rundir::kOutcomeFile,
                                           rundir::kMetricsFile,  rundir::kLogFile,         rundir::kAttemptsFile,
                                           rundir::kDataManifest, rundir::kCheckpoints,     rundir::kModel};

bool is_not_there(const std::error_code& code) {
  return code == std::errc::no_such_file_or_directory || code == std::errc::not_a_directory;
}

void collect(const fs::path& root, const std::string& below, int depth, RunDirectories& found) {
  std::error_code code;
  const fs::path here = root / below;
  if (!below.empty() && fs::exists(here / rundir::kResolvedFile, code)) return found.runs.push_back(below);
  if (depth == 0 && !code) return;
  fs::directory_iterator it;
  if (!code) it = fs::directory_iterator(here, code);
  for (const fs::directory_iterator end; !code && it != end; it.increment(code)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with(".")) continue;
    const std::string path = below.empty() ? name : below + "/" + name;
    std::error_code looking;
    const bool folder = !it->is_symlink(looking) && !looking && it->is_directory(looking);
    if (looking && !is_not_there(looking)) found.unlisted[path] = looking.message();
    if (folder) collect(root, path, depth - 1, found);
  }
  if (code && below.empty())
    throw Error("INDEX_ROOT_UNREADABLE", "cannot list " + root.string() + ": " + code.message(),
                "name the directory of the runs with --root");
  if (code && !is_not_there(code)) found.unlisted[below] = code.message();
}

int64_t milliseconds(const timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1000 + time.tv_nsec / 1'000'000;
}

int64_t changed_ms(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 ? milliseconds(facts.st_mtim) : 0;
}

std::string why_unreadable(int code) {
  if (code == ELOOP) return "it is a symbolic link, and runs are read without following links";
  return std::strerror(code);
}

[[noreturn]] void fail_unreadable(const std::string& path, int code) {
  throw Error("RUN_UNREADABLE", path + ": " + why_unreadable(code),
              code == ELOOP ? "put the file itself into the run's directory"
                            : "check the owner and the permissions of the file");
}

class Reader {
 public:
  Reader(const BeneathFile& directory, RunFiles& files) : directory_(directory), files_(files) {}

  // Returns the text of a small file, or nullopt if the file is missing or unreadable. An unreadable file is recorded
  // as a problem.
  std::optional<std::string> text(const char* name) {
    try {
      const auto file = open_beneath(directory_, name);
      if (!file && file.error() != ENOENT && file.error() != ENOTDIR) problem(name, why_unreadable(file.error()));
      if (!file) return std::nullopt;
      if (system_disk().size(file->path()) <= kMaxSmallFileBytes) return read_text(system_disk(), file->path());
      problem(name, "too large");
    } catch (const DiskError& error) {
      problem(name, std::strerror(error.system_code));
    } catch (const Error& error) {
      problem(name, error.what());
    }
    return std::nullopt;
  }
  // Parses a JSON object. Leaves out the fields "files", which may be long and are not needed.
  json object(const char* name) {
    const auto read = text(name);
    if (!read) return nullptr;
    constexpr int kNone = INT_MAX;
    size_t values = 0;
    int files = kNone;  // the depth of the field "files" that the parser is in
    const auto wanted = [&](int depth, json::parse_event_t event, const json& part) {
      const bool is_key = event == json::parse_event_t::key;
      if (depth < files || (is_key && depth == files)) files = kNone;
      if (files == kNone && is_key && part == "files") files = depth;
      return files == kNone && ++values <= kMaxValues && depth < 16;
    };
    json parsed = json::parse(*read, wanted, false);
    if (values > kMaxValues) {
      problem(name, "too many values");
      return nullptr;
    }
    if (parsed.is_object()) return parsed;
    problem(name, "not a JSON object");
    return nullptr;
  }
  void problem(const char* name, const std::string& what) {
    files_.problems.push_back(clean_text(files_.path + "/" + name + ": " + what, 1000));
  }

 private:
  const BeneathFile& directory_;
  RunFiles& files_;
};

void read_options(Reader& reader, RunFiles& files, const std::string& yaml) {
  try {
    for (const auto& [key, value] : rundir::flat_options(yaml)) {
      if (!key.empty()) files.params[clean_text(key, 500)] = clean_text(value, kMaxParamBytes);
    }
  } catch (const std::exception& error) {
    reader.problem(rundir::kResolvedFile, error.what());
  }
  const auto name = files.params.find("name");
  files.job = name != files.params.end() && !name->second.empty()
                  ? clean_text(name->second, 500)
                  : clean_text(files.path.substr(0, files.path.find('/')), 500);
}

void read_outcome(Reader& reader, RunFiles& files) {
  const auto text = reader.text(rundir::kOutcomeFile);
  if (!text) return;
  std::string why;
  files.outcome = rundir::parse_outcome(*text, &why);
  if (!files.outcome) reader.problem(rundir::kOutcomeFile, why);
}

// Calls `take` for each entry of a folder of the run. Does nothing if the folder is missing or is a symbolic link.
template <typename Take>
void each_entry(const BeneathFile& run, const char* folder, Take take) {
  const auto opened = open_beneath(run, folder);
  if (!opened) return;
  std::error_code code;
  for (fs::directory_iterator it(opened->path(), code), end; !code && it != end; it.increment(code)) take(*it);
}

void read_folders(const BeneathFile& run, RunFiles& files) {
  each_entry(run, rundir::kCheckpoints, [&](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-")) files.checkpoints.push_back(clean_text(name, 500));
  });
  std::sort(files.checkpoints.begin(), files.checkpoints.end());
  each_entry(run, rundir::kModel, [&](const fs::directory_entry& entry) {
    std::error_code ignored;
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(".") && !entry.is_symlink(ignored) && entry.is_regular_file(ignored))
      files.model[clean_text(name, 500)] = static_cast<int64_t>(entry.file_size(ignored));
  });
}

}  // namespace

RunDirectories run_directories(const std::string& root) {
  RunDirectories found;
  collect(root, "", kMaxDepth, found);
  std::sort(found.runs.begin(), found.runs.end());
  return found;
}

std::string signature_of(const std::string& directory) {
  std::string text;
  for (const char* name : kSignatureFiles) {
    struct stat facts {};
    if (::stat((directory + "/" + name).c_str(), &facts) != 0) facts = {};
    for (const auto number : {static_cast<int64_t>(facts.st_size), static_cast<int64_t>(facts.st_ino),
                              static_cast<int64_t>(facts.st_mtim.tv_sec), static_cast<int64_t>(facts.st_mtim.tv_nsec)})
      text += std::to_string(number) + ",";
  }
  return to_hex(digest_of(text));
}

std::optional<BeneathFile> open_run(const std::string& root, const std::string& path) {
  const auto top = open_directory(root);
  if (!top && top.error() != ENOENT && top.error() != ENOTDIR) fail_unreadable(root, top.error());
  return top ? open_in_run(*top, root, path) : std::nullopt;
}

std::optional<BeneathFile> open_in_run(const BeneathFile& run, const std::string& path, const std::string& name) {
  auto file = open_beneath(run, name);
  if (file) return *std::move(file);
  if (file.error() != ENOENT && file.error() != ENOTDIR) fail_unreadable(path + "/" + name, file.error());
  return std::nullopt;
}

std::optional<RunFiles> read_run_files(const std::string& root, const std::string& path) {
  const auto run = open_run(root, path);
  if (!run) return std::nullopt;
  const std::string directory = run->path();
  RunFiles files;
  files.path = path;
  files.locked = rundir::is_running(directory);
  Reader reader(*run, files);
  const auto yaml = reader.text(rundir::kResolvedFile), job = reader.text(rundir::kJobFile);
  if (!files.problems.empty())
    throw Error("RUN_UNREADABLE", files.problems[0], "check the owner and the permissions of the file");
  if (!yaml) return std::nullopt;
  files.id = run_id_of(path, job.value_or(""), *yaml);
  read_options(reader, files, *yaml);
  read_outcome(reader, files);
  files.environment = reader.object(rundir::kEnvironmentFile);
  files.data = reader.object(rundir::kDataManifest);
  read_folders(*run, files);
  files.begun_ms = static_cast<int64_t>(utc_of_compact(path.substr(path.rfind('/') + 1))) * 1000;
  if (files.begun_ms == 0) files.begun_ms = changed_ms(file_in(directory, rundir::kJobFile));
  if (files.begun_ms == 0) files.begun_ms = changed_ms(file_in(directory, rundir::kResolvedFile));
  files.changed_ms =
      std::max(changed_ms(file_in(directory, rundir::kMetricsFile)), changed_ms(file_in(directory, rundir::kLogFile)));
  return files;
}

std::string clean_text(std::string_view text, size_t most) {
  std::string escaped = dump_json(json(std::string(text)));
  std::string clean = json::parse(escaped).get<std::string>();
  std::replace(clean.begin(), clean.end(), '\0', ' ');
  if (clean.size() <= most) return clean;
  size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(clean[end]) & 0xC0) == 0x80) --end;  // do not split a character
  return clean.substr(0, end);
}

std::string run_id_of(std::string_view path_below_root, std::string_view job_yaml, std::string_view resolved_yaml) {
  DigestStream digest;
  const auto add = [&](std::string_view text) {
    const std::string framed = std::to_string(text.size()) + ":" + std::string(text);
    digest.update(std::as_bytes(std::span(framed.data(), framed.size())));
  };
  add(path_below_root);
  if (!job_yaml.empty()) {
    add(job_yaml);
    return to_hex(digest.digest());
  }
  try {  // hash the options and not the text, because a resume may rewrite the comments
    for (const auto& [key, value] : rundir::flat_options(std::string(resolved_yaml))) add(key), add(value);
  } catch (const std::exception&) {
    add(resolved_yaml);
  }
  return to_hex(digest.digest());
}

}  // namespace sinew::registry
