// Patterns of names, and patterns with a factor.
#include "spec/amounts.h"
#include "spec/spec.h"

namespace sinew::spec {

std::optional<Scale> parse_scale(std::string_view text) {
  const size_t at = text.rfind('=');
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  const std::optional<double> factor = parse_number(text.substr(at + 1));
  if (!factor || *factor < 0 || *factor > 1e6) return std::nullopt;
  return Scale{std::string(text.substr(0, at)), *factor};
}

// Matches greedily and backtracks to the last star only, so the time is at most quadratic.
bool fits_pattern(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = std::string_view::npos, from = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace sinew::spec
