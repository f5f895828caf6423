// Private to data/: the encodings of a table's text, and the conversion to UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sinew::data {

enum class Charset : uint8_t { utf8, utf16le, utf16be, latin1, windows1252 };

struct CharsetJudgement {
  Charset charset = Charset::utf8;
  std::string evidence;  // "windows-1252 (byte 0xE9 in line 3 is not UTF-8)"; empty for UTF-8 without a mark
};
// Decides the encoding of a file. `head` has its first bytes, or all of them if `whole`. `wanted` is
// data.table.encoding.
CharsetJudgement judge_charset(std::span<const std::byte> head, bool whole, const std::string& wanted);

// Converts text to UTF-8 and leaves out a byte order mark. `name` is for messages. Throws Error if a character is not
// valid; it names the line and the column of the first one. Text that is UTF-8 already is only checked.
std::vector<std::byte> to_utf8(std::vector<std::byte> bytes, Charset charset, const std::string& name);

// "LINE:COLUMN" of a byte of a UTF-8 text; both count from 1, and columns count characters.
std::string line_and_column(std::string_view text, size_t at);

}  // namespace sinew::data
