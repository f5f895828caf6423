#include <algorithm>
#include <bit>
#include <deque>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/error.h"
#include "base/utf8.h"
#include "data/dialect.h"
#include "data/rows.h"

namespace sinew::data {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Returns the number of lines between the first and the last line of a text in quotes if each of them, and more than
// one, has as many cells as a row. Otherwise returns 0.
int64_t rows_within(std::string_view text, char delimiter, size_t cells) {
  int64_t lines = 0;
  for (size_t begin = text.find('\n'), end = 0; (end = text.find('\n', begin + 1)) != std::string_view::npos;
       begin = end, ++lines) {
    const std::string_view line = text.substr(begin + 1, end - begin - 1);
    if (static_cast<size_t>(std::ranges::count(line, delimiter)) + 1 != cells) return 0;
  }
  return lines > 1 ? lines : 0;
}

// Returns the place of a cell of the row that begins at `at`, in this line: reads the row up to the cell.
std::string place_in(const char* at, const char* end, char delimiter, int64_t line, size_t cell) {
  int64_t column = 1;
  bool quoted = false, begins = true, opened = false;  // opened: the cell began with a quote
  for (; at != end; ++at) {
    if (begins && *at != ' ' && cell == 0) break;
    if (*at == '"' && (begins || opened)) {
      quoted = !quoted;
      opened = true;
      begins = false;
    } else if (!quoted && *at == delimiter) {
      --cell;
      begins = true;
      opened = false;
    } else if (*at == '\n' || (*at == '\r' && (at + 1 == end || at[1] != '\n'))) {
      if (!quoted) break;
      ++line;
      column = 0;
    } else if (*at != ' ') {
      begins = false;
    }
    column += (static_cast<unsigned char>(*at) & 0xC0) != 0x80 ? 1 : 0;
  }
  return std::to_string(line) + ':' + std::to_string(column);
}

class CsvReader final : public RowReader {
 public:
  CsvReader(std::string_view text, const std::string& name, char delimiter, bool header, size_t rows_above, bool typed)
      : name_(name), typed_(typed), begin_(text.data()), at_(begin_), end_(at_ + text.size()), delimiter_(delimiter) {
    if (text.starts_with("\xEF\xBB\xBF")) at_ += 3;
    while (at_ != end_ && end_[-1] == '\x1A') --end_;  // the end of a file in DOS
    const char* const first = at_;
    Row row;
    for (size_t i = 0; i < rows_above; ++i) read_row(row);
    const std::vector<HeaderCell> cells = read_first_line(row);
    if (header) {
      header_ = resolve_header(cells);
      header_.line = row.line;
      return;
    }
    at_ = first;
    line_ = 1;
    for (size_t i = 0; i < cells.size(); ++i) header_.names.push_back(default_column_name(i));
  }

  const std::vector<std::string>& columns() const override { return header_.names; }
  const TableHeader& header() const override { return header_; }
  size_t bytes_read() const override { return static_cast<size_t>(at_ - begin_); }
  bool next(Row& row) override {
    if (!read_row(row)) return false;
    if (row.problem.empty() && row.fields.size() != header_.names.size()) {
      row.problem = "has " + std::to_string(row.fields.size()) + (row.fields.size() == 1 ? " field" : " fields") +
                    ", but the header has " + std::to_string(header_.names.size());
    }
    return true;
  }

  std::string place_of(const Row& row, size_t cell) const override {
    return place_in(row.begin, end_, delimiter_, row.line, cell);
  }

 private:
  // The texts are valid until the next row is read.
  std::vector<HeaderCell> read_first_line(Row& row) {
    if (!read_row(row)) {
      throw Error("DATA_EMPTY", name_ + ": is empty", "a table needs a header line with the names of its columns");
    }
    const auto place = [&](size_t cell) { return name_ + ':' + place_of(row, cell) + ": "; };
    if (!row.problem.empty()) throw Error("DATA_BAD_HEADER", place(0) + row.problem, "check the quotes of the header");
    std::vector<HeaderCell> cells;
    for (const Field& field : row.fields) {
      if (first_invalid_utf8(field.text) != std::string_view::npos) {
        throw Error("DATA_NOT_UTF8",
                    place(cells.size()) + "the name of column " + std::to_string(cells.size() + 1) + " is not UTF-8",
                    "convert the file, for example with iconv");
      }
      const char* const from = field.text.data();
      const char* const to = from + field.text.size();
      const bool inside = from > begin_ && to <= end_;
      cells.push_back({field.text, inside && (from[-1] == ' ' || (to != end_ && *to == ' '))});
    }
    return cells;
  }

