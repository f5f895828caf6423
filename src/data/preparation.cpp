// Says how samples are prepared for a trained model, so that another program can prepare them in the same way.
#include <algorithm>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "data/inference.h"

namespace sinew::data {
namespace {

using nlohmann::json;

constexpr const char* kDateFormNames[] = {"iso", "day_first", "month_first", "named", "compact"};

PreparedColumn::Kind kind_for_export(const Feature& feature) {
  if (feature.by_value()) return PreparedColumn::Kind::value;
  if (feature.kind == ColumnKind::text) return PreparedColumn::Kind::text;
  return feature.kind == ColumnKind::date ? PreparedColumn::Kind::date : PreparedColumn::Kind::number;
}

PreparedColumn prepared_column(const Feature& feature) {
  PreparedColumn column;
  column.name = feature.name;
  column.kind = kind_for_export(feature);
  column.cells = static_cast<PreparedColumn::Cells>(feature.cells.kind);
  column.decimal = feature.cells.numbers.decimal;
  column.thousands = feature.cells.numbers.thousands;
  column.unit = feature.cells.unit;
  if (feature.cells.kind == CellKind::date) column.date_form = kDateFormNames[static_cast<size_t>(feature.cells.date)];
  column.fill = feature.fill;
  column.center = feature.center;
  column.std = feature.std;
  column.year_center = feature.year_center;
  column.year_std = feature.year_std;
  column.hours = feature.hours;
  column.number_at = feature.numeric_index;
  column.missing_at = feature.missing_index;
  column.other_at = feature.other_index;
  column.places.assign(feature.category_index.begin(), feature.category_index.end());
  std::ranges::sort(column.places, {}, [](const auto& place) { return std::pair(place.second, place.first); });
  return column;
}

static_assert(static_cast<int>(PreparedColumn::Cells::number) == static_cast<int>(CellKind::number) &&
              static_cast<int>(PreparedColumn::Cells::boolean) == static_cast<int>(CellKind::boolean) &&
              static_cast<int>(PreparedColumn::Cells::date) == static_cast<int>(CellKind::date) &&
              static_cast<int>(PreparedColumn::Cells::word) == static_cast<int>(CellKind::word));

Column column_of_cells(const Feature& feature, const CellColumn& cells) {
  Column column;
  column.name = feature.name;
  column.format = feature.cells;
  column.categorical = feature.cells.kind == CellKind::word;
  column.numbers = cells.numbers;
  for (const std::string& word : cells.words) {
    const bool missing = is_missing(word) && !feature.category_index.contains(word);
    column.codes.push_back(missing ? -1 : static_cast<int32_t>(column.categories.size()));
    if (!missing) column.categories.push_back(word);
  }
  return column;
}

void read_preparation(const json& document, const DataInfo& info, Preparation& preparation) {
  if (info.format == "text") {
    preparation.vocabulary = document.at("vocabulary").get<std::vector<uint32_t>>();
  } else if (document.contains("features")) {
    for (const Feature& feature : encoding_of(document, info).features)
      preparation.columns.push_back(prepared_column(feature));
  } else if (document.contains("stretch")) {
    preparation.images = true;
    preparation.resized = document.at("stretch");
    preparation.dtype = DType::u8;
    preparation.mean = document.at("mean").get<std::vector<double>>();
    for (const double std : document.at("std").get<std::vector<double>>()) preparation.factor.push_back(1 / std);
  } else {
    const std::string dtype = document.at("dtype");
    for (int i = 0; i <= static_cast<int>(DType::f64); ++i) {
      if (name_of(static_cast<DType>(i)) == dtype) preparation.dtype = static_cast<DType>(i);
    }
    preparation.mean = document.at("mean").get<std::vector<double>>();
    preparation.factor = document.at("factor").get<std::vector<double>>();
    const auto parts = static_cast<int64_t>(preparation.mean.size());
    if (name_of(preparation.dtype) != dtype || parts == 0 || element_count(info.input_shape) % parts != 0)
      refuse_model_info("its normalisation does not match its input shape");
  }
  if (preparation.mean.size() != preparation.factor.size())
    refuse_model_info("its normalisation does not match its input shape");
}

}  // namespace

Preparation preparation_of(const DataInfo& info) {
  Preparation preparation;
  preparation.format = info.format;
  try {
    read_preparation(json::parse(info.preparation), info, preparation);
  } catch (const json::exception& error) {
    refuse_model_info(error.what());
  }
  return preparation;
}

Array encode_columns(const DataInfo& info, const std::vector<CellColumn>& cells) {
  const Encoding encoding = encoding_of(json::parse(info.preparation), info);
  SINEW_CHECK(cells.size() == encoding.features.size(), cells.size());
  Table table;
  size_t count = 0;
  for (size_t i = 0; i < cells.size(); ++i) {
    table.columns.push_back(column_of_cells(encoding.features[i], cells[i]));
    table.index.emplace(encoding.features[i].name, i);
    count = std::max(cells[i].numbers.size(), cells[i].words.size());
  }
  std::vector<int64_t> rows;
  for (size_t row = 0; row < count; ++row) rows.push_back(static_cast<int64_t>(row));
  const EncodedRows encoded = encode(table, rows, encoding);
  const RowLayout layout(encoding);
  Array array(DType::f32, {static_cast<int64_t>(count), encoding.width()});
  std::memset(array.bytes.data(), 0, array.bytes.size());
  for (size_t row = 0; row < count; ++row)
    layout.unpack(encoded, row, array.as<float>() + row * static_cast<size_t>(encoding.width()));
  return array;
}

const std::vector<std::string>& missing_words() {
  static const std::vector<std::string> words = {
      "",     "?",    "NA",   "na",   "NaN",  "nan",  "N/A",     "n/a",     "NAN",    "#NA",      "NULL",
      "null", "None", "<NA>", "#N/A", "-NaN", "-nan", "-1.#IND", "1.#QNAN", "1.#IND", "-1.#QNAN", "#N/A N/A"};
  return words;
}

}  // namespace sinew::data
