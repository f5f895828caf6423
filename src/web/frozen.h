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
  std::vector<store::Attachment> files;  // with paths relative to the location
  registry::Artifacts::Pin pin;          // protects the contents from garbage collection until a record refers to them
};
// Returns the files at an artifact URI of a run, a logged model or a version
// ("mlflow-artifacts:/0/<run>/artifacts/model"). Returns no files for a URI that is not on this server.
FrozenFiles freeze_files(Context& context, const std::string& uri);

}  // namespace sinew::web
