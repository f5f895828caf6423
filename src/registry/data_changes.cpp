// Compares two data manifests. Pure.
#include <set>

#include "registry/registry.h"

namespace sinew::registry {
namespace {

using What = DataChange::What;

const DataSplit& split_of(const DataManifest& manifest, const std::string& name) {
  static const DataSplit none;
  const auto it = manifest.splits.find(name);
  return it == manifest.splits.end() ? none : it->second;
}

std::string view_text(const DataSplit& split) {
  return split.view.empty() ? "it is" : split.view;
}

bool is_listed(const DataSplit& split) {
  return static_cast<int64_t>(split.files.size()) == split.count;
}

// Compares files by name. If a removed and an added file have the same bytes, they count as one renamed file.
std::vector<DataChange> compare_files(const std::string& split, const DataSplit& before, const DataSplit& after) {
  std::map<std::string, std::string> was, is, path;
  for (const DataFile& file : before.files) was[file.name] = file.digest;
  for (const DataFile& file : after.files) {
    is[file.name] = file.digest;
    path[file.name] = file.path;
  }
  std::multimap<std::string, std::string> gone;  // digest -> name
  std::vector<DataChange> changes;
  for (const auto& [name, digest] : was) {
    if (!is.contains(name)) gone.emplace(digest, name);
  }
  for (const auto& [name, digest] : is) {
    const auto old = was.find(name);
    if (old != was.end()) {
      const bool option = name.find('/') == name.npos;  // the option names the file; the name does not say which
      if (old->second != digest)
        changes.push_back({What::changed, split, option ? name + " (" + path[name] + ")" : name, ""});
    } else if (const auto from = gone.find(digest); from != gone.end()) {
      changes.push_back({What::renamed, split, name, from->second});
      gone.erase(from);
    } else {
      changes.push_back({What::added, split, name, ""});
    }
  }
  std::set<std::string> removed;
  for (const auto& [digest, name] : gone) removed.insert(name);
  for (const std::string& name : removed) changes.push_back({What::removed, split, name, ""});
  return changes;
}

}  // namespace

std::vector<DataChange> compare(const DataManifest& before, const DataManifest& after) {
  std::set<std::string> names;
  for (const auto& [name, split] : before.splits) names.insert(name);
  for (const auto& [name, split] : after.splits) names.insert(name);
  std::vector<DataChange> changes;
  for (const std::string& name : names) {
    const DataSplit &was = split_of(before, name), &is = split_of(after, name);
    if (was.digest == is.digest) continue;
    // If a split is taken from train in the same way as before, it has changed only because train has. Then only the
    // change of train is reported.
    const bool follows = !was.from_train.empty() && was.from_train == is.from_train;
    if (follows && split_of(before, "train").digest != split_of(after, "train").digest) continue;
    std::vector<DataChange> files;
    if (was.from_train.empty() && is.from_train.empty() && is_listed(was) && is_listed(is))
      files = compare_files(name, was, is);
    const bool viewed = !was.digest.empty() && !is.digest.empty() && was.view != is.view;
    if (viewed)
      changes.push_back({What::changed, name, "", "read as " + view_text(is) + ", before as " + view_text(was)});
    // Either the split is taken from train in another way, or it has too many files to list them.
    if (files.empty() && !viewed) files.push_back({What::changed, name, "", ""});
    changes.insert(changes.end(), files.begin(), files.end());
  }
  return changes;
}

std::string to_string(const DataChange& change) {
  if (change.name.empty()) return change.split + ": " + (change.from.empty() ? "changed" : change.from);
  switch (change.what) {
    case What::added: return change.split + ": added " + change.name;
    case What::removed: return change.split + ": removed " + change.name;
    case What::changed: return change.split + ": changed " + change.name;
    case What::renamed: return change.split + ": renamed " + change.from + " to " + change.name;
  }
  return "";
}

}  // namespace sinew::registry
