// Makes text from files and other machines safe to print: the result sends no control sequences to the terminal.
#pragma once

#include <string>
#include <string_view>

namespace sinew {

// Replaces each control character and each byte that is not UTF-8 by '?'. If `lines`, keeps newlines and tabs.
std::string printable(std::string_view text, bool lines = false);
// Returns the first `most` bytes of printable(text), for a message. Cuts between characters and appends "..." if the
// text is longer.
std::string printable_start(std::string_view text, size_t most = 40);

}  // namespace sinew
