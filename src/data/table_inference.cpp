// Opens new rows of a table for a trained model. The file must have the columns that the model reads. It must have the
// target only if the request asks for labels.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string_view>
#include <unordered_map>

#include "base/check.h"
#include "base/error.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "data/files.h"
#include "data/inference.h"
#include "data/row_names.h"

namespace sinew::data {
namespace {

using nlohmann::json;

class TableInferenceData final : public Dataset {
 public:
  TableInferenceData(DataInfo info, Table& table, const std::vector<int64_t>& rows, const Encoding& encoding,
                     Targets targets)
      : info_(std::move(info)),
        names_(table, rows),
        rows_(encode(table, rows, encoding)),
        layout_(encoding),
        targets_(std::move(targets)) {
    info_.notes.insert(info_.notes.end(), rows_.notes.begin(), rows_.notes.end());
  }

  const DataInfo& info() const override { return info_; }
  int64_t size(Split split) const override { return split == Split::test ? names_.size() : 0; }
  bool in_memory() const override { return true; }
  std::string describe(Split, int64_t sample) const override { return names_.describe(sample); }

  Batch load(Split split, std::span<const int64_t> samples, const SampleContext&) const override {
    const auto width = static_cast<size_t>(info_.input_shape[0]);
    Batch batch;
    batch.samples.assign(samples.begin(), samples.end());
    batch.input = Array(DType::f32, {batch.count(), info_.input_shape[0]});
    batch.target = blank_targets(info_, batch.count());
    if (batch.input.bytes.size() > 0) std::memset(batch.input.bytes.data(), 0, batch.input.bytes.size());
    for (size_t i = 0; i < samples.size(); ++i) {
      SINEW_CHECK(samples[i] >= 0 && samples[i] < size(split), samples[i], size(split));
      const auto row = static_cast<size_t>(samples[i]);
      layout_.unpack(rows_, row, batch.input.as<float>() + i * width);
      if (!targets_.numbers.empty()) batch.target.as<float>()[i] = targets_.numbers[row];
      if (!targets_.classes.empty()) batch.target.as<int64_t>()[i] = targets_.classes[row];
    }
    return batch;
  }

