#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "base/error.h"
#include "data/files.h"
#include "data/formats.h"
#include "data/inference.h"
#include "data/table.h"
#include "data/target.h"

namespace sinew::data {
namespace {

using Names = std::vector<std::string>;

// The encoded samples of one split. Either `classes` or `numbers` is empty.
struct TableSplit {
  std::string file;
  std::vector<int64_t> lines;
  EncodedRows rows;
  std::vector<int64_t> classes;
  std::vector<float> numbers;
};

struct TableContents {
  DataInfo info;
  std::array<TableSplit, 3> splits;
  RowLayout layout;
};

class TableDataset final : public Dataset {
 public:
  explicit TableDataset(TableContents contents) : contents_(std::move(contents)) {}
  const DataInfo& info() const override { return contents_.info; }
  int64_t size(Split split) const override { return static_cast<int64_t>(split_of(split).lines.size()); }
  bool in_memory() const override { return true; }
  std::string describe(Split split, int64_t sample) const override {
    SINEW_CHECK(sample >= 0 && sample < size(split), sample, size(split));
    return file_name(split_of(split).file) + ':' + std::to_string(split_of(split).lines[static_cast<size_t>(sample)]);
  }

  Batch load(Split which, std::span<const int64_t> samples, const SampleContext&) const override {
    const TableSplit& split = split_of(which);
    const bool regression = contents_.info.task == Task::regression;
    const auto width = static_cast<size_t>(contents_.info.input_shape[0]);
    Batch batch;
    batch.samples.assign(samples.begin(), samples.end());
    batch.input = Array(DType::f32, {batch.count(), contents_.info.input_shape[0]});
    batch.target = Array(regression ? DType::f32 : DType::i64, {batch.count()});
    std::memset(batch.input.bytes.data(), 0, batch.input.bytes.size());
    for (size_t i = 0; i < samples.size(); ++i) {
      SINEW_CHECK(samples[i] >= 0 && samples[i] < size(which), samples[i], size(which));
      const auto row = static_cast<size_t>(samples[i]);
      contents_.layout.unpack(split.rows, row, batch.input.as<float>() + i * width);
      if (regression) {
        batch.target.as<float>()[i] = split.numbers[row];
      } else {
        batch.target.as<int64_t>()[i] = split.classes[row];
      }
    }
    return batch;
  }

 private:
  const TableSplit& split_of(Split split) const { return contents_.splits[static_cast<size_t>(split)]; }
  const TableContents contents_;
};

bool holds(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string listed(const Names& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < 12; ++i) text += (i == 0 ? "" : ", ") + names[i];
  return text + (names.size() > 12 ? ", …" : "");
}

class TableDatasetBuilder {
 public:
  TableDatasetBuilder(const spec::DataOptions& options, uint64_t seed)
      : options_(options), columns_(options.columns), seed_(seed), skip_(options.on_corrupt == "skip") {}

  std::unique_ptr<Dataset> build() {
    const Table train = read_train();
    schema_ = infer_target(train, columns_.target, options_.task);
    const Targets targets = read_targets(train, schema_, skip_);
    targets.rounding.check(train.name + ": '" + columns_.target + "'");
    record_skipped(train, targets);
    const bool split_val = !options_.val.given(), split_test = !options_.test.given();
    const SplitIndices split =
        split_indices(static_cast<int64_t>(targets.rows.size()), split_val ? options_.split_val : 0,
                      split_test ? options_.split_test : 0, seed_);
    if (split.train.empty()) {
      throw Error("DATA_EMPTY", train.name + ": no rows are left for training", "check the file and data.split");
    }
    const std::vector<int64_t> train_rows = select(targets.rows, split.train);
    encoding_ = fit_encoding(train, train_rows, features_, columns_.categorical, options_.normalize != "none");
    add(Split::train, train, targets, split.train);
    if (split_val) add(Split::val, train, targets, split.val);
    if (split_test) add(Split::test, train, targets, split.test);
    digests_.push_back(train.digest);
    if (!split_val) add_file(Split::val, options_.val, train);
    if (!split_test) add_file(Split::test, options_.test, train);
    fill_info();
    return std::make_unique<TableDataset>(std::move(contents_));
  }

 private:
  Table read_train() {
    if (columns_.target.empty()) {
      throw Error("DATA_BAD_OPTION", "data.columns.target is not set", "set it to the name of the column to predict");
    }
    if (holds(columns_.features, columns_.target) || holds(columns_.ignore, columns_.target)) {
      throw Error("DATA_BAD_OPTION",
                  "data.columns: '" + columns_.target + "' is the target, so it cannot be a feature or ignored",
                  "name it only in data.columns.target");
    }
    Table train =
        read_table(path_of(options_.train, Split::train), options_.format, skip_, [&](const std::string& name) {
          if (name == columns_.target) {
            if (options_.task == "regression") return ColumnType::numeric;
            return holds(columns_.categorical, name) ? ColumnType::categorical : ColumnType::inferred;
          }
          if (holds(columns_.ignore, name)) return ColumnType::ignored;
          if (!columns_.features.empty() && !holds(columns_.features, name)) return ColumnType::ignored;
          return holds(columns_.categorical, name) ? ColumnType::categorical : ColumnType::inferred;
        });
    check_names({columns_.target}, "target", train);
    check_names(columns_.features, "features", train);
    check_names(columns_.categorical, "categorical", train);
    check_names(columns_.ignore, "ignore", train);
    if (train.rows() == 0) throw Error("DATA_EMPTY", train.name + ": has no rows below its header", "check the file");
    for (const Column& column : train.columns) {
      if (column.name != columns_.target) features_.push_back(column.name);
    }
    if (features_.empty()) {
      throw Error("DATA_BAD_COLUMN", train.name + ": no column is left to predict from", "check data.columns");
    }
    return train;
  }

