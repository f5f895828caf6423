// Private to data/: reads the rows of a table file, in any of the table formats.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sinew::data {

struct TableHeader;  // data/dialect.h

struct Field {
  enum class Kind : uint8_t { plain, text, missing };  // plain: may be a number; text: a word, even if it is "1"
  std::string_view text;                               // valid until the next row is read
  Kind kind = Kind::plain;
};

struct Row {
  std::vector<Field> fields;    // one for each column known so far
  int64_t line = 0;             // where the row begins, counted from 1
  const char* begin = nullptr;  // csv: where the row begins in the text
  std::string problem;          // why the row does not parse; empty if it does. The next row may parse again
  int64_t quoted_rows = 0;      // csv: lines within the quotes of a cell that look like rows
};

// Reads one row after another. It reports a broken row in the row itself, and throws Error only if it cannot continue.
class RowReader {
 public:
  virtual ~RowReader() = default;
  virtual const std::vector<std::string>& columns() const = 0;  // may grow with each row (jsonl)
  virtual bool next(Row& row) = 0;                              // false at the end; the caller passes the same row
  virtual size_t bytes_read() const = 0;                        // bytes of the text that were read so far
  virtual const TableHeader& header() const = 0;
  // "LINE:COLUMN" of a cell of the row that next() returned last; columns count characters. "LINE" if the format has no
  // place for a cell.
  virtual std::string place_of(const Row& row, size_t cell) const = 0;
};

// `text` and `name` must outlive the reader. RFC 4180: quotes, doubled quotes, CRLF, LF or CR. The reader skips a byte
// order mark, blank lines and the end-of-file character of DOS, and strips spaces around an unquoted field. Without a
// header line, the columns are column_1, column_2, ... The reader leaves out the first `rows_above` rows. If `typed`, a
// field in quotes is a word.
std::unique_ptr<RowReader> read_csv(std::string_view text, const std::string& name, char delimiter, bool header = true,
                                    size_t rows_above = 0, bool typed = false);
// One flat JSON object on each line. The reader skips blank lines; null is a missing value.
std::unique_ptr<RowReader> read_jsonl(std::string_view text, const std::string& name);

// Returns the whole field as a number, correctly rounded, and infinite on overflow. Returns nullopt if it is not a
// number.
std::optional<double> parse_number(std::string_view text);
// Returns whether the field is one of the texts that stand for a missing value: "" NA N/A n/a #NA #N/A
// "#N/A N/A" NaN nan -NaN -nan NULL null None <NA> 1.#IND -1.#IND 1.#QNAN -1.#QNAN, which pandas takes for missing too,
// and ? na NAN.
bool is_missing(std::string_view text);

}  // namespace sinew::data
