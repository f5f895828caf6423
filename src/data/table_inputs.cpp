// Later rows of a table: the columns the model looks at must be there, the target only where it is asked for.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/error.h"
#include "data/files.h"
#include "data/inputs.h"

namespace sinew::data {
namespace {

using nlohmann::json;

class TableInputs final : public Dataset {
 public:
  TableInputs(DataInfo info, Table& table, const std::vector<int64_t>& rows, const Encoding& encoding, Targets targets)
      : info_(std::move(info)), file_(table.name), rows_(encode(table, rows, encoding)), targets_(std::move(targets)) {
    for (const int64_t row : rows) lines_.push_back(table.lines[static_cast<size_t>(row)]);
    for (const Feature& feature : encoding.features) {
      if (feature.number_at >= 0) number_places_.push_back(feature.number_at);
      ones_ += feature.sets_ones() ? 1 : 0;
    }
  }

  const DataInfo& info() const override { return info_; }
  int64_t size(Split split) const override { return split == Split::test ? static_cast<int64_t>(lines_.size()) : 0; }
  bool in_memory() const override { return true; }
  std::string describe(Split, int64_t sample) const override {
    return file_name(file_) + ':' + std::to_string(lines_[static_cast<size_t>(sample)]);
  }

  Batch load(Split split, std::span<const int64_t> samples, const SampleContext&) const override {
    const auto width = static_cast<size_t>(info_.input_shape[0]), numbers = number_places_.size();
    Batch batch;
    batch.samples.assign(samples.begin(), samples.end());
    batch.input = Array(DType::f32, {batch.count(), info_.input_shape[0]});
    batch.target = blank_targets(info_, batch.count());
    if (batch.input.bytes.size() > 0) std::memset(batch.input.bytes.data(), 0, batch.input.bytes.size());
    for (size_t i = 0; i < samples.size(); ++i) {
      SINEW_CHECK(samples[i] >= 0 && samples[i] < size(split), samples[i], size(split));
      const auto row = static_cast<size_t>(samples[i]);
      float* out = batch.input.as<float>() + i * width;
      for (size_t j = 0; j < numbers; ++j) out[number_places_[j]] = rows_.numbers[row * numbers + j];
      for (size_t j = 0; j < ones_; ++j) {
        if (const int32_t place = rows_.ones[row * ones_ + j]; place >= 0) out[place] = 1.0F;
      }
      if (!targets_.numbers.empty()) batch.target.as<float>()[i] = targets_.numbers[row];
      if (!targets_.classes.empty()) batch.target.as<int64_t>()[i] = targets_.classes[row];
    }
    return batch;
  }

