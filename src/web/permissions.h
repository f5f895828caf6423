// Inside web/: decides which records a caller may change. A record belongs to the token that created it; only this
// token and admins may change it. A token of any role may also have a scope: patterns of the experiments and models
// that it may change. One table says which record each route changes, so that no handler can forget the check.
#pragma once

#include "web/context.h"

namespace sinew::web {

// Throws Refused (kNotOwner) unless the caller is an admin or owns the record. A record without an owner, such as a run
// that the index found in a directory, belongs to the server, so only an admin may change it.
void check_owner(const Caller& caller, const store::Record& record);

// Throws Refused unless the record is in the scope of the caller's token and check_owner() allows the change. For a
// record that a request changes beside the one in its path.
void check_change(Context& context, const store::Record& record);

// Throws Refused (kOutOfScope) if the caller's token must not make an experiment of this name.
void check_experiment_scope(const Caller& caller, const std::string& name);

// Throws Refused if the caller must not change the record that the request names. Does nothing if the record does not
// exist; then the handler refuses the request.
void check_permission(Context& context, const Route& route, Call& call);

// Returns whether the table has a rule for the route. A test checks that it has one for every route that needs more
// than kRead.
bool has_permission_rule(const Route& route);

}  // namespace sinew::web
