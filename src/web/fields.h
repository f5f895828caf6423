// Inside web/: parses the declaration of a route's parameters in routes.cpp ("after:integer wait:number
// version:integer!"), and checks the parameters of a request against it.
#pragma once

#include <string>
#include <vector>

#include "web/context.h"

namespace sinew::web {

struct Field {
  std::string name, type;  // type: text, integer, number, flag, texts, object or list
  bool required = false;   // declared with '!'
};
std::vector<Field> parse_fields(const char* declaration);

// For a route of Sinew's own API: refuses a request with an undeclared parameter, or without a required one. Stores the
// parsed body in the call.
void check_fields(const Route& route, Call& call);

}  // namespace sinew::web
