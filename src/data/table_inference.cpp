// Opens new rows of a table for a trained model. The file must have the columns that the model reads. It must have the
// target only if the request asks for labels.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/error.h"
#include "base/json_text.h"
#include "data/files.h"
#include "data/inference.h"

namespace sinew::data {
namespace {

using nlohmann::json;

class TableInferenceData final : public Dataset {
 public:
  TableInferenceData(DataInfo info, Table& table, const std::vector<int64_t>& rows, const Encoding& encoding,
                     Targets targets)
      : info_(std::move(info)),
        file_(table.name),
        rows_(encode(table, rows, encoding)),
        layout_(encoding),
        targets_(std::move(targets)) {
    for (const int64_t row : rows) lines_.push_back(table.lines[static_cast<size_t>(row)]);
  }

  const DataInfo& info() const override { return info_; }
  int64_t size(Split split) const override { return split == Split::test ? static_cast<int64_t>(lines_.size()) : 0; }
  bool in_memory() const override { return true; }
  std::string describe(Split, int64_t sample) const override {
    return file_name(file_) + ':' + std::to_string(lines_[static_cast<size_t>(sample)]);
  }

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
  std::string file_;
  EncodedRows rows_;
  RowLayout layout_;
  Targets targets_;
  std::vector<int64_t> lines_;
};

json feature_json(const Feature& feature) {
  return {{"name", feature.name},
          {"categorical", feature.categorical},
          {"mean", feature.mean},
          {"std", feature.std},
          {"center", feature.center},
          {"number_at", feature.numeric_index},
          {"places", feature.category_index},
          {"missing_at", feature.missing_index}};
}

// Reads the index of an input column. It will address the memory of a sample, so an index outside of the sample is
// refused.
int32_t checked_index(const json& value, int64_t width) {
  const int64_t index = value;
  if (index < -1 || index >= width) refuse_model_info("it names input columns that the model does not have");
  return static_cast<int32_t>(index);
}

Encoding encoding_of(const json& preprocessing, const DataInfo& info) {
  Encoding encoding;
  encoding.names = info.input_names;
  if (info.input_shape != Shape{encoding.width()}) {
    refuse_model_info("its input columns do not match its input shape");
  }
  for (const json& item : preprocessing.at("features")) {
    Feature& feature = encoding.features.emplace_back();
    feature.name = item.at("name");
    feature.categorical = item.at("categorical");
    feature.mean = item.at("mean");
    feature.std = item.at("std");
    feature.center = item.at("center");
    feature.numeric_index = checked_index(item.at("number_at"), encoding.width());
    feature.missing_index = checked_index(item.at("missing_at"), encoding.width());
    for (const auto& [category, index] : item.at("places").items()) {
      feature.category_index[category] = checked_index(index, encoding.width());
    }
  }
  return encoding;
}

TargetSchema schema_of(const json& preprocessing, const DataInfo& info) {
  TargetSchema schema;
  schema.task = info.task;
  schema.column = preprocessing.at("target");
  schema.categorical = preprocessing.at("target_is_words");
  schema.class_names = info.class_names;
  schema.class_values = preprocessing.at("target_numbers").get<std::vector<double>>();
  if (schema.categorical) {
    for (size_t i = 0; i < schema.class_names.size(); ++i) {
      schema.class_of_word[schema.class_names[i]] = static_cast<int64_t>(i);
    }
  }
  return schema;
}

// Returns the format that the file's extension names, otherwise the format of the training data. The new file may be in
// another table format than the training data.
std::string format_of(const std::string& path, const std::string& trained_on) {
  for (const char* format : {"csv", "tsv", "jsonl"}) {
    if (path.ends_with(std::string(".") + format) || path.ends_with(std::string(".") + format + ".gz")) return format;
  }
  return trained_on;
}

Table read_rows(const InferenceRequest& request, const Encoding& encoding, const TargetSchema& schema) {
  const std::string& path = request.source.path;
  const bool skip = request.options.on_corrupt == "skip";
  Table table = read_table(path, format_of(path, request.info.format), skip, [&](const std::string& name) {
    if (name == schema.column)
      return !request.labelled    ? ColumnType::ignored
             : schema.categorical ? ColumnType::categorical
                                  : ColumnType::numeric;
    const auto found = std::find_if(encoding.features.begin(), encoding.features.end(),
                                    [&](const Feature& feature) { return feature.name == name; });
    return found == encoding.features.end() ? ColumnType::ignored
           : found->categorical             ? ColumnType::categorical
                                            : ColumnType::numeric;
  });
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

std::string table_preparation(const Encoding& encoding, const TargetSchema& schema) {
  json features = json::array();
  for (const Feature& feature : encoding.features) features.push_back(feature_json(feature));
  return dump_json(json({{"features", features},
                         {"target", schema.column},
                         {"target_is_words", schema.categorical},
                         {"target_numbers", schema.class_values}}));
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
    throw Error("DATA_EMPTY", table.name + ": has no rows below its header", "check the file");
  }
  if (const int64_t skipped = table.skipped + targets.skipped; skipped > 0) {
    request.info.reasons["data.on_corrupt"] =
        with_commas(skipped) + " rows of " + file_name(table.name) +
        " are left out, the first: " + (table.skipped > 0 ? table.first_skipped : targets.first_skipped);
  }
  request.info.test_size = static_cast<int64_t>(targets.rows.size());
  const std::vector<int64_t> rows = std::move(targets.rows);
  return std::make_unique<TableInferenceData>(std::move(request.info), table, rows, encoding, std::move(targets));
}

}  // namespace sinew::data
