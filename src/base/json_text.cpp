#include "base/json_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace sinew {
namespace {

using Json = nlohmann::ordered_json;

const char* word_for(double value) {
  if (std::isnan(value)) return "NaN";
  return value > 0 ? "Infinity" : "-Infinity";
}

}  // namespace

void append_json_number(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out.append("\"").append(word_for(value)).append("\"");
    return;
  }
  if (value == 0 && std::signbit(value)) {  // many parsers read "-0" as an integer, which has no negative zero
    out.append("-0.0");
    return;
  }
  char digits[32];
  const auto [end, code] = std::to_chars(digits, digits + sizeof digits, value);
  out.append(digits, end);
}

void append_json_string(std::string& out, std::string_view text) {
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 0x7F && c != '"' && c != '\\'; });
  if (plain) {
    out.append("\"").append(text).append("\"");
  } else {
    out.append(dump_json(Json(std::string(text))));
  }
}

Json json_number(double value) {
  return std::isfinite(value) ? Json(value) : Json(word_for(value));
}

std::optional<double> number_in_json(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const auto& word = value.get_ref<const std::string&>();
  if (word == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (word == "Infinity") return std::numeric_limits<double>::infinity();
  if (word == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

std::string dump_json(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

template <std::same_as<nlohmann::json> SortedJson>
std::string dump_json(const SortedJson& value, int indent) {
  return value.dump(indent, ' ', false, SortedJson::error_handler_t::replace);
}
template std::string dump_json(const nlohmann::json& value, int indent);

}  // namespace sinew
