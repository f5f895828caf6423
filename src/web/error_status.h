// Inside web/: decides how the API answers an Error that other code throws (docs/guides/server.md has the same table).
#pragma once

#include "web/context.h"

namespace sinew::web {

// Returns the status and MLflow's code for the error. MLflow's client repeats a request for minutes if it gets status
// 503. So only errors that pass by themselves have this status.
RefusalKind kind_of(const Error& error);

}  // namespace sinew::web
