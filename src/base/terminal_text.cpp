#include "base/terminal_text.h"

#include <algorithm>
#include <cstdint>

#include "base/printable.h"
#include "base/terminal.h"
#include "base/utf8.h"

namespace sinew {
namespace {

constexpr size_t kIndent = 2;       // of the later parts of a line
constexpr size_t kDeepIndent = 16;  // a line with so many blanks before it continues the last column of a row
constexpr std::string_view kProgram = "sinew ";

enum class Layout { message, rows };

size_t first_word(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

// Returns whether the line from this place on is a command of Sinew, and no sentence about one.
bool is_command(std::string_view line, size_t at) {
  std::string_view rest = line.substr(at);
  if (!rest.starts_with(kProgram)) return false;
  rest.remove_prefix(kProgram.size());
  const size_t name = std::min(rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz"), rest.size());
  if (name == 0 || (name < rest.size() && rest[name] != ' ')) return false;
  bool quoted = false;
  for (size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] == '\'') quoted = !quoted;
    const bool ends_word = i + 1 < rest.size() && rest[i + 1] == ' ';
    if (!quoted && ends_word && (rest[i] == ',' || rest[i] == ';' || rest[i] == ':')) return false;
    if (!quoted && rest[i] == ' ' && i + 1 < rest.size() && (rest[i + 1] == '[' || rest[i + 1] == '(')) return false;
  }
  return !quoted;
}

// Returns where in the line a command begins that goes to the line's end; npos if there is none.
size_t place_of_command(std::string_view line) {
  if (const size_t begin = first_word(line); is_command(line, begin)) return begin;
  for (size_t at = line.find(": sinew "); at != line.npos; at = line.find(": sinew ", at + 1)) {
    if (is_command(line, at + 2)) return at + 2;
  }
  return line.npos;
}

// Returns how far the later parts of a line are indented.
size_t indent_of(std::string_view line, int columns, Layout layout) {
  const size_t lead = first_word(line);
  const size_t usual = lead < kDeepIndent ? lead + kIndent : lead;
  if (layout == Layout::message) return usual;
  size_t column = 0;
  for (size_t at = line.find("  ", lead); at != line.npos; at = line.find("  ", at)) {
    at = line.find_first_not_of(' ', at);
    if (at == line.npos || display_width(line.substr(0, at)) > columns / 2) break;
    column = static_cast<size_t>(display_width(line.substr(0, at)));
  }
  return column > 0 ? column : usual;
}

// Returns where the first part of the line ends: at the last blank that leaves a part of at most `room` columns, in a
// message at two blanks rather than at one. Returns npos if no later word could follow.
size_t place_to_break(std::string_view line, int room, Layout layout) {
  size_t one = line.npos, two = line.npos;
  for (size_t at = line.find(' ', first_word(line)); at != line.npos; at = line.find(' ', at + 1)) {
    const size_t next = line.find_first_not_of(' ', at);
    if (next == line.npos) break;
    if (display_width(line.substr(0, at)) > room) return two != line.npos ? two : one != line.npos ? one : at;
    (next - at > 1 && layout == Layout::message ? two : one) = at;
    at = next - 1;
  }
  return two != line.npos ? two : one;
}

void append_wrapped(std::string& out, std::string_view line, int columns, Layout layout) {
  if (display_width(line) <= columns || place_of_command(line) == first_word(line)) {
    out += line;
    return;
  }
  if (const size_t command = place_of_command(line); command != line.npos) {
    append_wrapped(out, line.substr(0, command - 1), columns, layout);
    out.append("\n").append(indent_of(line, columns, Layout::message), ' ').append(line.substr(command));
    return;
  }
  const size_t deep = indent_of(line, columns, layout);
  for (size_t indent = 0;; indent = deep) {
    out.append(indent, ' ');
    const int room = columns - static_cast<int>(indent);
    const size_t cut = display_width(line) <= room ? line.npos : place_to_break(line, room, layout);
    if (cut == line.npos) break;
    out.append(line.substr(0, cut)) += '\n';
    line.remove_prefix(line.find_first_not_of(' ', cut));
  }
  out += line;
}

std::string wrap_lines(std::string_view text, int columns, Layout layout) {
  if (columns == 0) return std::string(text);
  std::string out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    append_wrapped(out, text.substr(begin, end - begin), columns, layout);
    if (end < text.size()) out += '\n';
    begin = end + 1;
  }
  return out;
}

}  // namespace

int display_width(std::string_view text) {
  int width = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);  // a byte that is not UTF-8 counts as one character
    const bool narrow = point.value < 0x1100 || (point.value >= 0x2010 && point.value < 0x2600);
    width += narrow ? 1 : 2;  // punctuation, arrows and box drawing are narrow
    at += static_cast<size_t>(std::max(1, point.size));
  }
  return width;
}

std::string wrap(std::string_view text, int columns) {
  return wrap_lines(text, columns, Layout::message);
}

std::string wrap_rows(std::string_view text, int columns) {
  return wrap_lines(text, columns, Layout::rows);
}

int columns_of(int descriptor) {
  return usable_columns(terminal_of(descriptor));
}

void print_text(std::FILE* stream, std::string_view text) {
  const std::string shown = wrap_rows(text, columns_of(::fileno(stream)));
  std::fwrite(shown.data(), 1, shown.size(), stream);
}

void print_help(std::string_view text) {
  constexpr int kUsual = 118;
  const int columns = columns_of(::fileno(stdout));
  const std::string shown = wrap_rows(text, columns > 0 ? columns : kUsual);
  std::fwrite(shown.data(), 1, shown.size(), stdout);
}

void print_error(const std::string& who, const Error& error) {
  const std::string hint = error.hint.empty() ? "" : "\n  try: " + error.hint;
  print_text(stderr, printable(who + ": " + to_string(error) + hint, true) + "\n");
}

}  // namespace sinew