  // Splits the next line that is not blank.
  bool read_row(Row& row) {
    while (at_ != end_ && (*at_ == '\n' || *at_ == '\r')) end_line();
    if (at_ == end_) return false;
    row.line = line_;
    row.begin = at_;
    row.fields.clear();
    row.problem.clear();
    row.quoted_rows = 0;
    if (!unescaped_.empty()) unescaped_.clear();
    while (true) {
      const char* start = at_;
      while (start != end_ && *start == ' ') ++start;
      const bool quoted = start != end_ && *start == '"';
      if (quoted) at_ = start;
      const std::string_view text = quoted ? read_quoted(row) : read_plain();
      Field& field = row.fields.emplace_back();  // in place: copying a Field would stall on its own stores
      field.text = text;
      if (typed_ && quoted) field.kind = Field::Kind::text;
      if (at_ == end_) return true;
      if (*at_ != delimiter_) {
        end_line();
        return true;
      }
      ++at_;
    }
  }

  void end_line() {
    if (*at_ == '\r' && at_ + 1 != end_ && at_[1] == '\n') ++at_;
    ++at_;
    ++line_;
  }

  bool ends_field(char c) const { return c == delimiter_ || c == '\n' || c == '\r'; }

  // Finds the next delimiter or line end. A scan looks at 64 bytes at once and keeps its result as bits. Fields are
  // short, so most calls need only the bits of the last scan.
  const char* find_field_end(const char* from) {
#ifdef __SSE2__
    while (true) {
      if (block_ != nullptr && from >= block_ && from < block_ + 64) {
        const uint64_t ahead = ends_ & (~uint64_t{0} << (from - block_));
        if (ahead != 0) return block_ + std::countr_zero(ahead);
        from = block_ + 64;
      }
      if (end_ - from < 64) break;
      scan_block(from);
    }
#endif
    while (from != end_ && !ends_field(*from)) ++from;
    return from;
  }

#ifdef __SSE2__
  void scan_block(const char* from) {
    const __m128i delimiter = _mm_set1_epi8(delimiter_), newline = _mm_set1_epi8('\n'), carriage = _mm_set1_epi8('\r');
    block_ = from;
    ends_ = 0;
    for (int i = 0; i < 4; ++i) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 16 * i));
      const __m128i hits = _mm_or_si128(_mm_cmpeq_epi8(bytes, delimiter),
                                        _mm_or_si128(_mm_cmpeq_epi8(bytes, newline), _mm_cmpeq_epi8(bytes, carriage)));
      ends_ |= static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(hits))) << (16 * i);
    }
  }
  const char* block_ = nullptr;  // the 64 bytes that `ends_` describes
  uint64_t ends_ = 0;            // bit i: block_[i] ends a field
#endif

  std::string_view read_plain() {
    const char* const end = find_field_end(at_);
    const std::string_view text(at_, static_cast<size_t>(end - at_));
    at_ = end;
    const bool spaces = !text.empty() && (text.front() <= ' ' || text.back() <= ' ');
    return spaces ? trimmed(text) : text;
  }

  std::string_view read_quoted(Row& row) {
    const char* first = ++at_;
    const int64_t opened = line_;
    std::string* copy = nullptr;  // the unescaped text; created at the first doubled quote
    while (true) {
      while (at_ != end_ && *at_ != '"') {
        if (*at_ == '\n' || (*at_ == '\r' && (at_ + 1 == end_ || at_[1] != '\n'))) ++line_;
        ++at_;
      }
      if (at_ == end_) {
        throw Error("DATA_BAD_ROW", name_ + ':' + std::to_string(opened) + ": a quote opens and never closes",
                    "close it, or write it twice where it belongs to the text");
      }
      if (at_ + 1 != end_ && at_[1] == '"') {
        if (copy == nullptr) copy = &unescaped_.emplace_back();
        copy->append(first, static_cast<size_t>(at_ + 1 - first));
        at_ += 2;
        first = at_;
        continue;
      }
      break;
    }
    std::string_view text(first, static_cast<size_t>(at_ - first));
    if (copy != nullptr) text = copy->append(text);
    if (line_ > opened + 2) row.quoted_rows += rows_within(text, delimiter_, header_.names.size());
    ++at_;
    while (at_ != end_ && *at_ == ' ') ++at_;
    if (at_ != end_ && !ends_field(*at_)) {
      row.problem = "has text after the closing quote of field " + std::to_string(row.fields.size() + 1);
      at_ = find_field_end(at_);
    }
    return text;
  }

  const std::string& name_;
  const bool typed_;
  const char* const begin_;
  const char* at_;
  const char* end_;
  const char delimiter_;
  int64_t line_ = 1;
  TableHeader header_;
  std::deque<std::string> unescaped_;  // fields of this row that had doubled quotes
};

}  // namespace

std::unique_ptr<RowReader> read_csv(std::string_view text, const std::string& name, char delimiter, bool header,
                                    size_t rows_above, bool typed) {
  return std::make_unique<CsvReader>(text, name, delimiter, header, rows_above, typed);
}

}  // namespace sinew::data
