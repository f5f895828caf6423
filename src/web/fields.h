// What a route takes, as its entry in routes.cpp says it: "after:integer wait:number version:integer!".
#pragma once

#include <string>
#include <vector>

#include "web/context.h"

namespace sinew::web {

struct Field {
  std::string name, type;  // text, integer, number, flag, texts, object, list
  bool required = false;
};
std::vector<Field> fields_of(const char* words);

// Of the own API: a name the route does not take is refused, and so is a required one that is not there. The body that
// is parsed for it stays in the call.
void judge_fields(const Route& route, Call& call);

}  // namespace sinew::web
