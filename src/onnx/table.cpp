// Encodes the columns of a table by operators of ONNX.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>

#include "base/error.h"
#include "onnx/date.h"

namespace sinew::onnx {
namespace {

using data::PreparedColumn;
using Kind = PreparedColumn::Kind;
using Cells = PreparedColumn::Cells;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// All ways to write a word in upper and lower case.
void add_cases(const std::string& word, float value, std::map<std::string, float>& values) {
  for (size_t mask = 0; mask < (size_t{1} << word.size()); ++mask) {
    std::string written = word;
    for (size_t i = 0; i < word.size(); ++i) {
      if ((mask >> i & 1) != 0) written[i] = static_cast<char>(std::toupper(static_cast<unsigned char>(word[i])));
    }
    values[written] = value;
  }
}

class TableGraph {
 public:
  TableGraph(Builder& builder, const std::vector<PreparedColumn>& columns, int64_t width)
      : builder_(builder), columns_(columns), width_(width) {}

  std::string build() {
    for (const PreparedColumn& column : columns_) inputs_.push_back(input_of(column));
    add_numbers();
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].kind == Kind::date) add_date(columns_[i], inputs_[i]);
      if (columns_[i].kind == Kind::value) add_values(columns_[i], inputs_[i]);
    }
    return in_order();
  }

 private:
  static Element element_of_cells(const PreparedColumn& column) {
    return column.cells == Cells::word || column.cells == Cells::boolean ? Element::text : Element::f64;
  }

  static std::string help_of(const PreparedColumn& column) {
    switch (column.cells) {
      case Cells::number: return "a number; NaN: missing";
      case Cells::boolean: return "true or false, yes or no, 1 or 0; an empty string: missing";
      case Cells::date: return "seconds since 1970-01-01 00:00 UTC; NaN: missing";
      case Cells::word: break;
    }
    return "a word; an empty string: missing";
  }

  std::string input_of(const PreparedColumn& column) {
    if (column.kind == Kind::text)
      throw Error("EXPORT_UNSUPPORTED",
                  "the column '" + column.name + "' is free text, and no operator of ONNX computes its encoding",
                  "train without it (data.columns.ignore), or export with --to safetensors");
    return builder_.input(column.name, element_of_cells(column), {}, help_of(column));
  }

  std::string integer(int64_t value) { return builder_.constant(integers({}, {value})); }
  std::string real(double value) { return builder_.constant(doubles({}, {value})); }
  // [batch] to [batch, 1]
  std::string as_column(const std::string& value) { return onnx::as_column(builder_, value); }

  // The numbers of a column as doubles [batch]; NaN: missing.
  std::string numbers_of(const PreparedColumn& column, const std::string& input) {
    if (column.cells != Cells::boolean) return input;
    std::map<std::string, float> values;
    for (const char* word : {"true", "yes", "t", "y", "on", "1"}) add_cases(word, 1, values);
    for (const char* word : {"false", "no", "f", "n", "off", "0"}) add_cases(word, 0, values);
    std::vector<std::string> keys;
    std::vector<float> made;
    for (const auto& [key, value] : values) {
      keys.push_back(key);
      made.push_back(value);
    }
    const std::string truth = builder_.add(
        "LabelEncoder", {input}, {{"keys_strings", keys}, {"values_floats", made}, {"default_float", kNaN}}, kMlDomain);
    return builder_.cast(truth, Element::f64);
  }

  // Says that the block `value` [batch, n] holds these inputs of the model, in this order.
  void add_block(const std::string& value, const std::vector<int64_t>& places) {
    blocks_.push_back(value);
    for (const int64_t place : places) {
      if (place < 0 || place >= width_ || !order_.emplace(place, filled_).second)
        throw Error("DATA_BAD_MODEL_INFO", "two columns of the model's table have the same input",
                    "take model.json as the training wrote it");
      ++filled_;
    }
  }

  // All columns of numbers together: one operator handles them at once.
  void add_numbers() {
    std::vector<std::string> parts;
    std::vector<double> fill, center, std;
    std::vector<int64_t> places, flagged, flags;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const PreparedColumn& column = columns_[i];
      if (column.kind != Kind::number) continue;
      if (column.missing_at >= 0) {
        flagged.push_back(static_cast<int64_t>(parts.size()));
        flags.push_back(column.missing_at);
      }
      parts.push_back(as_column(numbers_of(column, inputs_[i])));
      fill.push_back(column.fill);
      center.push_back(column.center);
      std.push_back(column.std);
      places.push_back(column.number_at);
    }
    if (parts.empty()) return;
    const Shape row = {1, static_cast<int64_t>(parts.size())};
    const std::string all = builder_.add("Concat", parts, {{"axis", int64_t{1}}});
    const std::string missing = builder_.add("IsNaN", {all});
    const std::string known = builder_.add("Where", {missing, builder_.constant(doubles(row, fill)), all});
    const std::string centered = builder_.add("Sub", {known, builder_.constant(doubles(row, center))});
    const std::string scaled = builder_.add("Div", {centered, builder_.constant(doubles(row, std))});
    add_block(builder_.cast(scaled, Element::f32), places);
    if (flagged.empty()) return;
    const Shape count = {static_cast<int64_t>(flagged.size())};
    const std::string chosen =
        builder_.add("Gather", {builder_.cast(missing, Element::f32), builder_.constant(integers(count, flagged))},
                     {{"axis", int64_t{1}}});
    add_block(chosen, flags);
  }

  void add_date(const PreparedColumn& column, const std::string& input) {
    const std::string missing = builder_.add("IsNaN", {input});
    const std::string seconds = builder_.add("Where", {missing, real(column.fill), input});
    std::vector<int64_t> places;
    for (int64_t i = 0; i < (column.hours ? 8 : 6); ++i) places.push_back(column.number_at + i);
    add_block(date_inputs(builder_, column, seconds), places);
    if (column.missing_at >= 0) add_block(as_column(builder_.cast(missing, Element::f32)), {column.missing_at});
  }

  // One input for each frequent value; the input of the others, or else of missing values, if there is one.
  void add_values(const PreparedColumn& column, const std::string& input) {
    std::vector<int64_t> places;
    for (const auto& [value, place] : column.places) {
      if (places.empty() || places.back() != place) places.push_back(place);
    }
    for (const int64_t place : {column.other_at, column.missing_at}) {
      if (place >= 0) places.push_back(place);
    }
    if (places.empty()) return;
    const auto number_of = [&](int64_t place) {  // of a place in this block; -1: no input is 1
      const auto found = std::find(places.begin(), places.end(), place);
      return found == places.end() ? int64_t{-1} : found - places.begin();
    };
    const int64_t missing = number_of(column.missing_at);
    const int64_t other = column.other_at >= 0 ? number_of(column.other_at) : missing;
    std::string index;
    if (column.cells == Cells::word) {
      std::vector<std::string> keys;
      std::vector<int64_t> numbers;
      for (const auto& [value, place] : column.places) {
        keys.push_back(value);
        numbers.push_back(number_of(place));
      }
      for (const std::string& word : data::missing_words()) {
        if (std::find(keys.begin(), keys.end(), word) != keys.end()) continue;
        keys.push_back(word);
        numbers.push_back(missing);
      }
      index = builder_.add("LabelEncoder", {input},
                           {{"keys_strings", keys}, {"values_int64s", numbers}, {"default_int64", other}}, kMlDomain);
    } else {
      index = index_of_number(column, numbers_of(column, input), number_of, missing, other);
    }
    std::vector<int64_t> every;
    for (size_t i = 0; i < places.size(); ++i) every.push_back(static_cast<int64_t>(i));
    const std::string hot = builder_.add(
        "Equal", {as_column(index), builder_.constant(integers({1, static_cast<int64_t>(every.size())}, every))});
    add_block(builder_.cast(hot, Element::f32), places);
  }

  // A number names a value if it equals it exactly.
  template <typename NumberOf>
  std::string index_of_number(const PreparedColumn& column, const std::string& number, const NumberOf& number_of,
                              int64_t missing, int64_t other) {
    std::vector<double> keys = {kNaN};  // no number equals it, so its index stands for all others
    std::vector<int64_t> numbers = {other};
    for (const auto& [value, place] : column.places) {
      double key = 0;
      const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), key);
      if (code != std::errc() || end != value.data() + value.size()) continue;  // no number has this text
      keys.push_back(key);
      numbers.push_back(number_of(place));
    }
    const auto count = static_cast<int64_t>(keys.size());
    const std::string equal = builder_.add("Equal", {as_column(number), builder_.constant(doubles({1, count}, keys))});
    const std::string found =
        builder_.add("ArgMax", {builder_.cast(equal, Element::f32)}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
    const std::string known =
        builder_.add("Gather", {builder_.constant(integers({count}, numbers)), found}, {{"axis", int64_t{0}}});
    return builder_.add("Where", {builder_.add("IsNaN", {number}), integer(missing), known});
  }

  // Joins the blocks and puts the inputs into the order of the model.
  std::string in_order() {
    if (filled_ != width_)
      throw Error("DATA_BAD_MODEL_INFO", "no column of the table makes some inputs of the model",
                  "take model.json as the training wrote it");
    const std::string joined =
        blocks_.size() == 1 ? blocks_.front() : builder_.add("Concat", blocks_, {{"axis", int64_t{1}}});
    std::vector<int64_t> from;
    for (const auto& [place, at] : order_) from.push_back(at);
    if (std::is_sorted(from.begin(), from.end())) return joined;
    return builder_.add("Gather", {joined, builder_.constant(integers({width_}, from))}, {{"axis", int64_t{1}}});
  }

  Builder& builder_;
  const std::vector<PreparedColumn>& columns_;
  int64_t width_, filled_ = 0;
  std::vector<std::string> inputs_, blocks_;
  std::map<int64_t, int64_t> order_;  // of each input of the model: where it is in the joined blocks
};

}  // namespace

std::string table_inputs(Builder& builder, const std::vector<data::PreparedColumn>& columns, int64_t width) {
  return TableGraph(builder, columns, width).build();
}

}  // namespace sinew::onnx
