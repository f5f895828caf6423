// Finds the store and the artifacts of the registry from the options --root, --store and --artifacts. Every command
// that uses the registry has these options.
#pragma once

#include <memory>
#include <string>

#include "cli/options.h"
#include "registry/registry.h"

namespace sinew::cli {

struct RegistryPlace {
  std::string root = "runs", store, artifacts;  // if store or artifacts is empty: below the root

  void add_to(Options& options);  // --root, --store, --artifacts
  // Returns --store, or else the variable SINEW_STORE, or else the place below the root. Refuses a password in --store.
  std::string store_place() const;
  std::string artifacts_place() const { return artifacts.empty() ? registry::default_artifacts(root) : artifacts; }
  std::unique_ptr<store::Store> open_store() const;  // creates the store if it does not exist
  void need_store() const;                           // throws Error if it does not exist
};

// Finds a run by its id in the store. If it is not there, finds it on disk as rundir::find_run does, and indexes it. If
// another process, such as a server, does the indexing, waits for that process. Throws Error, which names the process,
// if it does not index the run in time.
store::Record run_in_store(store::Store& store, const std::string& root, const std::string& name);

}  // namespace sinew::cli
