// Makes text from files and other machines safe to print: the result sends no control sequences to the terminal.
#pragma once

#include <string>
#include <string_view>

namespace sinew {

// Replaces each control character and each byte that is not valid UTF-8 by '?'. Keeps newlines and tabs if `lines`.
std::string printable(std::string_view text, bool lines = false);
// Returns the beginning of printable(text), at most `most` bytes, for a message. Cuts between characters and appends
// "..." if the text is longer.
std::string printable_start(std::string_view text, size_t most = 40);
// Returns the text as one word of a POSIX shell's command line, in quotes if it needs them.
std::string shell_quoted(std::string_view text);

}  // namespace sinew
