#include "data/charset.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/error.h"
#include "base/utf8.h"
#include "data/files.h"

namespace sinew::data {
namespace {

// The characters of the bytes 0x80 to 0x9F in Windows-1252; 0 if the byte has none.
constexpr std::array<uint16_t, 32> kWindows = {0x20AC, 0,      0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
                                               0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0,      0x017D, 0,
                                               0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
                                               0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,      0x017E, 0x0178};

// Returns whether all zero bytes are at odd (or even) places, and are at least four of ten bytes.
bool zeros_at(std::span<const std::byte> head, size_t parity) {
  size_t zeros = 0;
  for (size_t i = 0; i < head.size(); ++i) {
    if (head[i] != std::byte{0}) continue;
    if (i % 2 != parity) return false;
    ++zeros;
  }
  return head.size() >= 4 && zeros * 10 >= head.size() * 4;
}

std::string hex_byte(char byte) {
  char text[8];
  std::snprintf(text, sizeof text, "0x%02X", static_cast<unsigned>(static_cast<unsigned char>(byte)));
  return text;
}

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

std::string from_utf16(std::span<const std::byte> bytes, bool little, const std::string& name) {
  std::string text;
  text.reserve(bytes.size());
  const auto unit = [&](size_t i) {
    const auto first = static_cast<uint32_t>(bytes[i]), second = static_cast<uint32_t>(bytes[i + 1]);
    return little ? first | (second << 8) : (first << 8) | second;
  };
  const auto refuse = [&](const std::string& what) {
    throw Error("DATA_NOT_UTF8", name + ':' + line_and_column(text, text.size()) + ": is not valid UTF-16: " + what,
                "save the file again as UTF-8, or set data.table.encoding in the job file");
  };
  size_t i = bytes.size() >= 2 && unit(0) == 0xFEFF ? 2 : 0;
  for (; i + 1 < bytes.size(); i += 2) {
    uint32_t point = unit(i);
    if (point >= 0xD800 && point < 0xE000) {
      const bool pair = point < 0xDC00 && i + 3 < bytes.size() && unit(i + 2) >= 0xDC00 && unit(i + 2) < 0xE000;
      if (!pair) refuse("half of a surrogate pair");
      point = 0x10000 + ((point - 0xD800) << 10) + (unit(i + 2) - 0xDC00);
      i += 2;
    }
    append_utf8(point, text);
  }
  if (i < bytes.size()) refuse("the last character has only one byte");
  return text;
}

std::string from_one_byte(std::span<const std::byte> bytes, bool windows) {
  std::string text;
  text.reserve(bytes.size() + bytes.size() / 8);
  for (const std::byte byte : bytes) {
    const auto value = static_cast<uint32_t>(byte);
    const uint32_t special = windows && value >= 0x80 && value < 0xA0 ? kWindows[value - 0x80] : 0;
    append_utf8(special != 0 ? special : value, text);
  }
  return text;
}

}  // namespace

std::string line_and_column(std::string_view text, size_t at) {
  int64_t line = 1, column = 1;
  for (size_t i = 0; i < at && i < text.size(); ++i) {
    const bool ends = text[i] == '\n' || (text[i] == '\r' && (i + 1 == text.size() || text[i + 1] != '\n'));
    if (ends) {
      ++line;
      column = 1;
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) {
      ++column;
    }
  }
  return std::to_string(line) + ':' + std::to_string(column);
}

CharsetJudgement judge_charset(std::span<const std::byte> head, bool whole, const std::string& wanted) {
  constexpr std::array<std::string_view, 5> kNames = {"utf-8", "utf-16le", "utf-16be", "latin-1", "windows-1252"};
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (wanted == kNames[i]) return {static_cast<Charset>(i), wanted + " (data.table.encoding)"};
  }
  const std::string_view text = text_of(head);
  if (text.starts_with("\xEF\xBB\xBF")) return {Charset::utf8, "UTF-8 with a byte order mark"};
  if (text.starts_with("\xFF\xFE")) return {Charset::utf16le, "UTF-16LE (its byte order mark)"};
  if (text.starts_with("\xFE\xFF")) return {Charset::utf16be, "UTF-16BE (its byte order mark)"};
  if (zeros_at(head, 1)) return {Charset::utf16le, "UTF-16LE (every second byte is 0)"};
  if (zeros_at(head, 0)) return {Charset::utf16be, "UTF-16BE (every second byte is 0)"};
  const size_t bad = first_invalid_utf8(text);
  const bool cut_character = !whole && bad != std::string_view::npos && text.size() - bad < 4;
  if (bad == std::string_view::npos || cut_character) return {Charset::utf8, ""};
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(bad), '\n');
  return {Charset::windows1252,
          "windows-1252 (byte " + hex_byte(text[bad]) + " in line " + std::to_string(line) + " is not UTF-8)"};
}

std::vector<std::byte> to_utf8(std::vector<std::byte> bytes, Charset charset, const std::string& name) {
  switch (charset) {
    case Charset::utf16le: return bytes_of(from_utf16(bytes, true, name));
    case Charset::utf16be: return bytes_of(from_utf16(bytes, false, name));
    case Charset::latin1: return bytes_of(from_one_byte(bytes, false));
    case Charset::windows1252: return bytes_of(from_one_byte(bytes, true));
    case Charset::utf8: break;
  }
  const std::string_view text = text_of(bytes);
  const size_t bad = first_invalid_utf8(text);
  if (bad == std::string_view::npos) return bytes;
  throw Error("DATA_NOT_UTF8",
              name + ':' + line_and_column(text, bad) + ": byte " + hex_byte(text[bad]) +
                  " is not UTF-8, as the text before it is",
              "convert the file with iconv, or set data.table.encoding in the job file, for example to windows-1252");
}

}  // namespace sinew::data
