// Implements the detectors of tables and texts.
#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/printable.h"
#include "data/encoding.h"
#include "data/files.h"
#include "data/foreign_file.h"
#include "data/kinds.h"
#include "data/propose.h"
#include "data/propose_target.h"
#include "data/table.h"
#include "data/text_folder.h"

namespace sinew::data {
namespace {

constexpr int64_t kFewRows = 3;
constexpr size_t kPreviewBytes = 1 << 18;  // bytes that are read from the beginning of a text

// Judges each column by the first rows of the first file, for the choice of the target. The files are read as training
// reads them without data.table. The kinds are only likely ones: training judges a column by all training rows.
std::vector<ColumnSketch> sketch_columns(const std::string& path, const TableRequest& request) {
  const std::string file = table_files(path, request.format).front();
  std::vector<std::byte> head = read_head(file, kTableHead);
  if (head.empty()) read_file(file);  // throws if the file is damaged rather than empty
  const bool whole = head.size() < kTableHead;
  const TableText text = decode_table(file, std::move(head), whole, request);
  const auto reader = reader_of(text, request);
  const FirstRows first = read_first_rows(*reader, whole);
  if (first.rows == 0 && !first.first_problem.empty())
    throw Error("DATA_BAD_ROW", file + ':' + first.first_problem, "correct the line, or check the format of the file");
  std::vector<ColumnSketch> sketches;
  for (size_t i = 0; i < first.names.size(); ++i) {
    if (is_row_index(first, first.names[i])) continue;
    const std::vector<CellSample>& cells = first.cells[i];
    const CellJudgement judged = judge_cells(first.names[i], cells, text.dialect.style.numbers, request.options.dates);
    ColumnStats stats{first.names[i], judged.format ? judged.format->kind : CellKind::word, first.rows};
    stats.missing = first.rows - static_cast<int64_t>(cells.size());
    std::set<std::string> different;
    double words = 0;
    stats.zero_or_one = true;
    for (const CellSample& cell : cells) {
      if (different.insert(cell.text).second) words += static_cast<double>(count_words(cell.text));
      stats.zero_or_one = stats.zero_or_one && (cell.text == "0" || cell.text == "1");
      stats.whole = stats.whole && cell.text.find_first_of(".,eE") == std::string::npos;
    }
    stats.different = static_cast<int64_t>(different.size());
    if (stats.different > 0) stats.words_per_value = words / static_cast<double>(stats.different);
    // A few rows say nothing about constant columns and identifiers.
    const ColumnKind by_cells = stats.cells == CellKind::word ? ColumnKind::category : ColumnKind::number;
    const ColumnKind kind = first.rows < kFewRows ? by_cells : judge_kind(stats, std::nullopt, false).kind;
    sketches.push_back({first.names[i], kind, stats.different});
  }
  return sketches;
}

// Recognises a table in a file whose name does not tell that it is one: data.txt, data.json, data. Throws Error if the
// content is that of a file that Sinew does not read.
std::optional<Detection> detect_unnamed_table(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  const std::string extension = file_extension(path);
  const std::vector<std::byte> head = read_head(path, kTableHead);
  const std::string_view text = text_of(head);
  refuse_foreign_file(path, text);
  const bool words = extension == "txt" || extension == "text" || extension == "md";  // may hold any text
  if (extension == "md" || text.find('\0') != std::string_view::npos) return std::nullopt;
  Detection detection;
  detection.data.train.path = path;
  if (!words && is_json_lines(text)) {
    detection.data.format = "jsonl";
    detection.remarks.push_back("JSON lines");
    return detection;
  }
  if (!words) refuse_foreign_table(path, text);
  const size_t cells = cells_of_unnamed_table(text, head.size() < kTableHead);
  if (cells == 0) return std::nullopt;
  detection.data.format = "csv";
  detection.remarks.push_back("a table, because each line has " + std::to_string(cells) + " cells");
  return detection;
}

// Returns the column that says when the rows were recorded, if there is exactly one column of dates besides the target.
// Rows that are later than those of the training tell how the model will do on rows to come. A date of birth does not.
std::string time_column(const std::vector<ColumnSketch>& sketches, const std::string& target) {
  std::vector<std::string> dates;
  for (const ColumnSketch& sketch : sketches) {
    const std::string name = lower_case(sketch.name);
    const bool birth = name.find("birth") != std::string::npos || name == "dob";
    if (sketch.kind == ColumnKind::date && sketch.name != target && !birth) dates.push_back(sketch.name);
  }
  return dates.size() == 1 ? dates[0] : "";
}

}  // namespace

std::optional<Detection> detect_table(const std::string& path) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  const std::string format = folder ? tables_of_folder(path).format : table_format_of(path);
  if (format.empty()) return folder ? std::nullopt : detect_unnamed_table(path);
  Detection detection;
  detection.data.format = format;
  detection.data.train.path = path;
  if (!folder) return detection;
  const SplitsOfFolder splits = splits_of_folder(path);
  if (splits.train.empty()) return detection;
  detection.data.train.path = splits.train;
  detection.data.val.path = splits.val;
  detection.data.test.path = splits.test;
  std::string remark = "the files of " + path + " are splits: " + file_name(splits.train);
  for (const std::string& file : {splits.val, splits.test}) remark += file.empty() ? "" : ", " + file_name(file);
  for (const std::string& file : splits.others) remark += "; " + file_name(file) + " is left out";
  detection.remarks.push_back(std::move(remark));
  return detection;
}

