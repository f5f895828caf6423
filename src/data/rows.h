// Inside data/: the rows of a table file, whatever its format. Private to the room.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sinew::data {

struct Field {
  enum class Kind : uint8_t { plain, text, missing };  // plain: may be a number; text: a word whatever it looks like
  std::string_view text;                               // valid until the next row
  Kind kind = Kind::plain;
};

struct Row {
  std::vector<Field> fields;  // one a column known so far
  int64_t line = 0;           // where it begins, from 1
  std::string problem;        // not empty: the row does not parse, and why; the next one may
};

// Reads one row after another. A broken row is reported in the row; only what leaves no way to go on throws Error.
class RowReader {
 public:
  virtual ~RowReader() = default;
  virtual const std::vector<std::string>& columns() const = 0;  // may grow with a row (jsonl)
  virtual bool next(Row& row) = 0;                              // false: the end; the same row each time
  virtual size_t bytes_read() const = 0;                        // of the text so far
};

// `text` and `name` must outlive the reader. RFC 4180: header line, quotes, doubled quotes, CRLF, LF or CR; a byte
// order mark and blank lines are passed over; spaces around an unquoted field do not count.
std::unique_ptr<RowReader> read_csv(std::string_view text, const std::string& name, char delimiter);
// One flat JSON object a line; blank lines are passed over; null is a missing value.
std::unique_ptr<RowReader> read_jsonl(std::string_view text, const std::string& name);

// The whole field as a number, correctly rounded; infinite where it overflows. nullopt: no number.
std::optional<double> parse_number(std::string_view text);
// "" NA N/A n/a na NaN nan NULL null ?
bool is_missing(std::string_view text);

}  // namespace sinew::data
