// Implements patterns of names ("encoder.*"), and patterns with a factor ("encoder.*=0.1").
#include "base/wildcards.h"
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

bool fits_pattern(std::string_view pattern, std::string_view name) {
  return fits_wildcards(name, pattern, {.any = '*'});
}

}  // namespace sinew::spec