  static std::string path_of(const spec::DataSource& source, Split split) {
    if (source.path.empty()) {
      throw Error("DATA_BAD_SOURCE", "data." + to_string(split) + ": a table needs a path:", "name its file");
    }
    return source.path;
  }

  static void check_names(const Names& names, const std::string& key, const Table& table) {
    for (const std::string& name : names) {
      if (holds(table.all_columns, name)) continue;
      const std::string near = spec::did_you_mean(name, table.all_columns);
      throw Error("DATA_UNKNOWN_COLUMN", table.name + ": data.columns." + key + ": there is no column '" + name + "'",
                  near.empty() ? "its columns are " + listed(table.all_columns) : "did you mean '" + near + "'?");
    }
  }

  static std::vector<int64_t> select(const std::vector<int64_t>& from, const std::vector<int64_t>& indices) {
    std::vector<int64_t> selected;
    for (const int64_t index : indices) selected.push_back(from[static_cast<size_t>(index)]);
    return selected;
  }

  // `chosen`: indices into `targets`.
  void add(Split which, const Table& table, const Targets& targets, const std::vector<int64_t>& chosen) {
    TableSplit& split = contents_.splits[static_cast<size_t>(which)];
    const std::vector<int64_t> rows = select(targets.rows, chosen);
    split.file = table.name;
    split.lines = select(table.lines, rows);
    split.rows = encode(table, rows, encoding_);
    for (const int64_t index : chosen) {
      const auto i = static_cast<size_t>(index);
      if (schema_.task == Task::regression) {
        split.numbers.push_back(targets.numbers[i]);
      } else {
        split.classes.push_back(targets.classes[i]);
      }
    }
  }

  void add_file(Split which, const spec::DataSource& source, const Table& train) {
    const Table table = read_table(path_of(source, which), options_.format, skip_, [&](const std::string& name) {
      const Column* column = train.find(name);
      return column == nullptr     ? ColumnType::ignored
             : column->categorical ? ColumnType::categorical
                                   : ColumnType::numeric;
    });
    for (const Column& column : train.columns) {
      if (table.find(column.name) != nullptr) continue;
      throw Error("DATA_UNKNOWN_COLUMN",
                  table.name + ": has no column '" + column.name + "', which " + file_name(train.name) + " has",
                  "give all splits the same columns, in any order");
    }
    const Targets targets = read_targets(table, schema_, skip_);
    record_skipped(table, targets);
    std::vector<int64_t> every;
    for (size_t i = 0; i < targets.rows.size(); ++i) every.push_back(static_cast<int64_t>(i));
    add(which, table, targets, every);
    digests_.push_back(table.digest);
  }

  void record_skipped(const Table& table, const Targets& targets) {
    const int64_t skipped = table.skipped + targets.skipped;
    if (skipped == 0) return;
    std::string& reason = contents_.info.reasons["data.on_corrupt"];
    reason += (reason.empty() ? "" : "; ") + with_commas(skipped) + " rows of " + file_name(table.name) +
              " are left out, the first: " + (table.skipped > 0 ? table.first_skipped : targets.first_skipped);
  }

  void fill_info() {
    DataInfo& info = contents_.info;
    info.task = schema_.task;
    info.format = options_.format;
    info.input_shape = {encoding_.width()};
    info.input_names = encoding_.names;
    info.preparation = table_preparation(encoding_, schema_);
    info.class_names = schema_.class_names;
    info.classes = static_cast<int64_t>(schema_.class_names.size());
    info.train_size = static_cast<int64_t>(contents_.splits[0].lines.size());
    info.val_size = static_cast<int64_t>(contents_.splits[1].lines.size());
    info.test_size = static_cast<int64_t>(contents_.splits[2].lines.size());
    contents_.layout = RowLayout(encoding_);
    if (!schema_.reason.empty()) info.reasons["data.task"] = schema_.reason;
    if (options_.normalize == "auto" && contents_.layout.numeric_columns() > 0) {
      info.reasons["data.normalize"] = "mean and standard deviation of each of " +
                                       std::to_string(contents_.layout.numeric_columns()) +
                                       " numeric columns over the " + with_commas(info.train_size) + " training rows";
    }
    if (schema_.task == Task::regression) set_target_moments(contents_.splits[0].numbers, info);
    digests_.push_back(options_digest(options_, seed_));
    info.digest = digest_of(digests_);
  }

  const spec::DataOptions& options_;
  const spec::ColumnOptions& columns_;
  const uint64_t seed_;
  const bool skip_;
  Names features_;
  TargetSchema schema_;
  Encoding encoding_;
  TableContents contents_;
  std::vector<Digest> digests_;
};

}  // namespace

std::unique_ptr<Dataset> open_table(const spec::DataOptions& options, uint64_t seed) {
  return TableDatasetBuilder(options, seed).build();
}

}  // namespace sinew::data
