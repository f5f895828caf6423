// JSON as this room writes and reads it: numbers that read back to the same bits, and strings for the three numbers
// JSON has no word for ("NaN", "Infinity", "-Infinity").
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace sinew::report {

using Json = nlohmann::ordered_json;

void append_number(std::string& out, double value);           // shortest form that reads back the same
void append_string(std::string& out, std::string_view text);  // quoted; bytes that are not UTF-8 become U+FFFD
Json number_json(double value);
std::optional<double> number_of(const Json& value);    // nullopt: neither a number nor one of the three strings
std::string dump(const Json& value, int indent = -1);  // never throws for any bytes in strings

}  // namespace sinew::report