void choose_target(Detection& table, const Wanted& wanted) {
  const std::string& path = table.data.train.path;
  TableRequest request;
  request.format = table.data.format;
  const std::vector<ColumnSketch> sketches = sketch_columns(path, request);
  if (sketches.size() < 2) {
    throw Error(
        "DATA_BAD_COLUMN",
        path +
            (sketches.empty() ? " has no column" : " has only one column, '" + printable_start(sketches[0].name) + "'"),
        "a table needs a column to predict and a column to predict it from; separate the cells of a line by commas, "
        "semicolons, tabs or |");
  }
  table.remarks.push_back("a table of " + std::to_string(sketches.size()) + " columns");
  const TargetChoice choice = [&] {
    try {
      return judge_target(sketches, wanted.target);
    } catch (const Error& error) {
      throw Error(error.code, path + ": " + error.what(), error.hint);
    }
  }();
  if (choice.name.empty()) {
    throw Error("DATA_TARGET_UNCLEAR", path + ": " + choice.reason,
                "name it: sinew init " + shell_quoted(path) + " --target " + shell_quoted(choice.example));
  }
  table.data.columns.target = choice.name;
  table.remarks.push_back("the column to predict is '" + choice.name + "': " + choice.reason);
  table.data.split_by = time_column(sketches, choice.name);
}

std::optional<Detection> detect_text_folder(const std::string& path) {
  Detection detection;
  detection.data.format = kTextFolder;
  detection.data.columns.target = "label";
  detection.data.train.path = first_folder(path, kTrainNames, has_text_classes);
  if (detection.data.train.path.empty()) {
    if (!has_text_classes(path)) return std::nullopt;
    detection.data.train.path = path;
  } else {
    detection.data.val.path = first_folder(path, kValNames, has_text_classes);
    detection.data.test.path = first_folder(path, kTestNames, has_text_classes);
  }
  detection.remarks.push_back("texts in one folder for each class");
  return detection;
}

std::optional<Detection> detect_text(const std::string& path) {
  const std::string extension = file_extension(path);
  std::error_code ignored;
  if ((extension != "txt" && extension != "text" && extension != "md") ||
      std::filesystem::is_directory(path, ignored)) {
    return std::nullopt;
  }
  const std::string head(text_of(read_head(path, kPreviewBytes)));
  if (head.empty()) throw Error("DATA_EMPTY", path + " is empty", "give a text to learn from");
  Detection detection;
  detection.data.format = "text";
  detection.data.train.path = path;
  if (head.find('\0') != std::string::npos) detection.data.text.tokens = "bytes";
  detection.remarks.push_back(std::string("a text; the model learns to continue it, one ") +
                              (detection.data.text.tokens == "bytes" ? "byte" : "character") + " at a time");
  return detection;
}

}  // namespace sinew::data
