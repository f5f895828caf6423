#include "cli/registry_place.h"

#include <cstdio>
#include <filesystem>

#include "base/printable.h"
#include "base/process.h"
#include "rundir/rundir.h"
#include "web/web.h"

namespace sinew::cli {

void RegistryPlace::add_to(Options& options) {
  options.text("--root", "DIR", root, "directory of the runs")
      .text("--store", "WHERE", store,
            "the store: a file, or postgresql://...; by default SINEW_STORE, else ROOT/.sinew/store.db")
      .text("--artifacts", "DIR", artifacts, "the files kept for good; by default ROOT/.sinew/artifacts");
}

std::string RegistryPlace::store_place() const {
  if (store::has_password(store))
    throw UsageError(
        "STORE_PASSWORD_VISIBLE", "--store has a password, and every user of this machine can read it there",
        "leave it out: libpq takes it from PGPASSWORD or ~/.pgpass; or put the whole URL into SINEW_STORE");
  const std::string place = store.empty() ? own_variable("SINEW_STORE") : store;
  return place.empty() ? registry::default_store(root) : place;
}

std::unique_ptr<store::Store> RegistryPlace::open_store() const {
  if (!std::filesystem::is_directory(root))
    throw Error("RUN_NOT_FOUND", "no directory " + root,
                "say where the runs are with --root, or start one with 'sinew train'");
  if (store.empty()) registry::make_registry_directory(root);
  return std::make_unique<store::Store>(store_place());
}

void RegistryPlace::need_store() const {
  const std::string place = store_place();
  if (place.find("://") != std::string::npos || std::filesystem::exists(place)) return;
  throw Error("STORE_NOT_FOUND", "there is no store " + place, "say where it is with --store");
}

namespace {

// Indexes the runs. Returns "" when all are indexed. If another process holds the lease for indexing, returns that
// process's name.
std::string index_runs(store::Store& store, const std::string& root) {
  const auto is_admin = [tokens = web::default_tokens(root)](const std::string& owner) {
    return web::is_admin(tokens, owner);
  };
  registry::Index index(store, {.root = root, .is_admin = is_admin});
  while (true) {
    const registry::PassReport report = index.pass();
    for (const std::string& problem : report.problems) std::fprintf(stderr, "(!) %s\n", printable(problem).c_str());
    if (!report.held_by.empty() || !report.unfinished) return report.held_by;
  }
}

}  // namespace

store::Record run_in_store(store::Store& store, const std::string& root, const std::string& name) {
  constexpr int kTries = 15;
  constexpr double kBetweenTries = 0.2;
  if (auto known = store.find({store::Kind::kRun, name})) return std::move(*known);
  const std::string directory = rundir::find_run(root, name);
  for (int left = kTries;; --left) {
    const std::string holder = index_runs(store, root);
    try {
      return registry::find_run(store, directory, root);
    } catch (const Error&) {
      if (holder.empty()) throw;
      if (left == 0)
        throw Error("RUN_NOT_INDEXED", directory + " is not in the store yet: " + holder + " indexes it",
                    "try again when it has come so far, or end that process");
    }
    system_clock().sleep_seconds(kBetweenTries);
  }
}

}  // namespace sinew::cli
