// Inside registry/: the state that Artifacts, its pins and its streams share.
#pragma once

#include "registry/contents.h"

namespace sinew::registry {

struct Artifacts::State {
  State(std::string directory, Disk& disk, Clock& clock) : contents(std::move(directory), disk, clock) {}
  Contents contents;
};

}  // namespace sinew::registry
