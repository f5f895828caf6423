// Declares what the files of `sinew inspect` share. Private to cli/.
#pragma once

#include <cstdint>
#include <string>

namespace sinew::cli {

// Prints a line to standard output. Replaces control characters, because names and texts come from files of any origin.
void line(const char* what, const std::string& name, const std::string& text);
std::string grouped(int64_t number);  // "1,234,567"

void show_program(const std::string& path);  // inspect_program.cpp

}  // namespace sinew::cli
