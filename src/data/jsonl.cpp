#include <array>
#include <charconv>
#include <deque>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/error.h"
#include "data/dialect.h"
#include "data/rows.h"

namespace sinew::data {
namespace {

using Sax = nlohmann::json_sax<nlohmann::json>;

constexpr Field kMissing{{}, Field::Kind::missing};

class JsonlReader final : public RowReader, private Sax {
 public:
  JsonlReader(std::string_view text, const std::string& name) : text_(text), size_(text.size()) {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
    if (text_.find_first_not_of(" \t\r\n") == std::string_view::npos) {
      throw Error("DATA_EMPTY", name + ": is empty", "write one JSON object on each line");
    }
  }

  const std::vector<std::string>& columns() const override { return columns_; }

  size_t bytes_read() const override { return size_ - text_.size(); }
  const TableHeader& header() const override { return header_; }
  std::string place_of(const Row& row, size_t) const override { return std::to_string(row.line); }

  bool next(Row& row) override {
    std::string_view line;
    do {
      if (text_.empty()) return false;
      const size_t end = std::min(text_.find('\n'), text_.size());
      line = text_.substr(0, end);
      text_.remove_prefix(std::min(end + 1, text_.size()));
      ++line_;
    } while (line.find_first_not_of(" \t\r") == std::string_view::npos);
    reset_row(row);
    line_text_ = line;
    row.line = line_;
    row.problem.clear();
    depth_ = 0;
    const size_t known = columns_.size();
    if (!nlohmann::json::sax_parse(line.begin(), line.end(), static_cast<Sax*>(this))) {
      if (row.problem.empty()) row.problem = "is not JSON";
      for (; columns_.size() > known; columns_.pop_back())
        index_.erase(columns_.back());  // a broken row adds no column
    }
    return true;
  }

 private:
  // Clears only the fields that the previous row set. A file may have a new key on every line, so clearing all fields
  // of every row could take quadratic time.
  void reset_row(Row& row) {
    if (row_ != &row) row.fields.clear();
    row_ = &row;
    for (const size_t column : touched_) {
      given_[column] = false;
      if (column < row.fields.size()) row.fields[column] = kMissing;
    }
    touched_.clear();
    given_.resize(columns_.size(), false);
    row.fields.resize(columns_.size(), kMissing);
    values_.clear();
  }

  bool problem(std::string what) {
    row_->problem = std::move(what);
    return false;
  }

  bool value(Field field) {
    if (depth_ != 1) return problem("is not an object");
    row_->fields[column_] = field;
    return true;
  }
  bool number(std::string_view text) { return value({values_.emplace_back(text), Field::Kind::plain}); }
  template <typename T>
  bool integer(T number_value) {
    std::array<char, 24> buffer;
    const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number_value);
    return number({buffer.data(), static_cast<size_t>(end - buffer.data())});
  }

  bool null() override { return value({{}, Field::Kind::missing}); }
  bool boolean(bool flag) override { return value({flag ? "true" : "false", Field::Kind::text}); }
  bool number_integer(number_integer_t number_value) override { return integer(number_value); }
  bool number_unsigned(number_unsigned_t number_value) override { return integer(number_value); }
  bool number_float(number_float_t, const string_t& text) override { return number(text); }
  bool string(string_t& text) override {
    if (text.empty()) return null();
    return value({values_.emplace_back(std::move(text)), Field::Kind::text});
  }
  bool binary(binary_t&) override { return problem("holds binary data"); }

  bool start_object(std::size_t) override {
    if (++depth_ > 1) return problem("'" + columns_[column_] + "' holds an object; values must be flat");
    return true;
  }
  bool key(string_t& name) override {
    const auto [found, added] = index_.emplace(name, columns_.size());
    column_ = found->second;
    if (added) {
      columns_.push_back(name);
      row_->fields.push_back(kMissing);
      given_.push_back(false);
    }
    if (given_[column_]) return problem("has the key '" + name + "' twice");
    given_[column_] = true;
    touched_.push_back(column_);
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    return problem(depth_ == 0 ? "is not an object" : "'" + columns_[column_] + "' holds a list; values must be flat");
  }
  bool end_array() override { return true; }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    const std::string_view rest = line_text_.substr(std::min(position == 0 ? 0 : position - 1, line_text_.size()));
    for (const std::string_view word : {"NaN", "Infinity"}) {
      if (rest.starts_with(word))
        return problem("column " + std::to_string(position) + ": holds " + std::string(word) +
                       ", which JSON does not have; write null");
    }
    const std::string text = error.what();  // "[json.exception…] parse error at line 1, column 5: reason"
    const size_t reason = text.find(" - ");
    const std::string why = reason == std::string::npos ? "" : text.substr(reason + 3);
    return problem("column " + std::to_string(position) + ": not JSON" +
                   (why.empty() ? "" : ": " + why.substr(0, why.find("; last read"))));
  }

  std::string_view text_;  // the part that is not yet read
  const size_t size_;
  std::string_view line_text_;
  int64_t line_ = 0;
  const TableHeader header_;  // empty: the keys are the names
  std::vector<std::string> columns_;
  std::unordered_map<std::string, size_t> index_;
  Row* row_ = nullptr;
  std::vector<bool> given_;         // whether this row has a value for each column
  std::vector<size_t> touched_;     // the columns for which given_ is true
  std::deque<std::string> values_;  // backing store for the fields of this row
  size_t column_ = 0;
  int depth_ = 0;
};

}  // namespace

std::unique_ptr<RowReader> read_jsonl(std::string_view text, const std::string& name) {
  return std::make_unique<JsonlReader>(text, name);
}

}  // namespace sinew::data
