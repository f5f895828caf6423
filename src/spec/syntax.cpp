#include "spec/syntax.h"

#include <algorithm>

namespace sinew::spec {
namespace {

size_t indentation(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

bool is_content(std::string_view line) {
  return indentation(line) < line.size() && line[indentation(line)] != '#';
}

// "key:" or "key: value"
bool has_key(std::string_view line) {
  return line.find(": ") != std::string_view::npos || line.ends_with(':') || line.find(":\t") != std::string_view::npos;
}

int line_before(int number, const SourceText& source) {
  while (--number > 0 && !is_content(source.line(number))) {
  }
  return number;
}

Position start_of(int number, const SourceText& source) {
  return source.position(number - 1, static_cast<int>(indentation(source.line(number))));
}

std::string first_word(std::string_view line) {
  const std::string_view text = line.substr(indentation(line));
  return std::string(text.substr(0, text.find_first_of(" :#\t")));
}

// The line has no ':' where a key is expected.
Finding no_colon(int number, const SourceText& source) {
  const std::string_view line = source.line(number);
  const size_t colon = line.find(':');
  if (colon != std::string_view::npos) {
    return {source.position(number - 1, static_cast<int>(colon)), "SPEC_BAD_SYNTAX", "there is no space after the ':'",
            "write 'key: value'"};
  }
  return {start_of(number, source), "SPEC_BAD_SYNTAX", "there is no ':' after " + shown(first_word(line)),
          "write '" + first_word(line) + ":' and its value, or its keys below, indented"};
}

Finding bad_place_for_value(int line, int column, const SourceText& source) {
  const int here = line + 1;
  const int before = line_before(here, source);
  const std::string_view text = source.line(here);
  const std::string_view above = source.line(before);
  const bool first_colon = text.substr(0, static_cast<size_t>(std::max(0, column))).find(':') == std::string_view::npos;
  if (before > 0 && first_colon && !has_key(above)) return no_colon(before, source);
  if (before > 0 && indentation(text) > indentation(above) && !above.ends_with(':')) {
    return {start_of(here, source), "SPEC_BAD_INDENTATION",
            shown(first_word(text)) + " is indented deeper than the line above, which has a value of its own",
            "indent it like line " + std::to_string(before) + ", or delete that line's value to open a section"};
  }
  return {source.position(line, column), "SPEC_BAD_SYNTAX", "this line has a second ':'",
          "put a value that contains ': ' in quotes, or start a new line"};
}

Finding bad_end_of_section(int line, int column, const SourceText& source) {
  const std::string_view text = source.line(line + 1);
  const bool at_start = static_cast<size_t>(column) <= indentation(text);
  if (!at_start) {
    return {source.position(line, column), "SPEC_BAD_SYNTAX", "there is text after the end of the value",
            "put the whole value in quotes, or delete the text after it"};
  }
  if (text.substr(indentation(text)).starts_with("- ")) {
    return {start_of(line + 1, source), "SPEC_BAD_SYNTAX", "a list item where a key is expected",
            "give the list a key: 'key:', then the items below it, indented; or 'key: [a, b]'"};
  }
  if (!has_key(text)) return no_colon(line + 1, source);
  return {start_of(line + 1, source), "SPEC_BAD_INDENTATION",
          shown(first_word(text)) + " is not indented like the keys of any section above",
          "indent it with spaces exactly as its neighbours"};
}

}  // namespace

Finding explain_syntax(const std::string& message, int line, int column, const SourceText& source) {
  const Position position = source.position(line, column);
  const std::string_view rest = source.rest_of_line(line, column);
  if (message == "illegal map value" || message == "illegal map key") {
    return bad_place_for_value(line, column, source);
  }
  if (message.starts_with("end of map not found") || message.starts_with("end of sequence not found")) {
    if (message.find("flow") == std::string::npos) return bad_end_of_section(line, column, source);
    return {position, "SPEC_NOT_CLOSED", "a '[' or '{' above is not closed", "close it with ']' or '}'"};
  }
  if (message == "illegal flow end")
    return {position, "SPEC_BAD_SYNTAX", "this ']' or '}' closes no bracket", "delete it, or open the bracket before"};
  if (message == "illegal block entry") {
    return {position, "SPEC_BAD_SYNTAX", "a list item is not allowed here",
            "put each '- ' item on its own line, or write [a, b]"};
  }
  if (message == "unknown token") {
    return {position, "SPEC_BAD_SYNTAX", "a value cannot begin with " + shown(rest.substr(0, 1)),
            "put the value in quotes"};
  }
  if (message == "the referenced anchor is not defined") {
    return {position, "SPEC_BAD_SYNTAX", "this alias ('*') has no anchor ('&') of the same name above it",
            "put the value in quotes if it is a text"};
  }
  if (message.starts_with("unknown escape character")) {
    return {position, "SPEC_BAD_SYNTAX", "this '\\' starts no known escape sequence",
            "write '\\\\', or use single quotes, in which '\\' has no special meaning"};
  }
  if (message.find("EOF") != std::string::npos) {
    return {position, "SPEC_NOT_CLOSED", "the file ends inside a quoted value", "close the quote on its line"};
  }
  return {position, "SPEC_BAD_SYNTAX", "this is not valid YAML: " + message,
          "check quotes, brackets and indentation here"};
}

}  // namespace sinew::spec
