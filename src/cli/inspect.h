// Inside cli/: the parts of `sinew inspect`.
#pragma once

#include <cstdint>
#include <string>

namespace sinew::cli {

void line(const char* what, const std::string& name, const std::string& text);  // on standard output
std::string grouped(int64_t number);                                            // "1,234,567"

void show_program(const std::string& path);  // inspect_program.cpp

}  // namespace sinew::cli
