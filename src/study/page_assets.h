// Declares the files of src/study/page/, which CMake embeds into the program (cmake/embed.cmake).
#pragma once

#include <string_view>

namespace sinew::study {

extern const std::string_view kPageHtml;    // study_page() replaces {{style}}, {{study}} and {{script}}
extern const std::string_view kPageStyle;   // CSS
extern const std::string_view kPageScript;  // reads the study from the element with the id "study"

}  // namespace sinew::study