 private:
  DataInfo info_;
  RowNames names_;
  EncodedRows rows_;
  RowLayout layout_;
  Targets targets_;
};

// Version 2 has kinds of columns. Version 1, which has no number, has only numbers and categories, and replaces a
// missing number by the mean.
constexpr int64_t kVersion = 2;

constexpr const char* kCellKinds[] = {"number", "boolean", "date", "word"};
constexpr const char* kDateForms[] = {"iso", "day_first", "month_first", "named", "compact"};

template <size_t N>
size_t index_of(const char* const (&names)[N], const std::string& name) {
  for (size_t i = 0; i < N; ++i) {
    if (names[i] == name) return i;
  }
  refuse_model_info("it has the unknown word '" + name + "'; a newer version of Sinew may have written it");
}

json numbers_json(const NumberStyle& style) {
  const std::string thousands = style.thousands == '\0' ? "" : std::string(1, style.thousands);
  return {{"decimal", std::string(1, style.decimal)}, {"thousands", thousands}};
}

NumberStyle numbers_of(const json& item) {
  const std::string decimal = item.at("decimal"), thousands = item.at("thousands");
  if (decimal.size() != 1 || thousands.size() > 1) refuse_model_info("it has a style of numbers that does not exist");
  return {decimal[0], thousands.empty() ? '\0' : thousands[0]};
}

json cells_json(const CellFormat& cells) {
  json item = {{"kind", kCellKinds[static_cast<size_t>(cells.kind)]}, {"numbers", numbers_json(cells.numbers)}};
  if (!cells.unit.empty()) item["unit"] = cells.unit;
  if (cells.kind == CellKind::date) item["form"] = kDateForms[static_cast<size_t>(cells.date)];
  return item;
}

CellFormat cells_of(const json& item) {
  CellFormat cells;
  cells.kind = static_cast<CellKind>(index_of(kCellKinds, item.at("kind")));
  cells.numbers = numbers_of(item.at("numbers"));
  cells.unit = item.value("unit", "");
  if (cells.kind == CellKind::date) cells.date = static_cast<DateForm>(index_of(kDateForms, item.at("form")));
  return cells;
}

json feature_json(const Feature& feature) {
  json item = {{"name", feature.name},
               {"kind", std::string(to_string(feature.kind))},
               {"cells", cells_json(feature.cells)},
               {"fill", feature.fill},
               {"std", feature.std},
               {"center", feature.center},
               {"number_at", feature.numeric_index},
               {"places", feature.category_index},
               {"other_at", feature.other_index},
               {"missing_at", feature.missing_index}};
  if (feature.kind == ColumnKind::date) {
    item["year_std"] = feature.year_std;
    item["year_center"] = feature.year_center;
    item["hours"] = feature.hours;
  }
  return item;
}

// Reads the index of an input column. It will address the memory of a sample, so an index outside of the sample is
// refused. `columns` is the number of input columns that begin there.
int32_t checked_index(const json& value, int64_t width, int64_t columns = 1) {
  if (!value.is_number_integer()) refuse_model_info("the place of an input column is not a whole number");
  const int64_t index = value;
  if (index < -1 || index >= width || (index >= 0 && index + columns > width))
    refuse_model_info("it names input columns that the model does not have");
  return static_cast<int32_t>(index);
}

// Reads a column of the second version. The encoder trusts that the cells fit the kind: for some kinds it reads
// numbers, for others the codes of words. `place`: the key and the column, for messages.
void read_kind(const json& item, const std::string& place, Feature& feature) {
  const auto kind = kind_named(item.at("kind").get<std::string>());
  if (!kind || is_left_out(*kind)) refuse_model_info(place + " has a kind that this version does not have");
  feature.kind = *kind;
  feature.cells = cells_of(item.at("cells"));
  feature.fill = item.at("fill");
  if (!can_be_made_of(*kind, feature.cells.kind))
    refuse_model_info(place + " has the kind " + std::string(to_string(*kind)) + ", but cells of the kind " +
                      kCellKinds[static_cast<size_t>(feature.cells.kind)]);
  if (*kind != ColumnKind::date) return;
  feature.year_std = item.at("year_std");
  feature.year_center = item.at("year_center");
  feature.hours = item.at("hours");
  constexpr double kSecondsOf10000Years = 3.2e11;
  if (!(std::abs(feature.fill) < kSecondsOf10000Years)) refuse_model_info("the median of " + place + " is no date");
}

void read_first_version(const json& item, Feature& feature) {
  const bool categorical = item.at("categorical");
  feature.kind = categorical ? ColumnKind::category : ColumnKind::number;
  feature.cells.kind = categorical ? CellKind::word : CellKind::number;
  feature.fill = item.at("mean");
}

TargetSchema schema_of(const json& preprocessing, const DataInfo& info) {
  TargetSchema schema;
  schema.task = info.task;
  schema.column = preprocessing.at("target");
  schema.categorical = preprocessing.at("target_is_words");
  schema.cells.kind = schema.categorical ? CellKind::word : CellKind::number;
  if (preprocessing.contains("target_cells")) schema.cells = cells_of(preprocessing.at("target_cells"));
  if ((schema.cells.kind == CellKind::word) != schema.categorical) refuse_model_info("its target contradicts itself");
  if (schema.categorical && schema.task == Task::regression)
    refuse_model_info("preparation.target_is_words: the task is regression, but the target '" +
                      printable_start(schema.column) + "' has words");
  schema.class_names = info.class_names;
  schema.class_values = preprocessing.at("target_numbers").get<std::vector<double>>();
  // The place of a number in this list is its class.
  const bool classes_of_numbers = schema.task == Task::classification && !schema.categorical;
  if (classes_of_numbers && (static_cast<int64_t>(schema.class_values.size()) != info.classes ||
                             !std::is_sorted(schema.class_values.begin(), schema.class_values.end())))
    refuse_model_info("preparation.target_numbers does not have the classes in ascending order");
  if (schema.categorical) {
    for (size_t i = 0; i < schema.class_names.size(); ++i) {
      schema.class_of_word[schema.class_names[i]] = static_cast<int64_t>(i);
    }
  }
  return schema;
}

TableStyle style_of(const json& preprocessing) {
  TableStyle style;
  if (!preprocessing.contains("numbers")) return style;
  style.header = preprocessing.at("header");
  style.numbers = numbers_of(preprocessing.at("numbers"));
  return style;
}

Table read_rows(const InferenceRequest& request, const Encoding& encoding, const TargetSchema& schema) {
  const std::string& path = request.source.path;
  const TableStyle style = style_of(request.preprocessing);
  // The new file may be in another table format than the training data.
  const std::string format = table_format_of(path);
  using Reader = TableRequest::Reader;
  const TableRequest how{.format = format.empty() ? request.info.format : format,
                         .options = request.options.table,
                         .skip_corrupt = request.options.on_corrupt == "skip",
                         .bad_cells_missing = request.options.columns.on_bad_cell == "missing",
                         .style = &style,
                         .reader = request.labelled ? Reader::evaluation : Reader::prediction,
                         .target = schema.column};
  std::unordered_map<std::string_view, const CellFormat*> known;
  for (const Feature& feature : encoding.features) known.emplace(feature.name, &feature.cells);
  Table table = read_table(path, how, [&](const std::string& name) -> CellWish {
    if (name == schema.column)
      return request.labelled ? CellWish{CellWish::Read::fixed, schema.cells} : CellWish{CellWish::Read::ignored};
    const auto found = known.find(name);
    return found == known.end() ? CellWish{CellWish::Read::ignored} : CellWish{CellWish::Read::fixed, *found->second};
  });
  if (table.rows() == 0) {
    throw Error("DATA_EMPTY",
                path + (table.skipped == 0 ? ": has no rows below its header"
                                           : ": no row can be read; the first problem is " + table.first_skipped),
                "check the file");
  }
  std::string missing;
  const auto need = [&](const std::string& name) {
    if (table.find(name) == nullptr) missing += (missing.empty() ? "'" : ", '") + name + "'";
  };
  for (const Feature& feature : encoding.features) need(feature.name);
  if (request.labelled) need(schema.column);
  if (!missing.empty()) {
    throw Error("DATA_UNKNOWN_COLUMN", path + ": has no column " + missing + ", which the model was trained with",
                "name these columns in the header line; the order does not matter, and other columns are ignored");
  }
  return table;
}

}  // namespace

Encoding encoding_of(const json& preprocessing, const DataInfo& info) {
  const int64_t version = preprocessing.value("version", int64_t{1});
  if (version > kVersion) refuse_model_info("a newer version of Sinew wrote how its columns are encoded");
  Encoding encoding;
  encoding.names = info.input_names;
  if (info.input_shape != Shape{encoding.width()}) {
    refuse_model_info("its input columns do not match its input shape");
  }
  const std::string target = preprocessing.at("target");
  std::set<std::string> names;
  for (const json& item : preprocessing.at("features")) {
    Feature& feature = encoding.features.emplace_back();
    feature.name = item.at("name");
    const std::string place =
        "preparation.features[" + std::to_string(names.size()) + "] (column '" + printable_start(feature.name) + "')";
    // A table is read with one format for each column, so a column cannot have two roles.
    if (feature.name == target) refuse_model_info(place + " is the target, too");
    if (!names.insert(feature.name).second) refuse_model_info(place + " is there twice");
    version == 1 ? read_first_version(item, feature) : read_kind(item, place, feature);
    feature.std = item.at("std");
    feature.center = item.at("center");
    const auto columns =
        feature.kind == ColumnKind::text ? int64_t{kTextInputs} : static_cast<int64_t>(feature.numeric_columns());
    feature.numeric_index = checked_index(item.at("number_at"), encoding.width(), columns);
    if (columns > 0 && feature.numeric_index < 0) refuse_model_info(place + " has no input");
    feature.missing_index = checked_index(item.at("missing_at"), encoding.width());
    if (version > 1) feature.other_index = checked_index(item.at("other_at"), encoding.width());
    for (const auto& [category, index] : item.at("places").items()) {
      feature.category_index[category] = checked_index(index, encoding.width());
    }
  }
  return encoding;
}

std::string table_preparation(const Encoding& encoding, const TargetSchema& schema, const TableStyle& style) {
  json features = json::array();
  for (const Feature& feature : encoding.features) features.push_back(feature_json(feature));
  return dump_json(json({{"version", kVersion},
                         {"header", style.header},
                         {"numbers", numbers_json(style.numbers)},
                         {"features", features},
                         {"target", schema.column},
                         {"target_is_words", schema.categorical},
                         {"target_cells", cells_json(schema.cells)},
                         {"target_numbers", schema.class_values}}));
}

std::vector<InputGroup> table_groups(const json& preprocessing, const DataInfo& info) {
  using Kind = InputGroup::Kind;
  std::vector<InputGroup> groups;
  for (const Feature& feature : encoding_of(preprocessing, info).features) {
    std::vector<int32_t> places;  // of the values of a category
    for (const auto& [value, place] : feature.category_index) places.push_back(place);
    if (feature.by_value()) {
      for (const int32_t place : {feature.other_index, feature.missing_index}) {
        if (place >= 0) places.push_back(place);
      }
      if (places.empty()) continue;
      const auto [low, high] = std::ranges::minmax(places);
      groups.push_back({Kind::category, low, high - low + 1});
      continue;
    }
    const int64_t first = feature.numeric_index;
    if (feature.kind == ColumnKind::number) groups.push_back({Kind::number, first, 1});
    if (feature.kind == ColumnKind::boolean) groups.push_back({Kind::other, first, 1});
    if (feature.kind == ColumnKind::text) groups.push_back({Kind::other, first, kTextInputs});
    if (feature.kind == ColumnKind::date) {  // the year, the elapsed days, and points of circles
      groups.push_back({Kind::number, first, 1});
      groups.push_back({Kind::number, first + 1, 1});
      groups.push_back({Kind::other, first + 2, static_cast<int64_t>(feature.numeric_columns()) - 2});
    }
    if (feature.missing_index >= 0) groups.push_back({Kind::category, feature.missing_index, 1});
  }
  std::ranges::sort(groups, {}, &InputGroup::first);
  int64_t next = 0;
  for (const InputGroup& group : groups) {
    if (group.first < next) refuse_model_info("two of its columns have the same input");
    next = group.first + group.count;
  }
  return groups;
}

std::unique_ptr<Dataset> open_table_inference(InferenceRequest request) {
  const Encoding encoding = encoding_of(request.preprocessing, request.info);
  const TargetSchema schema = schema_of(request.preprocessing, request.info);
  Table table = read_rows(request, encoding, schema);
  const bool skip = request.options.on_corrupt == "skip";
  Targets targets;
  if (request.labelled) {
    targets = read_targets(table, schema, skip);
  } else {
    for (int64_t row = 0; row < table.rows(); ++row) targets.rows.push_back(row);
  }
  if (targets.rows.empty()) {
    throw Error("DATA_EMPTY", table.name + ": no row has a value of " + schema.column, "check the file");
  }
  std::vector<std::string>& notes = request.info.notes;
  notes = table.notes;
  if (const std::string said = left_out_text(table, targets); !said.empty())
    notes.push_back(request.info.reasons["data.on_corrupt"] = said);
  request.info.test_size = static_cast<int64_t>(targets.rows.size());
  const std::vector<int64_t> rows = std::move(targets.rows);
  return std::make_unique<TableInferenceData>(std::move(request.info), table, rows, encoding, std::move(targets));
}

}  // namespace sinew::data
