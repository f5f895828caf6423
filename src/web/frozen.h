// Inside web/: freezes the files of a version that MLflow's client creates from files on this server. The version gets
// its own copy of the files as they are at this moment. Otherwise a caller who may write to the source run could change
// a version after it was evaluated and promoted.
#pragma once

#include <string>
#include <vector>

#include "registry/registry.h"
#include "web/context.h"

namespace sinew::web {

struct FrozenFiles {
  std::vector<store::Attachment> files;  // their paths are relative to the URI
  registry::Artifacts::Pin pin;          // keeps the contents from garbage collection until a record refers to them
};
// Freezes the files at an artifact URI of a run, a logged model or a version
// ("mlflow-artifacts:/0/<run>/artifacts/model"). Returns no files if the URI is not on this server. Files of a run's
// directory that are new in the artifacts count as uploads of the caller (upload.h); the caller of this function stores
// the count.
FrozenFiles freeze_files(Context& context, const std::string& uri);
// Returns whether the URI names files that this server has or may get. This includes the empty URI: an admin can upload
// files to such a version.
bool is_on_this_server(const std::string& uri);
// Options::source_schemes lists the schemes of allowed places outside this server. is_allowed_elsewhere returns whether
// it has the URI's scheme; allowed_elsewhere returns it as text for a message ("abfss://, gs://").
bool is_allowed_elsewhere(const Context& context, const std::string& uri);
std::string allowed_elsewhere(const Context& context);
// Refuses the source of a version (kSourceRefused), unless it is on this server or at an allowed place elsewhere.
void check_source(const Context& context, const std::string& uri);
// A version is pending if it was created before its files existed. It can get no alias, and MLflow's client sees the
// status PENDING_REGISTRATION. It stops being pending when its files are frozen (api_freeze_version) or an admin
// uploads a file.
inline constexpr const char* kPending = "pending";  // a field of the version's body
bool is_pending(const store::Record& version);
// Refuses a pending version (kNoFiles).
void check_has_files(const store::Record& version);

}  // namespace sinew::web
