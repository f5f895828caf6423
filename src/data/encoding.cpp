#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/error.h"
#include "data/files.h"
#include "data/rows.h"
#include "data/table.h"

namespace sinew::data {
namespace {

constexpr int64_t kMaxCategories = 1000;
constexpr char kMissingName[] = "<missing>";

[[noreturn]] void refuse_empty_column(const Table& table, const std::string& column) {
  throw Error("DATA_BAD_COLUMN", table.name + ": column '" + column + "' has no value in any training row",
              "leave it out with data.columns.ignore: [" + column + "]");
}

void fit_numeric(const Table& table, const Column& column, const std::vector<int64_t>& rows, bool normalize,
                 Feature& feature) {
  double sum = 0, squares = 0;
  int64_t given = 0;
  for (const int64_t row : rows) {
    const double value = column.numbers[static_cast<size_t>(row)];
    if (std::isnan(value)) continue;
    sum += value;
    ++given;
  }
  if (given == 0) refuse_empty_column(table, column.name);
  feature.mean = sum / static_cast<double>(given);
  for (const int64_t row : rows) {
    const double value = column.numbers[static_cast<size_t>(row)];
    if (!std::isnan(value)) squares += (value - feature.mean) * (value - feature.mean);
  }
  const double deviation = std::sqrt(squares / static_cast<double>(given));
  // The standard deviation of a constant column is only rounding error; dividing by it would turn that error into
  // noise.
  const bool constant = !(deviation > 1e-12 * std::abs(feature.mean));
  feature.center = normalize ? feature.mean : 0;
  feature.std = normalize && !constant ? deviation : 1;
  // 0 means that there is an indicator; the caller sets its index
  feature.missing_index = given < static_cast<int64_t>(rows.size()) ? 0 : -1;
}

// The categories that occur in the training rows, sorted.
std::vector<std::string> fit_categorical(const Table& table, const Column& column, const std::vector<int64_t>& rows,
                                         bool declared, Feature& feature) {
  std::vector<bool> seen(column.categories.size());
  for (const int64_t row : rows) {
    const int32_t code = column.codes[static_cast<size_t>(row)];
    if (code < 0) {
      feature.missing_index = 0;
    } else {
      seen[static_cast<size_t>(code)] = true;
    }
  }
  std::vector<std::string> categories;
  for (size_t code = 0; code < seen.size(); ++code) {
    if (seen[code]) categories.push_back(column.categories[code]);
  }
  const auto count = static_cast<int64_t>(categories.size()), all = static_cast<int64_t>(rows.size());
  if (count > kMaxCategories || (!declared && count > 10 && count > all / 2)) {
    throw Error("DATA_TOO_MANY_CATEGORIES",
                table.name + ": column '" + column.name + "' has " + with_commas(count) + " different words in " +
                    with_commas(all) + " training rows: too many categories to learn from",
                "leave it out with data.columns.ignore: [" + column.name + "]");
  }
  if (count == 0) refuse_empty_column(table, column.name);
  sort_names(categories);
  return categories;
}

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

Encoding fit_encoding(const Table& table, const std::vector<int64_t>& rows, const std::vector<std::string>& features,
                      const std::vector<std::string>& declared, bool normalize) {
  Encoding encoding;
  const auto add_column = [&](std::string name) {
    encoding.names.push_back(std::move(name));
    return static_cast<int32_t>(encoding.names.size() - 1);
  };
  for (const std::string& name : features) {
    const Column* column = table.find(name);
    SINEW_CHECK(column != nullptr, name);
    Feature feature;
    feature.name = name;
    feature.categorical = column->categorical;
    if (column->categorical) {
      const bool by_user = std::find(declared.begin(), declared.end(), name) != declared.end();
      for (const std::string& category : fit_categorical(table, *column, rows, by_user, feature)) {
        feature.category_index[category] = add_column(name + '=' + category);
      }
    } else {
      fit_numeric(table, *column, rows, normalize, feature);
      feature.numeric_index = add_column(name);
    }
    if (feature.missing_index >= 0) feature.missing_index = add_column(name + '=' + kMissingName);
    encoding.features.push_back(std::move(feature));
  }
  return encoding;
}

EncodedRows encode(const Table& table, const std::vector<int64_t>& rows, const Encoding& encoding) {
  size_t numbers = 0, indicators = 0;
  for (const Feature& feature : encoding.features) {
    numbers += feature.numeric_index >= 0 ? 1 : 0;
    indicators += feature.has_indicator() ? 1 : 0;
  }
  EncodedRows encoded;
  encoded.numbers.resize(rows.size() * numbers);
  encoded.one_hot.resize(rows.size() * indicators);
  size_t number = 0, indicator = 0;
  for (const Feature& feature : encoding.features) {
    const Column* column = table.find(feature.name);
    SINEW_CHECK(column != nullptr && column->categorical == feature.categorical, feature.name);
    std::vector<int32_t> index_of_code;  // a category that train does not have counts as missing
    for (const std::string& category : column->categories) {
      const auto found = feature.category_index.find(category);
      index_of_code.push_back(found == feature.category_index.end() ? feature.missing_index : found->second);
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto row = static_cast<size_t>(rows[i]);
      int32_t hot = -1;
      if (feature.categorical) {
        const int32_t code = column->codes[row];
        hot = code < 0 ? feature.missing_index : index_of_code[static_cast<size_t>(code)];
      } else {
        const double value = column->numbers[row];
        const bool missing = std::isnan(value);
        if (missing) hot = feature.missing_index;
        encoded.numbers[i * numbers + number] = feature.encode(missing ? feature.mean : value);
      }
      if (feature.has_indicator()) encoded.one_hot[i * indicators + indicator] = hot;
    }
    number += feature.numeric_index >= 0 ? 1 : 0;
    indicator += feature.has_indicator() ? 1 : 0;
  }
  return encoded;
}

RowLayout::RowLayout(const Encoding& encoding) {
  for (const Feature& feature : encoding.features) {
    if (feature.numeric_index >= 0) numeric_.push_back(feature.numeric_index);
    indicators_ += feature.has_indicator() ? 1 : 0;
  }
}

void RowLayout::unpack(const EncodedRows& rows, size_t row, float* out) const {
  for (size_t i = 0; i < numeric_.size(); ++i) out[numeric_[i]] = rows.numbers[row * numeric_.size() + i];
  for (size_t i = 0; i < indicators_; ++i) {
    if (const int32_t hot = rows.one_hot[row * indicators_ + i]; hot >= 0) out[hot] = 1.0F;
  }
}

}  // namespace sinew::data
