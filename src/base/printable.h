// Text out of files and from other machines, before it goes to a terminal: a terminal must not be driven by it.
#pragma once

#include <string>
#include <string_view>

namespace sinew {

// Replaces each control character, and each byte that is not UTF-8, by '?'. If `lines`, keeps newlines and tabs.
std::string printable(std::string_view text, bool lines = false);
// For a message: at most `most` bytes of it, cut between characters; "..." where there are more.
std::string printable_start(std::string_view text, size_t most = 40);

}  // namespace sinew
