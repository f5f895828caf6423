// Inside registry/: the state that Artifacts, its pins and its streams share.
#pragma once

#include "registry/blob_store.h"
#include "registry/recent_checks.h"

namespace sinew::registry {

struct Artifacts::State {
  State(std::string directory, Disk& disk, Clock& clock) : blobs(std::move(directory), disk, clock), checks(clock) {}
  BlobStore blobs;
  RecentChecks checks;  // by digest
};

}  // namespace sinew::registry
