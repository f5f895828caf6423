// Writes the files of a version into a directory, so that every reader of model directories can use the version.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/sha256.h"
#include "registry/registry.h"
#include "rundir/rundir.h"

namespace sinew::registry {
namespace {

namespace fs = std::filesystem;
using store::Kind;

constexpr char kWeightsFile[] = "model/model.safetensors";
constexpr char kNameFile[] = "version";  // in each directory: the name of the version, "photos/3"

fs::path checkouts_of(const std::string& root) {
  return fs::path(root) / ".sinew" / "versions";
}

// "photos-3-1a2b3c4d5e6f7081": readable, safe as a name of a directory, and another one for every model and version.
std::string directory_name(const store::Subject& version) {
  std::string readable = version.id.substr(0, 60);
  for (char& c : readable) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!plain) c = '-';
  }
  const std::string number = std::to_string(version.number);
  return readable + "-" + number + "-" + sha256_hex(version.id + "\n" + number).substr(0, 16);
}

// An MLflow client may have chosen the paths of the files.
bool is_inside(const std::string& path) {
  const fs::path parts(path);
  return !path.empty() && parts.is_relative() &&
         std::none_of(parts.begin(), parts.end(), [](const fs::path& part) { return part == ".." || part == "."; });
}

std::string text_of(const store::Subject& version) {
  return version.id + "/" + std::to_string(version.number);
}

// Returns whether the name can only be that of a version: "model@alias" or "model/3".
bool names_a_version(const std::string& name) {
  const size_t slash = name.rfind('/');
  int64_t number = 0;
  const char* end = name.data() + name.size();
  const bool numbered = slash != std::string::npos && slash > 0 &&
                        std::from_chars(name.data() + slash + 1, end, number).ptr == end && slash + 1 < name.size();
  return numbered || name.find('@') != std::string::npos;
}

// The readers compare the files of a model with its list of digests. This compares the list itself, and model.json,
// which says that there is a list, with the version.
void check_lists(const std::vector<store::Attachment>& files, const fs::path& place) {
  for (const store::Attachment& file : files) {
    const std::string name = fs::path(file.path).filename().string();
    if (name != "model.json" && name != "model.digests.json") continue;
    const std::string path = (place / file.path).string();
    if (system_disk().exists(path) && sha256_hex(system_disk().read(path)) == file.digest) continue;
    throw Error("MODEL_NOT_USABLE", path + " is not the file of the version",
                "remove " + place.string() + " and try again");
  }
}

bool store_exists(const std::string& place) {
  return place.find("://") != std::string::npos || system_disk().exists(place);
}

}  // namespace

std::string check_out(store::Store& store, Artifacts& artifacts, const store::Record& version,
                      const std::string& root) {
  const std::vector<store::Attachment> files = store.attachments(version.subject, rundir::kModel);
  const bool whole =
      std::any_of(files.begin(), files.end(), [](const store::Attachment& file) { return file.path == kWeightsFile; });
  if (!whole)
    throw Error("MODEL_NOT_USABLE", text_of(version.subject) + " has no " + kWeightsFile + ", so Sinew cannot use it",
                "another client registered it: use the program that made the model");
  const fs::path place = checkouts_of(root) / directory_name(version.subject);
  const std::string model = (place / rundir::kModel).string();
  if (fs::exists(place)) {
    check_lists(files, place);
    return model;
  }
  make_registry_directory(root);
  const fs::path temporary = place.string() + ".tmp-" + std::to_string(::getpid());
  fs::remove_all(temporary);
  system_disk().make_directories((temporary / rundir::kModel).string());
  write_durably(system_disk(), (temporary / kNameFile).string(), text_of(version.subject));
  for (const store::Attachment& file : files) {
    if (!is_inside(file.path)) continue;  // no reader of the model opens a file of this name
    system_disk().make_directories((temporary / file.path).parent_path().string());
    artifacts.copy_to(file.digest, (temporary / file.path).string());
  }
  std::error_code code;
  fs::rename(temporary, place, code);
  const bool another_was_first = code && fs::exists(place);
  if (code) fs::remove_all(temporary);
  if (code && !another_was_first)
    throw Error("MODEL_NOT_USABLE", "cannot write " + place.string() + ": " + code.message(), "check the disk");
  return model;
}

std::optional<store::Subject> version_of_checkout(const std::string& root, const std::string& path) {
  std::error_code code;
  const fs::path below = fs::relative(path, checkouts_of(root), code);
  if (code || below.empty() || *below.begin() == "..") return std::nullopt;
  const std::string file = (checkouts_of(root) / *below.begin() / kNameFile).string();
  if (!system_disk().exists(file)) return std::nullopt;
  const std::string name = read_text(system_disk(), file);
  const size_t slash = name.rfind('/');
  if (slash == std::string::npos) return std::nullopt;
  store::Subject version{Kind::kVersion, name.substr(0, slash), 0};
  std::from_chars(name.data() + slash + 1, name.data() + name.size(), version.number);
  // Whoever edits the file does not change which version the directory belongs to.
  return directory_name(version) == *below.begin() ? std::optional(version) : std::nullopt;
}

void remove_old_checkouts(store::Store& store, const std::string& root) {
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(checkouts_of(root), none)) {
    const auto version = version_of_checkout(root, entry.path().string());
    const auto record = version ? store.find(*version) : std::nullopt;
    if (!record || record->hidden) fs::remove_all(entry.path(), none);
  }
}

std::string path_of_model(const std::string& name, const std::string& root, const std::string& store_place) {
  if (system_disk().exists(name)) return name;
  const std::string place = store_place.empty() ? default_store(root) : store_place;
  if (!names_a_version(name) || !store_exists(place)) {
    try {
      return rundir::find_run(root, name);
    } catch (const Error& error) {
      if (error.code == ErrorCode("RUN_AMBIGUOUS") || name == "last") throw;
      if (!store_exists(place))
        throw Error("MODEL_NOT_FOUND", "there is no file, run or model '" + name + "'",
                    "'sinew runs list' shows the runs under " + root + ", 'sinew models list' the models");
    }
  }
  store::Store store(place);
  Artifacts artifacts(default_artifacts(root));
  return check_out(store, artifacts, find_version(store, name), root);
}

void check_out_init_from(spec::Job& job, std::vector<std::string>& overrides, const std::string& root,
                         const std::string& store_place) {
  std::string& path = job.model.init_from.path;
  if (path.empty() || system_disk().exists(path)) return;
  path = path_of_model(path, root, store_place);
  overrides.push_back("model.init_from.path=" + path);
}

}  // namespace sinew::registry
