// Inside web/: the files of a version that MLflow's client creates from files on this server. The version gets its own
// copy of the files as they are at that moment. Otherwise a caller who may write to the source run could change the
// files of a version after it was evaluated and promoted.
#pragma once

#include <string>
#include <vector>

#include "registry/registry.h"
#include "web/context.h"

namespace sinew::web {

struct FrozenFiles {
  std::vector<store::Attachment> files;  // the files, with paths relative to the location
  registry::Artifacts::Pin pin;          // protects the contents from garbage collection until a record refers to them
};
// Returns the files at an artifact URI of a run, a logged model or a version
// ("mlflow-artifacts:/0/<run>/artifacts/model"). Returns no files for a URI that is not on this server.
FrozenFiles freeze_files(Context& context, const std::string& uri);
// Returns whether the URI names files that this server has or may get. An empty URI does: an admin uploads the files.
bool is_on_this_server(const std::string& uri);
// Refuses a source of a version (kSourceRefused) that is neither on this server nor at a place with one of
// Options::source_schemes.
void check_source(const Context& context, const std::string& uri);
// A version that was created before its files were there is pending: it gets no alias, and MLflow's client sees the
// status PENDING_REGISTRATION. It ends when the files are frozen (api_freeze_version) or an admin uploads some.
inline constexpr const char* kPending = "pending";  // a field of the version's body
bool is_pending(const store::Record& version);
// Refuses a pending version (kNoFiles).
void check_has_files(const store::Record& version);

}  // namespace sinew::web
