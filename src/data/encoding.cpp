#include "data/encoding.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/number_text.h"
#include "base/printable.h"
#include "data/files.h"
#include "data/rows.h"

namespace sinew::data {
namespace {

constexpr size_t kNumbersOfDate = 6, kNumbersOfTime = 2;

// Counts the values of one column that train does not have.
struct Unseen {
  int64_t count = 0;
  std::string first;
  void add(const std::string& value) {
    if (count++ == 0) first = value;
  }
};

// Encodes the values of one feature for all rows, column by column.
class FeatureEncoder {
 public:
  FeatureEncoder(const Table& table, const std::vector<int64_t>& rows, const Feature& feature)
      : rows_(rows), feature_(feature), column_(table.find(feature.name)) {
    SINEW_CHECK(column_ != nullptr, feature.name);
    // The members below read codes or numbers, depending on the kind, and a column has only one of them.
    SINEW_CHECK(can_be_made_of(feature.kind, column_->format.kind), feature.name, to_string(feature.kind));
    if (feature.kind == ColumnKind::category) {
      for (const std::string& category : column_->categories) places_.push_back(place_of(category));
    }
  }

  // Writes the place of the indicator that is 1, or -1, to every `stride`-th element.
  void indicators(int32_t* out, size_t stride) {
    for (const int64_t row : rows_) {
      *out = feature_.by_value() ? value_place(row) : (is_missing_in(row) ? feature_.missing_index : -1);
      out += stride;
    }
  }

  void numbers(float* out, size_t stride) {
    for (const int64_t row : rows_) {
      const double value = column_->numbers[static_cast<size_t>(row)];
      const double known = std::isnan(value) ? feature_.fill : value;
      filled_ += std::isnan(value) ? 1 : 0;
      if (feature_.kind == ColumnKind::date) {
        encode_date(feature_, known, out);
      } else {
        *out = static_cast<float>((known - feature_.center) / feature_.std);
      }
      out += stride;
    }
  }

  EncodedRows::Texts texts() const {
    EncodedRows::Texts texts;
    for (const int64_t row : rows_) {
      const int32_t code = column_->codes[static_cast<size_t>(row)];
      if (code >= 0) {
        const std::vector<uint8_t> words = text_inputs(column_->categories[static_cast<size_t>(code)]);
        texts.words.insert(texts.words.end(), words.begin(), words.end());
      }
      texts.ends.push_back(texts.words.size());
    }
    return texts;
  }

  // What happened to values that train does not have; "" if there were none.
  std::string note() const {
    const std::string name = "column '" + printable_start(feature_.name) + "': ";
    std::string text;
    if (unseen_.count > 0) {
      const bool one = unseen_.count == 1;
      text = with_commas(unseen_.count) + (one ? " value " : " values ") +
             (feature_.other_index >= 0 ? (one ? "is" : "are") + std::string(" rare in the training rows or new")
                                        : (one ? "does" : "do") + std::string(" not occur in the training rows")) +
             ", the first: '" + printable_start(unseen_.first) + "'; such values " +
             (feature_.other_index >= 0     ? "count as <other>"
              : feature_.missing_index >= 0 ? "count as missing"
                                            : "set no input");
    }
    if (filled_ > 0 && feature_.missing_index < 0)
      text += (text.empty() ? "" : "; ") + with_commas(filled_) + (filled_ == 1 ? " value is" : " values are") +
              " missing, but none in the training rows; " +
              (feature_.by_value() ? "a missing value sets no input" : "the median is used");
    return text.empty() ? "" : name + text;
  }

 private:
  int32_t place_of(const std::string& value) const {
    const auto found = feature_.category_index.find(value);
    return found == feature_.category_index.end() ? kUnknown : found->second;
  }

  bool is_missing_in(int64_t row) const {
    const auto i = static_cast<size_t>(row);
    return column_->categorical ? column_->codes[i] < 0 : std::isnan(column_->numbers[i]);
  }

