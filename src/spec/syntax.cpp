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

Place start_of(int number, const SourceText& source) {
  return source.place(number - 1, static_cast<int>(indentation(source.line(number))));
}

std::string first_word(std::string_view line) {
  const std::string_view text = line.substr(indentation(line));
  return std::string(text.substr(0, text.find_first_of(" :#\t")));
}

// A line without ':' where a key was due.
Finding no_colon(int number, const SourceText& source) {
  const std::string_view line = source.line(number);
  const size_t colon = line.find(':');
  if (colon != std::string_view::npos) {
    return {source.place(number - 1, static_cast<int>(colon)), "no space after the ':'", "write 'key: value'"};
  }
  return {start_of(number, source), "no ':' after " + shown(first_word(line)),
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
    return {start_of(here, source),
            shown(first_word(text)) + " is indented deeper than the line above, which already has its value",
            "indent it like line " + std::to_string(before) + ", or delete that line's value to open a section"};
  }
  return {source.place(line, column), "a second ':' on this line",
          "put a value that holds ': ' in quotes, or start a new line"};
}

Finding bad_end_of_section(int line, int column, const SourceText& source) {
  const std::string_view text = source.line(line + 1);
  const bool at_start = static_cast<size_t>(column) <= indentation(text);
  if (!at_start) {
    return {source.place(line, column), "unexpected text after the value",
            "quote the value as a whole, or delete what follows it"};
  }
  if (text.substr(indentation(text)).starts_with("- ")) {
    return {start_of(line + 1, source), "a list item where a key is expected",
            "give the list a key: 'key:', then the items below it, indented; or 'key: [a, b]'"};
  }
  if (!has_key(text)) return no_colon(line + 1, source);
  return {start_of(line + 1, source), shown(first_word(text)) + " is not indented like the keys of any section above",
          "indent it exactly as its neighbours, with spaces"};
}

}  // namespace

Finding explain_syntax(const std::string& message, int line, int column, const SourceText& source) {
  const Place place = source.place(line, column);
  const std::string_view rest = source.rest_of_line(line, column);
  if (message == "illegal map value" || message == "illegal map key") {
    return bad_place_for_value(line, column, source);
  }
  if (message.starts_with("end of map not found") || message.starts_with("end of sequence not found")) {
    if (message.find("flow") == std::string::npos) return bad_end_of_section(line, column, source);
    return {place, "a '[' or '{' above is not closed", "close it with ']' or '}'"};
  }
  if (message == "illegal flow end") return {place, "a ']' or '}' that closes nothing", "delete it, or open it before"};
  if (message == "illegal block entry") {
    return {place, "a list item can not stand here", "put '- ' items on lines of their own, or write [a, b]"};
  }
  if (message == "unknown token") {
    return {place, "a value can not begin with " + shown(rest.substr(0, 1)), "put the value in quotes"};
  }
  if (message == "the referenced anchor is not defined") {
    return {place, "'*' stands for a value named with '&' above, and none has this name",
            "put the value in quotes if it is meant as text"};
  }
  if (message.starts_with("unknown escape character")) {
    return {place, "a '\\' that starts no known escape", "use single quotes, where '\\' is itself, or write '\\\\'"};
  }
  if (message.find("EOF") != std::string::npos) {
    return {place, "the file ends inside a quoted value", "close the quote on its line"};
  }
  return {place, "this is not valid YAML: " + message, "check quotes, brackets and indentation here"};
}

}  // namespace sinew::spec
