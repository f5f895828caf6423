// Inside web/: finds the route of a request. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "web/context.h"

namespace sinew::web {

struct RouteMatch {
  const Route* route = nullptr;             // null if no route matches
  std::map<std::string, std::string> path;  // values of the pattern's parameters
  std::string other_methods;                // the methods of the path; set if it has others, but not this one
};

class Router {
 public:
  explicit Router(const std::vector<Route>& routes);
  // HEAD matches the routes of GET. Paths under /ajax-api/ mean those under /api/.
  RouteMatch find(const std::string& method, std::string_view path) const;

 private:
  struct Pattern {
    std::vector<std::string> segments;
    const Route* route;
  };
  std::unordered_multimap<std::string, const Route*> fixed_;
  std::vector<Pattern> patterns_;
};

}  // namespace sinew::web
