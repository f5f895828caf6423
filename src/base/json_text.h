// Writes numbers and strings as JSON text. Only this file decides how Sinew writes a double in JSON.
//
// JSON has no notation for non-finite numbers. Every file and HTTP response of Sinew writes them as the strings "NaN",
// "Infinity" and "-Infinity". Finite numbers read back to the same bits.
#pragma once

#include <concepts>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace sinew {

nlohmann::ordered_json json_number(double value);
// Returns nullopt if the value is neither a number nor one of the three strings.
std::optional<double> number_in_json(const nlohmann::ordered_json& value);

// the shortest text from which a parser gets the same double
void append_json_number(std::string& out, double value);
void append_json_string(std::string& out, std::string_view text);  // quoted; invalid UTF-8 becomes U+FFFD

// Never throws, whatever bytes the strings hold: invalid UTF-8 becomes U+FFFD. With indent -1, writes one line.
std::string dump_json(const nlohmann::ordered_json& value, int indent = -1);
// Does the same for a JSON object that keeps its names sorted. It is a template so that a call with a braced list
// selects the function above.
template <std::same_as<nlohmann::json> SortedJson>
std::string dump_json(const SortedJson& value, int indent = -1);

}  // namespace sinew
