// Inside web/: decides how the API answers an Error of another room (docs/guides/server.md has the same table).
#pragma once

#include "web/context.h"

namespace sinew::web {

// Returns the status and MLflow's code for the error. MLflow's client repeats a request that gets status 503 for
// minutes, so only errors that pass by themselves have this status.
RefusalKind kind_of(const Error& error);

}  // namespace sinew::web
