// Inside web/: parses and checks the parameters of a route, as routes.cpp declares them: "after:integer wait:number
// version:integer!".
#pragma once

#include <string>
#include <vector>

#include "web/context.h"

namespace sinew::web {

struct Field {
  std::string name, type;  // text, integer, number, flag, texts, object, list
  bool required = false;   // declared with '!'
};
std::vector<Field> parse_fields(const char* declaration);

// For Sinew's own API: refuses a request with a parameter that the route does not declare, or without a required one.
// Stores the parsed body in the call.
void check_fields(const Route& route, Call& call);

}  // namespace sinew::web
