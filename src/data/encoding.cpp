#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/error.h"
#include "data/files.h"
#include "data/rows.h"
#include "data/table.h"

namespace sinew::data {
namespace {

constexpr int64_t kMostCategories = 1000;
constexpr char kMissingName[] = "<missing>";

void learn_numbers(const Table& table, const Column& column, const std::vector<int64_t>& rows, bool normalize,
                   Feature& feature) {
  double sum = 0, squares = 0;
  int64_t given = 0;
  for (const int64_t row : rows) {
    const double value = column.numbers[static_cast<size_t>(row)];
    if (std::isnan(value)) continue;
    sum += value;
    ++given;
  }
  if (given == 0) {
    throw Error(table.name + ": column '" + column.name + "' has no value in any training row",
                "leave it out with data.columns.ignore: [" + column.name + "]");
  }
  feature.mean = sum / static_cast<double>(given);
  for (const int64_t row : rows) {
    const double value = column.numbers[static_cast<size_t>(row)];
    if (!std::isnan(value)) squares += (value - feature.mean) * (value - feature.mean);
  }
  const double deviation = std::sqrt(squares / static_cast<double>(given));
  // A constant column: what is left is rounding, and dividing by it would make noise of it.
  const bool constant = !(deviation > 1e-12 * std::abs(feature.mean));
  feature.center = normalize ? feature.mean : 0;
  feature.std = normalize && !constant ? deviation : 1;
  feature.missing_at = given < static_cast<int64_t>(rows.size()) ? 0 : -1;  // placed by the caller
}

// Categories of the training rows, sorted by name; numbers by value.
std::vector<std::string> learn_categories(const Table& table, const Column& column, const std::vector<int64_t>& rows,
                                          bool chosen, Feature& feature) {
  std::vector<bool> seen(column.categories.size());
  for (const int64_t row : rows) {
    const int32_t code = column.codes[static_cast<size_t>(row)];
    if (code < 0) {
      feature.missing_at = 0;
    } else {
      seen[static_cast<size_t>(code)] = true;
    }
  }
  std::vector<std::string> categories;
  for (size_t code = 0; code < seen.size(); ++code) {
    if (seen[code]) categories.push_back(column.categories[code]);
  }
  const auto count = static_cast<int64_t>(categories.size()), all = static_cast<int64_t>(rows.size());
  if (count > kMostCategories || (!chosen && count > 10 && count > all / 2)) {
    throw Error(table.name + ": column '" + column.name + "' has " + with_commas(count) + " different words in " +
                    with_commas(all) + " training rows: too many to tell apart",
                "leave it out with data.columns.ignore: [" + column.name + "]");
  }
  if (count == 0) {
    throw Error(table.name + ": column '" + column.name + "' has no value in any training row",
                "leave it out with data.columns.ignore: [" + column.name + "]");
  }
  sort_names(categories);
  return categories;
}

}  // namespace

void sort_names(std::vector<std::string>& names) {
  const bool numbers = std::all_of(names.begin(), names.end(), [](const std::string& name) {
    const auto number = parse_number(name);  // "-nan" is one, too, but has no place among them
    return number && !std::isnan(*number);
  });
  std::sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    if (!numbers || *parse_number(a) == *parse_number(b)) return a < b;
    return *parse_number(a) < *parse_number(b);
  });
}

Encoding learn_encoding(const Table& table, const std::vector<int64_t>& rows, const std::vector<std::string>& features,
                        const std::vector<std::string>& chosen, bool normalize) {
  Encoding encoding;
  const auto place = [&](std::string name) {
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
      const bool declared = std::find(chosen.begin(), chosen.end(), name) != chosen.end();
      for (const std::string& category : learn_categories(table, *column, rows, declared, feature)) {
        feature.places[category] = place(name + '=' + category);
      }
    } else {
      learn_numbers(table, *column, rows, normalize, feature);
      feature.number_at = place(name);
    }
    if (feature.missing_at >= 0) feature.missing_at = place(name + '=' + kMissingName);
    encoding.features.push_back(std::move(feature));
  }
  return encoding;
}

EncodedRows encode(const Table& table, const std::vector<int64_t>& rows, const Encoding& encoding) {
  size_t numbers = 0, ones = 0;
  for (const Feature& feature : encoding.features) {
    numbers += feature.number_at >= 0 ? 1 : 0;
    ones += feature.sets_ones() ? 1 : 0;
  }
  EncodedRows encoded;
  encoded.numbers.resize(rows.size() * numbers);
  encoded.ones.resize(rows.size() * ones);
  size_t number = 0, one = 0;
  for (const Feature& feature : encoding.features) {
    const Column* column = table.find(feature.name);
    SINEW_CHECK(column != nullptr && column->categorical == feature.categorical, feature.name);
    std::vector<int32_t> places;  // of this table's codes; what train never saw counts as missing
    for (const std::string& category : column->categories) {
      const auto found = feature.places.find(category);
      places.push_back(found == feature.places.end() ? feature.missing_at : found->second);
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto row = static_cast<size_t>(rows[i]);
      int32_t place = -1;
      if (feature.categorical) {
        const int32_t code = column->codes[row];
        place = code < 0 ? feature.missing_at : places[static_cast<size_t>(code)];
      } else {
        const double value = column->numbers[row];
        const bool missing = std::isnan(value);
        if (missing) place = feature.missing_at;
        encoded.numbers[i * numbers + number] = feature.encode(missing ? feature.mean : value);
      }
      if (feature.sets_ones()) encoded.ones[i * ones + one] = place;
    }
    number += feature.number_at >= 0 ? 1 : 0;
    one += feature.sets_ones() ? 1 : 0;
  }
  return encoded;
}

}  // namespace sinew::data
