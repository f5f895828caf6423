// Knows the default places of the store and the artifacts, and finds a run by its name.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/trusted_file.h"
#include "registry/registry.h"

namespace sinew::registry {
namespace {

namespace fs = std::filesystem;
using store::Kind;

std::string tag(const store::Record& run, const char* name) {
  const auto it = run.tags.find(name);
  return it == run.tags.end() ? "" : it->second;
}

[[noreturn]] void fail_ambiguous(const std::string& name, const std::vector<store::Record>& meant) {
  std::string all;
  for (size_t i = 0; i < std::min<size_t>(meant.size(), 5); ++i) {
    const std::string directory = tag(meant[i], kTagDirectory);
    all += (i == 0 ? "" : ", ") + (directory.empty() ? meant[i].subject.id : directory);
  }
  throw Error("RUN_AMBIGUOUS", std::to_string(meant.size()) + " runs match '" + name + "'", "name one of them: " + all);
}

// Returns the path relative to the root, in the form in which the store has it.
std::string below(const std::string& root, const std::string& path) {
  std::error_code code;
  const fs::path relative = fs::relative(path, root, code);
  return code ? "" : relative.lexically_normal().string();
}

}  // namespace

std::string default_store(const std::string& root) {
  return root + "/.sinew/store.db";
}

std::string default_artifacts(const std::string& root) {
  return root + "/.sinew/artifacts";
}

void make_registry_directory(const std::string& root) {
  const std::string path = root + "/.sinew";
  system_disk().make_directories(root);
  if (::mkdir(path.c_str(), 0700) == 0) return;
  if (errno != EEXIST) system_disk().make_directories(path);  // throws the error
  struct stat facts {};
  const bool open_to_others = ::stat(path.c_str(), &facts) == 0 && (facts.st_mode & 077) != 0;
  if (open_to_others && facts.st_uid == ::geteuid() && (facts.st_mode & S_ISGID) == 0) ::chmod(path.c_str(), 0700);
  check_trusted(path);
}

store::Record find_run(store::Store& store, const std::string& name, const std::string& root) {
  if (auto run = store.find({Kind::kRun, name})) return std::move(*run);
  const std::string directory = root.empty() || !fs::is_directory(name) ? "" : below(root, name);
  std::vector<store::Record> meant;
  store.each({.kind = Kind::kRun, .metrics = false}, [&](store::Record run) {
    const std::string its = tag(run, kTagDirectory);
    const bool is_meant = name == "last" ? meant.empty() || run.begun_ms > meant[0].begun_ms
                                         : its == name || (!directory.empty() && its == directory) ||
                                               (!name.empty() && run.name.ends_with(name));
    if (!is_meant) return;
    if (name == "last") meant.clear();
    meant.push_back(std::move(run));
  });
  if (meant.empty())
    throw Error("RUN_NOT_FOUND", "the store has no run '" + name + "'", "'sinew runs list' lists the runs");
  if (meant.size() > 1) fail_ambiguous(name, meant);
  return *store.find(meant[0].subject);
}

std::string directory_of(const store::Record& run, const std::string& root) {
  const std::string below_root = tag(run, kTagDirectory);
  return below_root.empty() ? "" : root + "/" + below_root;
}

}  // namespace sinew::registry
