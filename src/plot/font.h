// The font of all pictures, DejaVu Sans, which the build puts into the program. FreeType reads it. Private to plot/.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "plot/plot.h"

namespace sinew::plot {

extern const std::string_view kFontFile;  // CMake makes it from DejaVuSans.ttf (cmake/embed.cmake)

// The width of a text in pixels.
double text_width(std::string_view text, double size, bool bold = false);
// Returns the text if it is at most `most` pixels wide, and otherwise its beginning and its end with "…" between them.
std::string shortened(const std::string& text, double most, double size, bool bold = false);

// Calls `paint` for each pixel that the text covers, with the part of the pixel that it covers, from 1 to 255.
using Paint = std::function<void(int64_t x, int64_t y, uint8_t coverage)>;
void paint_text(const Text& text, const Paint& paint);

}  // namespace sinew::plot
