// JSON as this room writes and reads it: numbers that read back to the same bits; see number_json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "report/report.h"

namespace sinew::report {

using Json = nlohmann::ordered_json;

void append_number(std::string& out, double value);           // shortest form that reads back the same
void append_string(std::string& out, std::string_view text);  // quoted; bytes that are not UTF-8 become U+FFFD
std::string dump(const Json& value, int indent = -1);         // never throws for any bytes in strings

}  // namespace sinew::report
