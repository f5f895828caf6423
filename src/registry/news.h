// Inside registry/: what a decision was made on, so that it is written only while that is still the newest.
#pragma once

#include "registry/registry.h"

namespace sinew::registry {

// Of the subject's id, whatever number; 0: none. Read it before what is decided on, and give it to Batch::unchanged.
int64_t newest_event(store::Store& store, const store::Subject& subject);

}  // namespace sinew::registry
