// Reads fields of JSON objects from files and other processes, without trusting them. A reader returns nullopt if
// `object` is not an object, or if the field is absent, null, of another type, or out of range. No content of the JSON
// makes a function throw. Json is nlohmann::json or nlohmann::ordered_json.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace sinew {

// The largest whole number that every JSON reader represents exactly.
inline constexpr int64_t kMostWhole = int64_t{1} << 53;

template <typename Json>
const Json* member_of(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

template <typename Json>
std::optional<int64_t> whole_of(const Json& object, const char* key, int64_t least = 0, int64_t most = kMostWhole) {
  const Json* value = member_of(object, key);
  if (value == nullptr || !value->is_number_integer()) return std::nullopt;
  if (value->is_number_unsigned() && value->template get<uint64_t>() > static_cast<uint64_t>(kMostWhole))
    return std::nullopt;
  const auto number = value->template get<int64_t>();
  if (number < least || number > most) return std::nullopt;
  return number;
}

template <typename Json>
std::optional<double> number_of(const Json& object, const char* key,
                                double least = std::numeric_limits<double>::lowest(),
                                double most = std::numeric_limits<double>::max()) {
  const Json* value = member_of(object, key);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  const auto number = value->template get<double>();
  if (!(number >= least && number <= most)) return std::nullopt;  // excludes infinity; JSON has no NaN
  return number;
}

template <typename Json>
std::optional<bool> truth_of(const Json& object, const char* key) {
  const Json* value = member_of(object, key);
  if (value == nullptr || !value->is_boolean()) return std::nullopt;
  return value->template get<bool>();
}

template <typename Json>
std::optional<std::string> text_of(const Json& object, const char* key, size_t most_bytes = SIZE_MAX) {
  const Json* value = member_of(object, key);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  const auto& text = value->template get_ref<const std::string&>();
  if (text.size() > most_bytes) return std::nullopt;
  return text;
}

template <typename Json>
std::string text_or_empty(const Json& object, const char* key) {
  return text_of(object, key).value_or("");
}

}  // namespace sinew
