// Inside cli/: the parts of `sinew inspect`.
#pragma once

#include <cstdint>
#include <string>

namespace sinew::cli {

// On standard output; names and texts come out of files of anybody's.
void line(const char* what, const std::string& name, const std::string& text);
std::string grouped(int64_t number);  // "1,234,567"

void show_program(const std::string& path);  // inspect_program.cpp

}  // namespace sinew::cli
