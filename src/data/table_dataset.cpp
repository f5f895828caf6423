#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "base/error.h"
#include "data/encoding.h"
#include "data/files.h"
#include "data/formats.h"
#include "data/inference.h"
#include "data/row_names.h"
#include "data/split_table.h"
#include "data/splits.h"
#include "data/table.h"
#include "data/target.h"

namespace sinew::data {
namespace {

using Names = std::vector<std::string>;

// The encoded samples of one split. Either `classes` or `numbers` is empty.
struct TableSplit {
  RowNames names;
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
  int64_t size(Split split) const override { return split_of(split).names.size(); }
  bool in_memory() const override { return true; }
  std::string describe(Split split, int64_t sample) const override {
    SINEW_CHECK(sample >= 0 && sample < size(split), sample, size(split));
    return split_of(split).names.describe(sample);
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

std::string listed(const Names& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < 12; ++i) text += (i == 0 ? "" : ", ") + names[i];
  return text + (names.size() > 12 ? ", …" : "");
}

// The kinds that a job declares, each with its list of columns.
struct Declaration {
  const char* key;
  const Names spec::ColumnOptions::*names;
  ColumnKind kind;
  CellKind cells;
};
constexpr Declaration kDeclarations[] = {
    {"numeric", &spec::ColumnOptions::numeric, ColumnKind::number, CellKind::number},
    {"categorical", &spec::ColumnOptions::categorical, ColumnKind::category, CellKind::word},
    {"boolean", &spec::ColumnOptions::boolean, ColumnKind::boolean, CellKind::boolean},
    {"date", &spec::ColumnOptions::date, ColumnKind::date, CellKind::date},
    {"text", &spec::ColumnOptions::text, ColumnKind::text, CellKind::word},
};

// What the job says about columns, found by their names: a file may have many columns, and a job may list many.
class Roles {
 public:
  explicit Roles(const spec::ColumnOptions& columns)
      : features_(columns.features.begin(), columns.features.end()),
        ignored_(columns.ignore.begin(), columns.ignore.end()) {
    for (const Declaration& declaration : kDeclarations) {
      for (const std::string& name : columns.*declaration.names) declarations_.emplace(name, &declaration);
    }
  }

  // Returns the first of kDeclarations that lists the column, or nullptr.
  const Declaration* declaration_of(const std::string& name) const {
    const auto found = declarations_.find(name);
    return found == declarations_.end() ? nullptr : found->second;
  }
  bool is_listed(const std::string& name) const { return features_.contains(name); }
  bool is_ignored(const std::string& name) const { return ignored_.contains(name); }
  // True if data.columns.features has names, but not this one.
  bool is_unlisted(const std::string& name) const { return !features_.empty() && !is_listed(name); }

