// Inside registry/: numbers in JSON as the run directory's files have them: three of them have no word there.
#pragma once

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

namespace sinew::registry {

inline nlohmann::json number_json(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

// Throws nlohmann::json::exception for what is neither a number nor a text.
inline double number_of(const nlohmann::json& value) {
  return value.is_number() ? value.get<double>() : std::strtod(value.get<std::string>().c_str(), nullptr);
}

}  // namespace sinew::registry
