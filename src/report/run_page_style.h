// Declares the style of a run's page, src/report/page/run.css, which CMake embeds into the program (cmake/embed.cmake).
#pragma once

#include <string_view>

namespace sinew::report {

extern const std::string_view kRunPageStyle;

}  // namespace sinew::report