  int32_t value_place(int64_t row) {
    if (is_missing_in(row)) {
      ++filled_;
      return feature_.missing_index;
    }
    const auto i = static_cast<size_t>(row);
    const bool word = column_->categorical;
    const int32_t place = word ? places_[static_cast<size_t>(column_->codes[i])] : number_place(column_->numbers[i]);
    if (place != kUnknown) return place;
    unseen_.add(word ? column_->categories[static_cast<size_t>(column_->codes[i])] : number_text(column_->numbers[i]));
    return feature_.other_index >= 0 ? feature_.other_index : feature_.missing_index;
  }

  int32_t number_place(double value) {
    const auto [found, added] = number_places_.emplace(value, 0);
    if (added) found->second = place_of(number_text(value));
    return found->second;
  }

  static constexpr int32_t kUnknown = -2;
  const std::vector<int64_t>& rows_;
  const Feature& feature_;
  const Column* column_;
  std::vector<int32_t> places_;                        // category: of each value of the column
  std::unordered_map<double, int32_t> number_places_;  // code: of each number
  Unseen unseen_;
  int64_t filled_ = 0;
};

}  // namespace

void sort_names(std::vector<std::string>& names) {
  const bool numbers = std::all_of(names.begin(), names.end(), [](const std::string& name) {
    const auto number = parse_number(name);  // "-nan" parses as a number, but cannot be ordered
    return number && !std::isnan(*number);
  });
  std::sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    if (!numbers || *parse_number(a) == *parse_number(b)) return a < b;
    return *parse_number(a) < *parse_number(b);
  });
}

size_t Feature::numeric_columns() const {
  if (by_value() || kind == ColumnKind::text) return 0;
  if (kind != ColumnKind::date) return 1;
  return kNumbersOfDate + (hours ? kNumbersOfTime : 0);
}

EncodedRows encode(const Table& table, const std::vector<int64_t>& rows, const Encoding& encoding) {
  size_t numbers = 0, indicators = 0;
  for (const Feature& feature : encoding.features) {
    numbers += feature.numeric_columns();
    indicators += feature.has_indicator() ? 1 : 0;
  }
  EncodedRows encoded;
  encoded.numbers.resize(rows.size() * numbers);
  encoded.one_hot.resize(rows.size() * indicators);
  size_t number = 0, indicator = 0;
  for (const Feature& feature : encoding.features) {
    FeatureEncoder encoder(table, rows, feature);
    if (feature.kind == ColumnKind::text) encoded.texts.push_back(encoder.texts());
    if (feature.numeric_columns() > 0) encoder.numbers(encoded.numbers.data() + number, numbers);
    if (feature.has_indicator()) encoder.indicators(encoded.one_hot.data() + indicator++, indicators);
    number += feature.numeric_columns();
    if (std::string note = encoder.note(); !note.empty()) encoded.notes.push_back(std::move(note));
  }
  return encoded;
}

RowLayout::RowLayout(const Encoding& encoding) {
  for (const Feature& feature : encoding.features) {
    for (size_t i = 0; i < feature.numeric_columns(); ++i)
      numeric_.push_back(feature.numeric_index + static_cast<int32_t>(i));
    if (feature.kind == ColumnKind::text) texts_.push_back(feature.numeric_index);
    indicators_ += feature.has_indicator() ? 1 : 0;
  }
}

void RowLayout::unpack(const EncodedRows& rows, size_t row, float* out) const {
  for (size_t i = 0; i < numeric_.size(); ++i) out[numeric_[i]] = rows.numbers[row * numeric_.size() + i];
  for (size_t i = 0; i < indicators_; ++i) {
    if (const int32_t hot = rows.one_hot[row * indicators_ + i]; hot >= 0) out[hot] = 1.0F;
  }
  for (size_t i = 0; i < texts_.size(); ++i) {
    const EncodedRows::Texts& text = rows.texts[i];
    for (uint64_t word = row == 0 ? 0 : text.ends[row - 1]; word < text.ends[row]; ++word)
      out[texts_[i] + text.words[word]] += 1.0F;
  }
}

}  // namespace sinew::data
