// Inside registry/: numbers in JSON as the run directory's files have them: three of them have no word there.
#pragma once

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace sinew::registry {

inline nlohmann::json number_json(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

// Throws nlohmann::json::exception for what is neither a number nor one of the three.
inline double number_of(const nlohmann::json& value) {
  if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (value == "Infinity") return std::numeric_limits<double>::infinity();
  if (value == "-Infinity") return -std::numeric_limits<double>::infinity();
  return value.get<double>();
}

}  // namespace sinew::registry
