// Inside web/: the fields that MLflow's routes take, and that answers have, for the description of the API. Sinew's own
// routes declare what they take in routes.cpp, where unknown fields are refused; MLflow's clients may send more.
#pragma once

#include "web/context.h"

namespace sinew::web {

struct RouteFields {
  const char* takes = "";       // as Route::query: in the query of a GET, otherwise in the body
  const char* gives = "";       // the same for the answer; '!' means that every answer has the field
  const char* holds = nullptr;  // the content type of an answer that is no JSON object
};
const RouteFields& fields_of(const Route& route);

}  // namespace sinew::web
