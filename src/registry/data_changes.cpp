// Compares two data manifests. Pure functions.
#include <set>

#include "registry/registry.h"

namespace sinew::registry {
namespace {

using What = DataChange::What;

const DataPart& part_of(const DataManifest& manifest, const std::string& name) {
  static const DataPart none;
  const auto it = manifest.parts.find(name);
  return it == manifest.parts.end() ? none : it->second;
}

std::string in_words(const DataPart& part) {
  return part.view.empty() ? "it is" : part.view;
}

bool is_listed(const DataPart& part) {
  return static_cast<int64_t>(part.files.size()) == part.count;
}

// Compares files by name. A removed file and an added file with the same bytes count as one renamed file.
std::vector<DataChange> compare_files(const std::string& part, const DataPart& before, const DataPart& after) {
  std::map<std::string, std::string> was, is;
  for (const DataFile& file : before.files) was[file.name] = file.digest;
  for (const DataFile& file : after.files) is[file.name] = file.digest;
  std::multimap<std::string, std::string> gone;  // digest -> name
  std::vector<DataChange> changes;
  for (const auto& [name, digest] : was) {
    if (!is.contains(name)) gone.emplace(digest, name);
  }
  for (const auto& [name, digest] : is) {
    const auto old = was.find(name);
    if (old != was.end()) {
      if (old->second != digest) changes.push_back({What::changed, part, name, ""});
    } else if (const auto from = gone.find(digest); from != gone.end()) {
      changes.push_back({What::renamed, part, name, from->second});
      gone.erase(from);
    } else {
      changes.push_back({What::added, part, name, ""});
    }
  }
  std::set<std::string> removed;
  for (const auto& [digest, name] : gone) removed.insert(name);
  for (const std::string& name : removed) changes.push_back({What::removed, part, name, ""});
  return changes;
}

}  // namespace

std::vector<DataChange> compare(const DataManifest& before, const DataManifest& after) {
  std::set<std::string> names;
  for (const auto& [name, part] : before.parts) names.insert(name);
  for (const auto& [name, part] : after.parts) names.insert(name);
  std::vector<DataChange> changes;
  for (const std::string& name : names) {
    const DataPart &was = part_of(before, name), &is = part_of(after, name);
    if (was.digest == is.digest) continue;
    // A split that is taken from train in the same way changed only because train did, which is reported there.
    const bool follows = !was.cut.empty() && was.cut == is.cut;
    if (follows && part_of(before, "train").digest != part_of(after, "train").digest) continue;
    std::vector<DataChange> files;
    if (was.cut.empty() && is.cut.empty() && is_listed(was) && is_listed(is)) files = compare_files(name, was, is);
    const bool viewed = !was.digest.empty() && !is.digest.empty() && was.view != is.view;
    if (viewed)
      changes.push_back({What::changed, name, "", "read as " + in_words(is) + ", before as " + in_words(was)});
    // The split is taken from train in another way, or it has too many files to list.
    if (files.empty() && !viewed) files.push_back({What::changed, name, "", ""});
    changes.insert(changes.end(), files.begin(), files.end());
  }
  return changes;
}

std::string to_string(const DataChange& change) {
  if (change.name.empty()) return change.part + ": " + (change.from.empty() ? "changed" : change.from);
  switch (change.what) {
    case What::added: return change.part + ": added " + change.name;
    case What::removed: return change.part + ": removed " + change.name;
    case What::changed: return change.part + ": changed " + change.name;
    case What::renamed: return change.part + ": renamed " + change.from + " to " + change.name;
  }
  return "";
}

}  // namespace sinew::registry
