#include <bit>
#include <deque>
#include <unordered_set>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/error.h"
#include "data/rows.h"
#include "data/utf8.h"

namespace sinew::data {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

class CsvReader final : public RowReader {
 public:
  CsvReader(std::string_view text, const std::string& name, char delimiter)
      : name_(name), at_(text.data()), end_(at_ + text.size()), delimiter_(delimiter) {
    if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
      throw Error(name_ + ": is UTF-16, not UTF-8", "convert it, for example: iconv -f UTF-16 -t UTF-8");
    }
    if (text.starts_with("\xEF\xBB\xBF")) at_ += 3;
    read_header();
  }

  const std::vector<std::string>& columns() const override { return columns_; }

  bool next(Row& row) override {
    if (!read_row(row)) return false;
    if (row.problem.empty() && row.fields.size() != columns_.size()) {
      row.problem = std::to_string(row.fields.size()) + (row.fields.size() == 1 ? " field" : " fields") +
                    ", the header has " + std::to_string(columns_.size());
    }
    return true;
  }

 private:
  void read_header() {
    Row row;
    if (!read_row(row)) throw Error(name_ + ": is empty", "a table needs a header line with the names of its columns");
    const std::string place = name_ + ':' + std::to_string(row.line) + ": ";
    if (!row.problem.empty()) throw Error(place + row.problem, "check the header's quotes");
    size_t numbers = 0;
    std::unordered_set<std::string_view> seen;
    for (const Field& field : row.fields) {
      const std::string column = "column " + std::to_string(columns_.size() + 1);
      if (field.text.empty()) {
        throw Error(place + column + " has no name",
                    "name it in the header (a table saved with its row numbers has one such column)");
      }
      if (first_invalid_utf8(field.text) != std::string_view::npos) {
        throw Error(place + "the name of " + column + " is not UTF-8", "convert the file, for example with iconv");
      }
      if (!seen.insert(field.text).second) {
        throw Error(place + "two columns are called '" + std::string(field.text) + "'", "give each its own name");
      }
      numbers += parse_number(field.text) ? 1 : 0;
      columns_.emplace_back(field.text);
    }
    if (numbers == columns_.size()) {
      throw Error(place + "the first line holds numbers, not names of columns", "put a header line before the data");
    }
  }

  // Splits the next line that is not blank.
  bool read_row(Row& row) {
    while (at_ != end_ && (*at_ == '\n' || *at_ == '\r')) end_line();
    if (at_ == end_) return false;
    row.line = line_;
    row.fields.clear();
    row.problem.clear();
    unescaped_.clear();
    while (true) {
      const char* start = at_;
      while (start != end_ && *start == ' ') ++start;
      const bool quoted = start != end_ && *start == '"';
      if (quoted) at_ = start;
      row.fields.push_back(quoted ? read_quoted(row) : read_plain());
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

  const char* find_field_end(const char* from) const {
#ifdef __SSE2__
    const __m128i delimiter = _mm_set1_epi8(delimiter_), newline = _mm_set1_epi8('\n'), carriage = _mm_set1_epi8('\r');
    for (; end_ - from >= 16; from += 16) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
      const __m128i hits = _mm_or_si128(_mm_cmpeq_epi8(bytes, delimiter),
                                        _mm_or_si128(_mm_cmpeq_epi8(bytes, newline), _mm_cmpeq_epi8(bytes, carriage)));
      const auto mask = static_cast<unsigned>(_mm_movemask_epi8(hits));
      if (mask != 0) return from + std::countr_zero(mask);
    }
#endif
    while (from != end_ && !ends_field(*from)) ++from;
    return from;
  }

  Field read_plain() {
    const char* const end = find_field_end(at_);
    const std::string_view text(at_, static_cast<size_t>(end - at_));
    at_ = end;
    return {trimmed(text), Field::Kind::plain};
  }

  Field read_quoted(Row& row) {
    const char* first = ++at_;
    const int64_t opened = line_;
    std::string* copy = nullptr;  // made at the first doubled quote
    while (true) {
      while (at_ != end_ && *at_ != '"') {
        if (*at_ == '\n' || (*at_ == '\r' && (at_ + 1 == end_ || at_[1] != '\n'))) ++line_;
        ++at_;
      }
      if (at_ == end_) {
        throw Error(name_ + ':' + std::to_string(opened) + ": a quote opens and never closes",
                    "close it, or double it where it is part of the text");
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
    ++at_;
    while (at_ != end_ && *at_ == ' ') ++at_;
    if (at_ != end_ && !ends_field(*at_)) {
      row.problem = "text after the closing quote of field " + std::to_string(row.fields.size() + 1);
      at_ = find_field_end(at_);
    }
    return {text, Field::Kind::plain};
  }

  const std::string& name_;
  const char* at_;
  const char* const end_;
  const char delimiter_;
  int64_t line_ = 1;
  std::vector<std::string> columns_;
  std::deque<std::string> unescaped_;  // fields of this row that had doubled quotes
};

}  // namespace

std::unique_ptr<RowReader> read_csv(std::string_view text, const std::string& name, char delimiter) {
  return std::make_unique<CsvReader>(text, name, delimiter);
}

}  // namespace sinew::data
