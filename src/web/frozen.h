// The files of a version that is made of what lies elsewhere on this server: they become the version's own, as they are
// at that moment, so that who may write to the run they came from can not change what was judged and promoted.
#pragma once

#include <string>
#include <vector>

#include "registry/registry.h"
#include "web/context.h"

namespace sinew::web {

struct Frozen {
  std::vector<store::Attachment> files;  // by their paths below the place
  registry::Artifacts::Pin pin;          // pins their blobs until something refers to them
};
// What lies below a place of a run, a logged model or a version ("mlflow-artifacts:/0/<run>/artifacts/model"). None of
// a place elsewhere.
Frozen freeze(Context& context, const std::string& place);

}  // namespace sinew::web
