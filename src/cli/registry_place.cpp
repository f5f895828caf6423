#include "cli/registry_place.h"

#include <cstdio>
#include <filesystem>
#include <iterator>

namespace sinew::cli {

bool RegistryPlace::take(const std::string& word, const std::string& value) {
  if (word == "--root") root = value;
  if (word == "--store") store = value;
  if (word == "--artifacts") artifacts = value;
  return word == "--root" || word == "--store" || word == "--artifacts";
}

std::unique_ptr<store::Store> RegistryPlace::open_store() const {
  if (!std::filesystem::is_directory(root))
    throw Error("no directory " + root, "say where the runs are with --root, or start one with 'sinew train'");
  if (store.empty()) registry::make_place(root);
  return std::make_unique<store::Store>(store_place());
}

void RegistryPlace::need_store() const {
  const std::string place = store_place();
  if (place.find("://") != std::string::npos || std::filesystem::exists(place)) return;
  throw Error("there is no store " + place, "say where it is with --store");
}

void index_runs(store::Store& store, const std::string& root) {
  registry::Index index(store, {.root = root});
  while (true) {
    const registry::PassReport report = index.pass();
    for (const std::string& problem : report.problems) std::fprintf(stderr, "(!) %s\n", problem.c_str());
    if (!report.held_by.empty() || !report.unfinished) return;
  }
}

}  // namespace sinew::cli