 private:
  DataInfo info_;
  std::string file_;
  EncodedRows rows_;
  Targets targets_;
  std::vector<int64_t> lines_;
  std::vector<int32_t> number_places_;
  size_t ones_ = 0;
};

json feature_json(const Feature& feature) {
  return {{"name", feature.name},     {"categorical", feature.categorical}, {"mean", feature.mean},
          {"std", feature.std},       {"center", feature.center},           {"number_at", feature.number_at},
          {"places", feature.places}, {"missing_at", feature.missing_at}};
}

// The places index a sample's memory: whatever the file says, they must lie within it.
int32_t checked_place(const json& value, int64_t width) {
  const int64_t place = value;
  if (place < -1 || place >= width) throw Error("what the model says of its data names columns it does not have");
  return static_cast<int32_t>(place);
}

Encoding encoding_of(const json& learned, const DataInfo& info) {
  Encoding encoding;
  encoding.names = info.input_names;
  if (info.input_shape != Shape{encoding.width()}) throw Error("what the model says of its data does not fit together");
  for (const json& item : learned.at("features")) {
    Feature& feature = encoding.features.emplace_back();
    feature.name = item.at("name");
    feature.categorical = item.at("categorical");
    feature.mean = item.at("mean");
    feature.std = item.at("std");
    feature.center = item.at("center");
    feature.number_at = checked_place(item.at("number_at"), encoding.width());
    feature.missing_at = checked_place(item.at("missing_at"), encoding.width());
    for (const auto& [category, place] : item.at("places").items()) {
      feature.places[category] = checked_place(place, encoding.width());
    }
  }
  return encoding;
}

TargetRules rules_of(const json& learned, const DataInfo& info) {
  TargetRules rules;
  rules.task = info.task;
  rules.column = learned.at("target");
  rules.words = learned.at("target_is_words");
  rules.class_names = info.class_names;
  rules.numbers_to_class = learned.at("target_numbers").get<std::vector<double>>();
  if (rules.words) {
    for (size_t i = 0; i < rules.class_names.size(); ++i) {
      rules.words_to_class[rules.class_names[i]] = static_cast<int64_t>(i);
    }
  }
  return rules;
}

// The file may be of another kind of table than the training data was.
std::string format_of(const std::string& path, const std::string& trained_on) {
  for (const char* format : {"csv", "tsv", "jsonl"}) {
    if (path.ends_with(std::string(".") + format) || path.ends_with(std::string(".") + format + ".gz")) return format;
  }
  return trained_on;
}

Table read_rows(const InputsRequest& request, const Encoding& encoding, const TargetRules& rules) {
  const std::string& path = request.source.path;
  const bool skip = request.options.on_corrupt == "skip";
  Table table = read_table(path, format_of(path, request.info.format), skip, [&](const std::string& name) {
    if (name == rules.column) return !request.labelled ? Use::skip : rules.words ? Use::categories : Use::numbers;
    const auto found = std::find_if(encoding.features.begin(), encoding.features.end(),
                                    [&](const Feature& feature) { return feature.name == name; });
    return found == encoding.features.end() ? Use::skip : found->categorical ? Use::categories : Use::numbers;
  });
  std::string missing;
  const auto need = [&](const std::string& name) {
    if (table.find(name) == nullptr) missing += (missing.empty() ? "'" : ", '") + name + "'";
  };
  for (const Feature& feature : encoding.features) need(feature.name);
  if (request.labelled) need(rules.column);
  if (!missing.empty()) {
    throw Error(path + ": has no column " + missing + ", which the model was trained with",
                "the columns may stand in any order, others are left out; the header line must name them");
  }
  return table;
}

}  // namespace

std::string table_preparation(const Encoding& encoding, const TargetRules& rules) {
  json features = json::array();
  for (const Feature& feature : encoding.features) features.push_back(feature_json(feature));
  return json({{"features", features},
               {"target", rules.column},
               {"target_is_words", rules.words},
               {"target_numbers", rules.numbers_to_class}})
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

std::unique_ptr<Dataset> open_table_inputs(InputsRequest request) {
  const Encoding encoding = encoding_of(request.learned, request.info);
  const TargetRules rules = rules_of(request.learned, request.info);
  Table table = read_rows(request, encoding, rules);
  const bool skip = request.options.on_corrupt == "skip";
  Targets targets;
  if (request.labelled) {
    targets = read_targets(table, rules, skip);
  } else {
    for (int64_t row = 0; row < table.rows(); ++row) targets.rows.push_back(row);
  }
  if (targets.rows.empty()) throw Error(table.name + ": has no rows below its header", "check the file");
  if (const int64_t skipped = table.skipped + targets.skipped; skipped > 0) {
    request.info.reasons["data.on_corrupt"] =
        with_commas(skipped) + " rows of " + file_name(table.name) +
        " are left out, the first: " + (table.skipped > 0 ? table.first_skipped : targets.first_skipped);
  }
  request.info.test_size = static_cast<int64_t>(targets.rows.size());
  const std::vector<int64_t> rows = std::move(targets.rows);
  return std::make_unique<TableInputs>(std::move(request.info), table, rows, encoding, std::move(targets));
}

}  // namespace sinew::data
