// Which route a request is for. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "web/context.h"

namespace sinew::web {

struct Place {
  const Route* route = nullptr;             // null: there is none
  std::map<std::string, std::string> path;  // what stood in the pattern's places
  std::string other_methods;                // when the path is known and the method is not: those it has
};

class Router {
 public:
  explicit Router(const std::vector<Route>& routes);
  // HEAD is as GET. What begins with /ajax-api is as /api.
  Place find(const std::string& method, std::string_view path) const;

 private:
  struct Pattern {
    std::vector<std::string> segments;
    const Route* route;
  };
  std::unordered_multimap<std::string, const Route*> fixed_;
  std::vector<Pattern> patterns_;
};

}  // namespace sinew::web
