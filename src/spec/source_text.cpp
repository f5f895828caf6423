#include "spec/source_text.h"

#include <algorithm>
#include <cstdio>

#include "base/utf8.h"

namespace sinew::spec {
namespace {

std::string hex(char byte) {
  char buffer[8];
  std::snprintf(buffer, sizeof buffer, "0x%02X", static_cast<unsigned char>(byte));
  return buffer;
}

bool is_blank_or_comment(std::string_view line) {
  const size_t first = line.find_first_not_of(" \t");
  return first == std::string_view::npos || line[first] == '#';
}

void check_line(std::string_view line, int number, const SourceText& source, std::vector<Finding>& findings) {
  const auto position = [&](size_t at) { return source.position(number - 1, static_cast<int>(at)); };
  for (size_t at = 0; at < line.size();) {
    const auto length = static_cast<size_t>(decode_utf8(line, at).size);
    const char letter = line[at];
    if (length == 0) {
      findings.push_back(
          {position(at), "SPEC_BAD_BYTES", "the byte " + hex(letter) + " is not UTF-8 text", "save the file as UTF-8"});
      return;  // one message for each line is enough
    }
    if ((static_cast<unsigned char>(letter) < 0x20 && letter != '\t') || letter == 0x7F) {
      findings.push_back({position(at), "SPEC_BAD_BYTES",
                          "the control character " + hex(letter) + " is not allowed in a job file", "delete it"});
      return;
    }
    at += length;
  }
  const size_t tab = line.find('\t');
  if (tab < line.find_first_not_of(" \t") && !is_blank_or_comment(line)) {
    findings.push_back({position(tab), "SPEC_BAD_INDENTATION", "there is a tab in the indentation",
                        "indent with spaces: YAML does not define the width of a tab"});
  }
}

}  // namespace

SourceText::SourceText(std::string_view text) : text_(text) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r') && end < text.size()) line.remove_suffix(1);
    lines_.push_back(line);
    begin = end + 1;
  }
}

std::vector<Finding> SourceText::check() const {
  if (text_.size() > kMostBytes) {
    return {{{},
             "SPEC_TOO_LARGE",
             "the file is larger than 1 MiB",
             "check that this is the job file; keep data in files of its own"}};
  }
  std::vector<Finding> findings;
  for (size_t i = 0; i < lines_.size(); ++i) check_line(lines_[i], static_cast<int>(i) + 1, *this, findings);
  return findings;
}

std::string_view SourceText::line(int number) const {
  return number >= 1 && number <= line_count() ? lines_[static_cast<size_t>(number) - 1] : "";
}

Position SourceText::position(int line_index, int column) const {
  if (line_index >= line_count()) {  // beyond the end: use the position of the last character
    const std::string_view last = line(line_count());
    return {std::max(1, line_count()), position(line_count() - 1, static_cast<int>(last.size())).column};
  }
  if (line_index < 0) return {};
  const std::string_view text = line(line_index + 1);
  const size_t end = std::min(static_cast<size_t>(std::max(0, column)), text.size());
  if (counted_.line_index != line_index || counted_.bytes > end) counted_ = {line_index, 0, 0};
  const std::string_view more = text.substr(counted_.bytes, end - counted_.bytes);
  counted_.characters +=
      static_cast<int>(std::count_if(more.begin(), more.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
  counted_.bytes = end;
  return {line_index + 1, counted_.characters + 1};
}

std::string_view SourceText::rest_of_line(int line_index, int column) const {
  const std::string_view text = line(line_index + 1);
  return column >= 0 && static_cast<size_t>(column) <= text.size() ? text.substr(static_cast<size_t>(column)) : "";
}

}  // namespace sinew::spec
