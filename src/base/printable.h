// Text out of files and from other machines, before it goes to a terminal: a terminal must not be driven by it.
#pragma once

#include <string>
#include <string_view>

namespace sinew {

// Control characters and broken UTF-8 become '?'; `lines`: newlines stay.
std::string printable(std::string_view text, bool lines = false);

}  // namespace sinew
