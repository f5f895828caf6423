// Fits the encoding of a table on its training rows.
#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "base/check.h"
#include "base/number_text.h"
#include "base/printable.h"
#include "data/encoding.h"

namespace sinew::data {
namespace {

constexpr size_t kMostCategories = 100, kMostDeclaredCategories = 1000;
constexpr int64_t kOftenEnough = 5;  // rows that a value needs, if there are many rows
constexpr char kMissingName[] = "<missing>", kOtherName[] = "<other>";

using Rows = std::vector<int64_t>;

struct MeanAndStd {
  double mean = 0, std = 1;
};

// Gives equal values the std 1: their standard deviation is only rounding error, and dividing by it would turn that
// error into noise.
MeanAndStd moments(const std::vector<double>& values) {
  MeanAndStd result;
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  result.mean = sum / static_cast<double>(values.size());
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  const double deviation = std::sqrt(squares / static_cast<double>(values.size()));
  if (deviation > 1e-12 * std::abs(result.mean)) result.std = deviation;
  return result;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return *std::max_element(values.begin(), middle) / 2 + *middle / 2;
}

std::vector<double> values_in(const Column& column, const Rows& rows) {
  std::vector<double> values;
  for (const int64_t row : rows) {
    const double value = column.numbers[static_cast<size_t>(row)];
    if (!std::isnan(value)) values.push_back(value);
  }
  return values;
}

int64_t count_different(const std::vector<double>& values, bool all) {
  if (all) {
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    return std::unique(sorted.begin(), sorted.end()) - sorted.begin();
  }
  std::unordered_set<double> different;
  for (const double value : values) {
    different.insert(value);
    if (static_cast<int64_t>(different.size()) > kManyValues) break;
  }
  return static_cast<int64_t>(different.size());
}

// The number of training rows of each code, and of missing values at the end.
std::vector<int64_t> counts_of_codes(const Column& column, const Rows& rows) {
  std::vector<int64_t> counts(column.categories.size() + 1);
  for (const int64_t row : rows) {
    const int32_t code = column.codes[static_cast<size_t>(row)];
    ++counts[code < 0 ? column.categories.size() : static_cast<size_t>(code)];
  }
  return counts;
}

ColumnStats stats_of(const Column& column, const Rows& rows) {
  ColumnStats stats{column.name, column.format.kind, static_cast<int64_t>(rows.size())};
  if (!column.categorical) {
    const std::vector<double> values = values_in(column, rows);
    stats.missing = stats.rows - static_cast<int64_t>(values.size());
    stats.whole = std::all_of(values.begin(), values.end(), [](double value) { return value == std::floor(value); });
    stats.zero_or_one =
        std::all_of(values.begin(), values.end(), [](double value) { return value == 0 || value == 1; });
    stats.different = count_different(values, stats.whole && names_identifier(column.name));
    return stats;
  }
  const std::vector<int64_t> counts = counts_of_codes(column, rows);
  stats.missing = counts.back();
  double words = 0;
  for (size_t code = 0; code + 1 < counts.size(); ++code) {
    if (counts[code] == 0) continue;
    ++stats.different;
    words += static_cast<double>(count_words(column.categories[code]));
  }
  if (stats.different > 0) stats.words_per_value = words / static_cast<double>(stats.different);
  return stats;
}

// A value of a column, and how many training rows have it.
struct ValueCount {
  std::string name;
  int64_t count = 0;
};

std::vector<ValueCount> value_counts(const Column& column, const Rows& rows) {
  std::vector<ValueCount> values;
  if (column.categorical) {
    const std::vector<int64_t> counts = counts_of_codes(column, rows);
    for (size_t code = 0; code + 1 < counts.size(); ++code) {
      if (counts[code] > 0) values.push_back({column.categories[code], counts[code]});
    }
    return values;
  }
  std::map<double, int64_t> counts;
  for (const double value : values_in(column, rows)) ++counts[value];
  for (const auto& [value, count] : counts) values.push_back({number_text(value), count});
  return values;
}

// Names a word of the column that looks like a number if half of its different words do; else returns "".
std::string like_numbers(const Column& column) {
  const auto count = std::ranges::count_if(column.categories, resembles_number);
  if (count == 0 || static_cast<size_t>(count) * 2 < column.categories.size()) return "";
  return "; its cells look like numbers, such as '" +
         printable_start(*std::ranges::find_if(column.categories, resembles_number)) +
         "', but only plain numbers, percent and currencies are read as numbers";
}

class Fitter {
 public:
  Fitter(const Table& table, const Rows& rows, bool normalize) : table_(table), rows_(rows), normalize_(normalize) {}

