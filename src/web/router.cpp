#include "web/router.h"

#include <optional>

namespace sinew::web {
namespace {

std::vector<std::string> segments_of(std::string_view path) {
  std::vector<std::string> segments;
  path.remove_prefix(path.starts_with('/') ? 1 : 0);
  while (true) {
    const size_t slash = path.find('/');
    segments.emplace_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return segments;
    path.remove_prefix(slash + 1);
  }
}

// Returns the values of the pattern's parameters if the path matches. "{name}" matches one segment that is not empty;
// "{name*}" matches the rest of the path.
std::optional<std::map<std::string, std::string>> match(const std::vector<std::string>& pattern,
                                                        const std::vector<std::string>& path) {
  std::map<std::string, std::string> values;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (i >= path.size()) return std::nullopt;
    const std::string& part = pattern[i];
    if (!part.starts_with('{')) {
      if (part != path[i]) return std::nullopt;
    } else if (part.ends_with("*}")) {
      std::string rest = path[i];
      for (size_t k = i + 1; k < path.size(); ++k) rest += "/" + path[k];
      if (rest.empty()) return std::nullopt;
      values[part.substr(1, part.size() - 3)] = rest;
      return values;
    } else {
      if (path[i].empty()) return std::nullopt;
      values[part.substr(1, part.size() - 2)] = path[i];
    }
  }
  return pattern.size() == path.size() ? std::optional(values) : std::nullopt;
}

}  // namespace

Router::Router(const std::vector<Route>& routes) {
  for (const Route& route : routes) {
    const std::string path = route.path;
    if (path.find('{') == std::string::npos) {
      fixed_.emplace(path, &route);
    } else {
      patterns_.push_back({segments_of(path), &route});
    }
  }
}

RouteMatch Router::find(const std::string& method_given, std::string_view path_given) const {
  const std::string method = method_given == "HEAD" ? "GET" : method_given;
  constexpr std::string_view kOtherPrefix = "/ajax-api/";
  const bool other = path_given.starts_with(kOtherPrefix);
  const std::string path =
      other ? "/api/" + std::string(path_given.substr(kOtherPrefix.size())) : std::string(path_given);

  RouteMatch found;
  const auto consider = [&](const Route& route, std::map<std::string, std::string> values) {
    if (route.method == method) {
      found.route = &route;
      found.path = std::move(values);
      return true;
    }
    found.other_methods += (found.other_methods.empty() ? "" : ", ") + std::string(route.method);
    return false;
  };
  const auto [first, last] = fixed_.equal_range(path);
  for (auto at = first; at != last; ++at) {
    if (consider(*at->second, {})) return found;
  }
  const std::vector<std::string> segments = segments_of(path);
  for (const Pattern& pattern : patterns_) {
    auto values = match(pattern.segments, segments);
    if (values && consider(*pattern.route, std::move(*values))) return found;
  }
  return found;
}

}  // namespace sinew::web