 private:
  std::unordered_map<std::string, const Declaration*> declarations_;
  std::unordered_set<std::string> features_, ignored_;
};

// Throws Error if a column has two roles.
void check_roles(const spec::ColumnOptions& columns, const Roles& roles) {
  if (columns.target.empty()) {
    throw Error("DATA_BAD_OPTION", "data.columns.target is not set", "set it to the name of the column to predict");
  }
  if (roles.is_listed(columns.target) || roles.is_ignored(columns.target)) {
    throw Error("DATA_BAD_OPTION",
                "data.columns: '" + columns.target + "' is the target, so it cannot be a feature or ignored",
                "name it only in data.columns.target");
  }
  for (const Declaration& one : kDeclarations) {
    for (const std::string& name : columns.*one.names) {
      const Declaration* first = roles.declaration_of(name);
      const bool as_target =
          name == columns.target && one.kind != ColumnKind::number && one.kind != ColumnKind::category;
      if (first == &one && !roles.is_ignored(name) && !as_target) continue;
      const std::string other = as_target ? "target" : first != &one ? first->key : "ignore";
      throw Error("DATA_BAD_OPTION", "data.columns: '" + name + "' is in '" + other + "' and in '" + one.key + "'",
                  "keep one of the two");
    }
  }
}

CellWish wish_of(const spec::DataOptions& options, const Roles& roles, const std::string& name) {
  const Declaration* kind = roles.declaration_of(name);
  if (name == options.columns.target) {
    if (options.task == "regression") return declared(CellKind::number);
    return kind == nullptr ? CellWish{CellWish::Read::target} : declared(kind->cells);
  }
  const bool for_split = name == options.split_group || name == options.split_by;
  if (!for_split && (roles.is_ignored(name) || roles.is_unlisted(name))) return {CellWish::Read::ignored};
  return kind == nullptr ? CellWish{} : declared(kind->cells);
}

TableRequest request_of(const spec::DataOptions& options) {
  return {.format = options.format,
          .options = options.table,
          .skip_corrupt = options.on_corrupt == "skip",
          .bad_cells_missing = options.columns.on_bad_cell == "missing",
          .target = options.columns.target,
          .number_target = options.task == "regression"};
}

std::string path_of(const spec::DataSource& source, Split split) {
  if (source.path.empty()) {
    throw Error("DATA_BAD_SOURCE", "data." + to_string(split) + ": a table needs a path:", "name its file");
  }
  return source.path;
}

void check_names(const Names& names, const std::string& key, const Table& table) {
  if (names.empty()) return;
  const std::unordered_set<std::string_view> known(table.all_columns.begin(), table.all_columns.end());
  for (const std::string& name : names) {
    if (known.contains(name)) continue;
    const std::string near = spec::did_you_mean(name, table.all_columns);
    throw Error("DATA_UNKNOWN_COLUMN", table.name + ": " + key + ": there is no column '" + name + "'",
                near.empty() ? "its columns are " + listed(table.all_columns) : "did you mean '" + near + "'?");
  }
}

void check_split_column(const std::string& name, const std::string& key, const spec::DataOptions& options,
                        const Table& table) {
  if (name.empty()) return;
  check_names({name}, key, table);
  if (name != options.columns.target && table.find(name) != nullptr) return;
  const bool target = name == options.columns.target;
  throw Error(
      "DATA_BAD_OPTION",
      table.name + ": " + key + ": '" + name + (target ? "' is the column to predict" : "' only counts the rows"),
      "name another column");
}

std::vector<int64_t> select(const std::vector<int64_t>& from, const std::vector<int64_t>& indices) {
  std::vector<int64_t> selected;
  for (const int64_t index : indices) selected.push_back(from[static_cast<size_t>(index)]);
  return selected;
}

Table read_train(const spec::DataOptions& options, const Roles& roles) {
  const spec::ColumnOptions& columns = options.columns;
  check_roles(columns, roles);
  Table train = read_table(path_of(options.train, Split::train), request_of(options),
                           [&](const std::string& name) { return wish_of(options, roles, name); });
  check_names({columns.target}, "data.columns.target", train);
  check_names(columns.features, "data.columns.features", train);
  check_names(columns.ignore, "data.columns.ignore", train);
  for (const Declaration& declaration : kDeclarations)
    check_names(columns.*declaration.names, std::string("data.columns.") + declaration.key, train);
  check_split_column(options.split_group, "data.split.group", options, train);
  check_split_column(options.split_by, "data.split.by", options, train);
  if (train.rows() == 0) throw Error("DATA_EMPTY", train.name + ": has no rows below its header", "check the file");
  if (train.columns.size() < 2)
    throw Error("DATA_BAD_COLUMN", train.name + ": no column is left to predict from", "check data.columns");
  return train;
}

class TableDatasetBuilder {
 public:
  TableDatasetBuilder(const spec::DataOptions& options, uint64_t seed)
      : options_(options),
        columns_(options.columns),
        roles_(options.columns),
        seed_(seed),
        skip_(options.on_corrupt == "skip") {}

  std::unique_ptr<Dataset> build() {
    const Table train = read_train(options_, roles_);
    schema_ = infer_target(train, columns_.target, options_.task);
    const Targets targets = read_targets(train, schema_, skip_);
    targets.rounding.check(train.name + ": '" + columns_.target + "'");
    record(train, targets);
    const bool split_val = !options_.val.given(), split_test = !options_.test.given();
    const SplitIndices split =
        split_table(train, targets, options_, split_request(options_, 0, seed_), contents_.info.notes);
    if (split.train.empty()) {
      throw Error("DATA_EMPTY", train.name + ": no rows are left for training", "check the file and data.split");
    }
    fit(train, select(targets.rows, split.train));
    add(Split::train, train, targets, split.train);
    if (split_val) add(Split::val, train, targets, split.val);
    if (split_test) add(Split::test, train, targets, split.test);
    digests_.push_back(train.digest);
    if (!split_val) add_file(Split::val, options_.val, train);
    if (!split_test) add_file(Split::test, options_.test, train);
    fill_info(train);
    return std::make_unique<TableDataset>(std::move(contents_));
  }

 private:
  // A column of data.split is read even if the user leaves it out of the input.
  bool is_input(const std::string& name) const { return !roles_.is_ignored(name) && !roles_.is_unlisted(name); }

  void fit(const Table& train, const std::vector<int64_t>& rows) {
    std::vector<Candidate> candidates;
    for (const Column& column : train.columns) {
      if (column.name == columns_.target || !is_input(column.name)) continue;
      const Declaration* kind = roles_.declaration_of(column.name);
      candidates.push_back(
          {column.name, kind == nullptr ? std::nullopt : std::optional(kind->kind), roles_.is_listed(column.name)});
    }
    Fitted fitted = fit_encoding(train, rows, candidates, options_.normalize != "none");
    encoding_ = std::move(fitted.encoding);
    for (ColumnFacts& facts : fitted.facts) facts_.emplace(facts.name, std::move(facts));
    if (!encoding_.features.empty()) return;
    refuse_all_left_out(train.name);
  }