  void fit(const Candidate& candidate) {
    const Column* column = table_.find(candidate.name);
    SINEW_CHECK(column != nullptr, candidate.name);
    const ColumnStats stats = stats_of(*column, rows_);
    KindChoice choice = judge_kind(stats, candidate.declared, candidate.listed);
    if (choice.reason.empty()) choice.reason = column->reason;
    const bool has_values = choice.kind != ColumnKind::empty && choice.kind != ColumnKind::constant;
    if (has_values && !column->doubt.empty()) choice.reason += "; " + column->doubt;
    const bool words = choice.kind == ColumnKind::identifier || choice.kind == ColumnKind::text;
    if (words && column->doubt.empty()) choice.reason += like_numbers(*column);
    if (column->format.kind == CellKind::number && !column->format.unit.empty())
      choice.reason += ", written with " + column->format.unit;
    if (!is_left_out(choice.kind)) {
      Feature feature;
      feature.name = candidate.name;
      feature.kind = choice.kind;
      feature.cells = column->format;
      fit_feature(*column, candidate.declared.has_value(), feature, choice.reason);
      if (stats.missing > 0) feature.missing_index = add_input(feature.name + '=' + kMissingName);
      fitted_.encoding.features.push_back(std::move(feature));
    }
    fitted_.facts.push_back({candidate.name, std::string(to_string(choice.kind)), choice.reason, stats.missing});
  }

  Fitted take() { return std::move(fitted_); }

 private:
  int32_t add_input(std::string name) {
    fitted_.encoding.names.push_back(std::move(name));
    return static_cast<int32_t>(fitted_.encoding.names.size() - 1);
  }

  void fit_feature(const Column& column, bool declared, Feature& feature, std::string& reason) {
    switch (feature.kind) {
      case ColumnKind::date: return fit_date(column, feature);
      case ColumnKind::text:
        feature.numeric_index = static_cast<int32_t>(fitted_.encoding.names.size());
        for (int32_t i = 0; i < kTextInputs; ++i) add_input(feature.name + '#' + std::to_string(i));
        return;
      case ColumnKind::category:
      case ColumnKind::code: return fit_values(column, declared, feature, reason);
      default: return fit_number(column, feature);
    }
  }

  void fit_number(const Column& column, Feature& feature) {
    std::vector<double> values = values_in(column, rows_);
    const MeanAndStd found = moments(values);
    feature.center = normalize_ ? found.mean : 0;
    feature.std = normalize_ ? found.std : 1;
    feature.fill = median(std::move(values));
    feature.numeric_index = add_input(feature.name);
  }

  void fit_date(const Column& column, Feature& feature) {
    std::vector<double> seconds = values_in(column, rows_), days, years;
    for (const double value : seconds) {
      days.push_back(value / kSecondsOfDay);
      float parts[8];
      encode_date(Feature{}, value, parts);
      years.push_back(parts[0]);
      feature.hours = feature.hours || value != std::floor(value / kSecondsOfDay) * kSecondsOfDay;
    }
    const MeanAndStd of_days = moments(days), of_years = moments(years);
    if (normalize_) {
      feature.center = of_days.mean;
      feature.std = of_days.std;
      feature.year_center = of_years.mean;
      feature.year_std = of_years.std;
    }
    feature.fill = median(std::move(seconds));
    feature.numeric_index = add_input(feature.name + ".year");
    for (const char* part : {".days", ".month_sin", ".month_cos", ".weekday_sin", ".weekday_cos"})
      add_input(feature.name + part);
    if (!feature.hours) return;
    for (const char* part : {".hour_sin", ".hour_cos"}) add_input(feature.name + part);
  }

  // Gives an input to each frequent value. The others share one.
  void fit_values(const Column& column, bool declared, Feature& feature, std::string& reason) {
    std::vector<ValueCount> values = value_counts(column, rows_);
    std::sort(values.begin(), values.end(), [](const ValueCount& a, const ValueCount& b) {
      return a.count != b.count ? a.count > b.count : a.name < b.name;
    });
    const int64_t least = std::clamp<int64_t>(static_cast<int64_t>(rows_.size()) / 100, 1, kOftenEnough);
    const size_t most = declared ? kMostDeclaredCategories : kMostCategories;
    std::vector<std::string> kept;
    int64_t rare_values = 0, rare_rows = 0;
    for (const ValueCount& value : values) {
      if (value.count >= least && kept.size() < most) {
        kept.push_back(value.name);
      } else {
        ++rare_values;
        rare_rows += value.count;
      }
    }
    sort_names(kept);
    for (const std::string& name : kept) feature.category_index[name] = add_input(feature.name + '=' + name);
    if (rare_values == 0) return;
    feature.other_index = add_input(feature.name + '=' + kOtherName);
    reason +=
        "; " + with_commas(rare_values) + " rare ones, of " + with_commas(rare_rows) + " rows, share " + kOtherName;
  }

  const Table& table_;
  const Rows& rows_;
  const bool normalize_;
  Fitted fitted_;
};

}  // namespace

Fitted fit_encoding(const Table& table, const std::vector<int64_t>& rows, const std::vector<Candidate>& candidates,
                    bool normalize) {
  Fitter fitter(table, rows, normalize);
  for (const Candidate& candidate : candidates) fitter.fit(candidate);
  return fitter.take();
}

}  // namespace sinew::data
