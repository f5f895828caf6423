// Private to data/: the files of a table, as UTF-8 text with their dialects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "data/charset.h"
#include "data/dialect.h"
#include "data/files.h"

namespace sinew::data {

// How the caller wants a table to be read.
struct TableRequest {
  std::string format = "csv";         // csv, tsv, jsonl or text_folder
  spec::TableOptions options = {};    // data.table
  bool skip_corrupt = false;          // data.on_corrupt: skip: rows that do not parse are counted and left out
  bool bad_cells_missing = false;     // data.columns.on_bad_cell: missing
  const TableStyle* style = nullptr;  // of the training file; nullptr: the file itself decides
  // For hints: who can do what about an error, and in which column.
  enum class Reader : uint8_t { training, evaluation, prediction } reader = Reader::training;
  std::string target = {};     // the column to predict
  bool number_target = false;  // it must be a number
};

struct TableText {
  std::string path;
  std::vector<std::byte> bytes;  // UTF-8
  Dialect dialect;               // csv and tsv
  bool typed = false;            // CSV of a Parquet file: words are in quotes, and numbers are not
  std::string said;              // one line about encoding and dialect; empty if both are the usual ones
  std::string_view text() const { return text_of(bytes); }
};

constexpr size_t kTableHead = 1 << 18;  // bytes from which encoding and dialect are decided

// Decodes the bytes of a file. If `whole` is false, they are only its beginning, and a character that is cut at their
// end is left out. Throws Error if they are no text, for example those of an Excel workbook.
TableText decode_table(const std::string& path, std::vector<std::byte> bytes, bool whole, const TableRequest& request);

// Returns the files that a path means, sorted by name: one file, the files of a folder whose names end in the format's
// extension, or those whose names fit the pattern in the last part of the path (* and ?). Throws Error if there is
// none.
std::vector<std::string> table_files(const std::string& path, const std::string& format);
// Says how many files are read as one table, and what else is in the folder. Returns "" if `path` is one file.
std::string said_of_files(const std::string& path, const std::vector<std::string>& files);
// Returns csv, tsv or jsonl by the extension of a name, otherwise "".
std::string table_format_of(const std::string& path);
// The format of the tables in a folder, and how many there are. Other files, such as a README, do not matter. Without a
// format, the folder has no tables. Throws Error if it has tables of several formats.
struct TablesOfFolder {
  std::string format;
  int64_t count = 0;
};
TablesOfFolder tables_of_folder(const std::string& folder);

// The tables of a folder that are named as its splits: train.csv, beside val.csv (or valid, validation, dev) or
// test.csv. All paths are empty if there is no such train.csv.
struct SplitsOfFolder {
  std::string train, val, test;
  std::vector<std::string> others;  // tables of the folder that are no split
};
SplitsOfFolder splits_of_folder(const std::string& folder);

}  // namespace sinew::data
