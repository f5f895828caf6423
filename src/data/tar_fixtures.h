// For the tests of tars: builds them field by field, not with the code that is tested.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace sinew::data {

struct TarEntry {
  std::string name, content = {};
  char type = '0';
  std::string prefix = {};
  std::string size = {};  // the field as it stands in the header; empty: of the content, octal
  std::string magic = std::string("ustar\00000", 8);  // "ustar  " of GNU
  int checksum_error = 0;
};

inline std::string tar_entry(const TarEntry& entry) {
  std::string header(512, '\0');
  const auto put = [&](size_t at, std::string_view text) { text.copy(header.data() + at, text.size()); };
  char number[32];
  put(0, std::string_view(entry.name).substr(0, 100));
  put(100, "0000644"), put(108, "0001750"), put(116, "0001750"), put(136, "14717725240");
  std::snprintf(number, sizeof number, "%011zo", entry.content.size());
  put(124, entry.size.empty() ? std::string_view(number) : std::string_view(entry.size));
  header[156] = entry.type;
  put(257, entry.magic);
  put(345, entry.prefix);
  put(148, "        ");
  uint32_t sum = 0;
  for (const char c : header) sum += static_cast<uint8_t>(c);
  std::snprintf(number, sizeof number, "%06o", sum + static_cast<uint32_t>(entry.checksum_error));
  put(148, std::string_view(number, 7));
  return header + entry.content + std::string((512 - entry.content.size() % 512) % 512, '\0');
}

inline std::string tar_member(const std::string& name, const std::string& content) {
  return tar_entry({.name = name, .content = content});
}

inline std::string tar_of(const std::string& entries) {
  return entries + std::string(1024, '\0');
}

inline std::string pax_text(const std::string& key, const std::string& value) {
  const std::string rest = " " + key + "=" + value + "\n";
  for (size_t digits = 1;; ++digits) {
    const std::string length = std::to_string(rest.size() + digits);
    if (length.size() == digits) return length + rest;
  }
}

// The name as GNU tar writes one of more than 100 bytes.
inline std::string gnu_long_name(const std::string& name) {
  return tar_entry(
      {.name = "././@LongLink", .content = name + '\0', .type = 'L', .magic = std::string("ustar  \0", 8)});
}

}  // namespace sinew::data
