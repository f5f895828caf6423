// Where the registry is: --root, --store and --artifacts of every command that speaks of it.
#pragma once

#include <memory>
#include <string>

#include "registry/registry.h"

namespace sinew::cli {

struct RegistryPlace {
  std::string root = "runs", store, artifacts;  // empty: the usual places below the root

  // Takes `word` and its value if it is one of the three.
  bool take(const std::string& word, const std::string& value);
  std::string store_place() const { return store.empty() ? registry::default_store(root) : store; }
  std::string artifacts_place() const { return artifacts.empty() ? registry::default_artifacts(root) : artifacts; }
  std::unique_ptr<store::Store> open_store() const;  // made if it is not there
  void need_store() const;                           // throws Error when it would be
};

inline constexpr const char* kRegistryPlaceHelp =
    "  --root DIR           directory of the runs (default: runs)\n"
    "  --store WHERE        the store: a file, or postgresql://... (default: ROOT/.sinew/store.db)\n"
    "  --artifacts DIR      the files kept for good (default: ROOT/.sinew/artifacts)\n";

// The run meant on the disk (as report::pick_run has it), or by its id in the store, brought into the store first.
// Where another process (a server) does that all the time it is left to it, and waited for; throws Error naming it when
// it does not come to that run.
store::Record run_in_store(store::Store& store, const std::string& root, const std::string& name);

}  // namespace sinew::cli