  // A declared kind keeps an identifier. It cannot keep a column whose values are all equal or missing.
  [[noreturn]] void refuse_all_left_out(const std::string& table) const {
    const auto identifier = std::find_if(facts_.begin(), facts_.end(), [](const auto& facts) {
      return facts.second.kind == to_string(ColumnKind::identifier);
    });
    const bool none = identifier == facts_.end();
    const ColumnFacts& one = none ? facts_.begin()->second : identifier->second;
    const std::string declare =
        "declare the kind of a column, for example data.columns.categorical: ['" + one.name + "'], or give more data";
    throw Error("DATA_BAD_COLUMN",
                table + ": no column is left to predict from: column '" + one.name + "' is " + one.kind + " (" +
                    one.reason + ")" + (facts_.size() == 1 ? "" : ", and the others are left out as well"),
                none ? "give rows whose values differ, or other columns" : declare);
  }

  // `chosen` has indices into `targets`.
  void add(Split which, const Table& table, const Targets& targets, const std::vector<int64_t>& chosen) {
    TableSplit& split = contents_.splits[static_cast<size_t>(which)];
    const std::vector<int64_t> rows = select(targets.rows, chosen);
    split.names = RowNames(table, rows);
    split.rows = encode(table, rows, encoding_);
    // For the training rows, the facts about the columns say the same.
    for (size_t i = 0; which != Split::train && i < split.rows.notes.size(); ++i)
      contents_.info.notes.push_back(to_string(which) + ": " + split.rows.notes[i]);
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
    TableRequest request = request_of(options_);
    request.style = &train.style;
    const Table table = read_table(path_of(source, which), request, [&](const std::string& name) {
      const Column* column = train.find(name);
      return column == nullptr ? CellWish{CellWish::Read::ignored} : CellWish{CellWish::Read::fixed, column->format};
    });
    for (const Column& column : train.columns) {
      if (table.find(column.name) != nullptr || !is_input(column.name)) continue;
      throw Error("DATA_UNKNOWN_COLUMN",
                  table.name + ": has no column '" + column.name + "', which " + file_name(train.name) + " has",
                  "give all splits the same columns, in any order");
    }
    const Targets targets = read_targets(table, schema_, skip_);
    record(table, targets);
    std::vector<int64_t> every;
    for (size_t i = 0; i < targets.rows.size(); ++i) every.push_back(static_cast<int64_t>(i));
    add(which, table, targets, every);
    digests_.push_back(table.digest);
  }

  // Keeps what the user should know about a file.
  void record(const Table& table, const Targets& targets) {
    std::vector<std::string>& notes = contents_.info.notes;
    notes.insert(notes.end(), table.notes.begin(), table.notes.end());
    const std::string said = left_out_text(table, targets);
    if (said.empty()) return;
    notes.push_back(said);
    std::string& reason = contents_.info.reasons["data.on_corrupt"];
    reason += (reason.empty() ? "" : "; ") + said;
  }

  // Lists every column of the file, also those that are not input.
  void fill_columns(const Table& train) {
    for (const std::string& name : train.all_columns) {
      const Column* column = train.find(name);
      if (const auto found = facts_.find(name); found != facts_.end()) {
        contents_.info.columns.push_back(found->second);
      } else if (column != nullptr && name == columns_.target) {
        contents_.info.columns.push_back({name, "target", schema_.reason.empty() ? "data.task" : schema_.reason});
      } else {
        contents_.info.columns.push_back({name, "ignored",
                                          roles_.is_ignored(name)    ? "data.columns.ignore"
                                          : roles_.is_unlisted(name) ? "data.columns.features does not name it"
                                                                     : "it only counts or names the rows"});
      }
    }
  }

  void fill_info(const Table& train) {
    DataInfo& info = contents_.info;
    info.task = schema_.task;
    info.format = options_.format;
    info.input_shape = {encoding_.width()};
    info.input_names = encoding_.names;
    info.preparation = table_preparation(encoding_, schema_, train.style);
    info.class_names = schema_.class_names;
    info.classes = static_cast<int64_t>(schema_.class_names.size());
    info.train_size = contents_.splits[0].names.size();
    info.val_size = contents_.splits[1].names.size();
    info.test_size = contents_.splits[2].names.size();
    contents_.layout = RowLayout(encoding_);
    fill_columns(train);
    if (!schema_.reason.empty()) info.reasons["data.task"] = schema_.reason;
    if (options_.normalize == "auto" && contents_.layout.numeric_columns() > 0) {
      info.reasons["data.normalize"] = "mean and standard deviation of each numeric column over the " +
                                       with_commas(info.train_size) + " training rows";
    }
    if (schema_.task == Task::regression) {
      set_target_moments(contents_.splits[0].numbers, info);
    } else {
      count_classes(contents_.splits[0].classes, info);
    }
    digests_.push_back(options_digest(options_, seed_));
    info.digest = digest_of(digests_);
  }

  const spec::DataOptions& options_;
  const spec::ColumnOptions& columns_;
  const Roles roles_;
  const uint64_t seed_;
  const bool skip_;
  TargetSchema schema_;
  Encoding encoding_;
  std::map<std::string, ColumnFacts> facts_;  // the facts about the columns that may be input, by name
  TableContents contents_;
  std::vector<Digest> digests_;
};

}  // namespace

std::unique_ptr<Dataset> open_table(const spec::DataOptions& options, uint64_t seed) {
  return TableDatasetBuilder(options, seed).build();
}

}  // namespace sinew::data
