// Inside web/: the fields that MLflow's routes take and that answers have, for the description of the API. routes.cpp
// declares the fields of Sinew's own routes, which refuse unknown fields. MLflow's clients may send more fields than
// this file lists.
#pragma once

#include "web/context.h"

namespace sinew::web {

struct RouteFields {
  const char* takes = "";       // declared like Route::query; in the query of a GET request, otherwise in the body
  const char* gives = "";       // the fields of the answer; '!' means that every answer has the field
  const char* holds = nullptr;  // the content type of an answer that is not a JSON object
};
const RouteFields& fields_of(const Route& route);
// These two return the declaration of the fields in the query, and in the body, of a route of either API.
const char* query_fields_of(const Route& route);
const char* body_fields_of(const Route& route);

}  // namespace sinew::web
