#include "data/table_files.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/disk.h"
#include "base/error.h"
#include "base/file_pattern.h"
#include "base/joined.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "data/columnar.h"
#include "data/foreign_file.h"
#include "data/text_folder.h"

namespace sinew::data {
namespace {

namespace fs = std::filesystem;

struct Named {
  std::string_view extension, format;
};
constexpr auto kExtensions = std::to_array<Named>({{"csv", "csv"},
                                                   {"tsv", "tsv"},
                                                   {"tab", "tsv"},
                                                   {"jsonl", "jsonl"},
                                                   {"ndjson", "jsonl"},
                                                   {"parquet", "csv"},
                                                   {"feather", "csv"},
                                                   {"arrow", "csv"}});

// Leaves out a character that is cut at the end of the first part of a file.
void trim_cut_character(std::vector<std::byte>& head, Charset charset) {
  if (charset == Charset::utf16le || charset == Charset::utf16be) {
    head.resize(head.size() / 2 * 2);
    if (head.size() < 2) return;
    const auto high = static_cast<uint8_t>(head[head.size() - (charset == Charset::utf16le ? 1 : 2)]);
    if (high >= 0xD8 && high < 0xDC) head.resize(head.size() - 2);
    return;
  }
  if (charset != Charset::utf8) return;
  const size_t bad = first_invalid_utf8(text_of(head));
  if (bad != std::string_view::npos && head.size() - bad < 4) head.resize(bad);
}

// Returns ".csv.gz" of "data.csv.gz".
std::string endings_of(const std::string& file) {
  const fs::path name = fs::path(file).filename();
  return name.stem().extension().string() + name.extension().string();
}

}  // namespace

std::string table_format_of(const std::string& path) {
  const std::string extension = file_extension(path);
  const auto found = std::find_if(kExtensions.begin(), kExtensions.end(),
                                  [&](const Named& named) { return named.extension == extension; });
  return found == kExtensions.end() ? "" : std::string(found->format);
}

TablesOfFolder tables_of_folder(const std::string& folder) {
  TablesOfFolder tables;
  std::string first;
  for (const std::string& file : files_of_pattern((fs::path(folder) / "*").string())) {
    const std::string format = table_format_of(file);
    if (format.empty()) continue;
    if (tables.count > 0 && (format != tables.format || is_columnar(file) != is_columnar(first)))
      throw Error("DATA_WRONG_FORMAT",
                  folder + ": holds tables of several formats, such as " + file_name(first) + " and " + file_name(file),
                  "name those of one format by a pattern: " +
                      shell_quoted((fs::path(folder) / ("*" + endings_of(first))).string()));
    first = file;
    tables.format = format;
    ++tables.count;
  }
  return tables;
}

TableText decode_table(const std::string& path, std::vector<std::byte> bytes, bool whole, const TableRequest& request) {
  const std::span<const std::byte> head = std::span(bytes).first(std::min(bytes.size(), kTableHead));
  refuse_foreign_file(path, text_of(head));
  if (request.format == kTextFolder) return text_as_row(path, std::move(bytes), request);
  if (request.format != "jsonl" || table_format_of(path) == "jsonl") refuse_foreign_table(path, text_of(head));
  const bool all = whole && head.size() == bytes.size();
  TableText text;
  text.path = path;
  const std::string wanted = request.format == "jsonl" ? "utf-8" : request.options.encoding;
  const CharsetJudgement charset = judge_charset(head, all, wanted);
  if (!whole) trim_cut_character(bytes, charset.charset);
  // The reader of JSON lines names the line of a broken character itself.
  if (request.format == "jsonl") {
    text.bytes = std::move(bytes);
    return text;
  }
  text.bytes = to_utf8(std::move(bytes), charset.charset, path);
  const std::string_view start = text.text().substr(0, kTableHead);
  if (start.find('\0') != std::string_view::npos) {
    throw Error("DATA_WRONG_FORMAT",
                path + ':' + line_and_column(start, start.find('\0')) + ": holds a zero byte, so it is not a text file",
                "check that the file is a table; if it is UTF-16, convert it with iconv -f utf-16le -t utf-8, or set "
                "data.table.encoding in the job file");
  }
  const bool full = all && start.size() == text.bytes.size();
  if (is_columnar(path)) {
    text.typed = true;
    text.said = file_name(path) + " is read with pyarrow";
    return text;
  }
  text.dialect = judge_dialect(start, full, request.format == "tsv" ? '\t' : ',', request.options, request.style);
  std::vector<std::string> phrases;
  if (!charset.evidence.empty()) phrases.push_back(charset.evidence);
  phrases.insert(phrases.end(), text.dialect.evidence.begin(), text.dialect.evidence.end());
  if (!phrases.empty()) text.said = file_name(path) + " is read with: " + joined(phrases, "; ");
  return text;
}

std::vector<std::string> table_files(const std::string& path, const std::string& format) {
  if (format == kTextFolder) return text_files(path);
  std::error_code code;
  std::vector<std::string> files;
  const bool pattern = is_file_pattern(path);
  if (pattern) {
    files = files_of_pattern(path);
  } else if (fs::is_directory(path, code)) {
    const std::string every = (fs::path(path) / "*").string();
    files = files_of_pattern(every);
    std::erase_if(files, [&](const std::string& file) { return table_format_of(file) != format; });
  } else {
    return {path};
  }
  if (!files.empty()) return files;
  throw Error(
      "DATA_MISSING_FILES",
      path + (pattern ? ": no file has a name that fits" : ": the folder has no file whose name ends in ." + format),
      "check the path: it is relative to the directory in which the command runs");
}

std::string said_of_files(const std::string& path, const std::vector<std::string>& files) {
  std::error_code code;
  std::vector<std::string> others;
  if (fs::is_directory(path, code)) {
    for (const Disk::Entry& entry : system_disk().list(path)) {
      const bool read = std::ranges::binary_search(files, (fs::path(path) / entry.name).string());
      if (!read && !entry.name.starts_with('.')) others.push_back(entry.name);
    }
  } else if (!is_file_pattern(path)) {
    return "";
  }
  std::string said =
      path + ": " + std::to_string(files.size()) + (files.size() == 1 ? " file" : " files") + " read as one table";
  if (others.empty()) return said;
  std::ranges::sort(others);
  const bool one = others.size() == 1;
  return said + "; " +
         (one ? "'" : with_commas(static_cast<int64_t>(others.size())) + " other entries are left out: '") +
         printable_start(others.front()) + (one ? "' is left out" : "', ...");
}

SplitsOfFolder splits_of_folder(const std::string& folder) {
  SplitsOfFolder found;
  for (const std::string& file : files_of_pattern((fs::path(folder) / "*").string())) {
    if (table_format_of(file).empty()) continue;
    std::string stem = lower_case(file_name(file));
    stem = stem.substr(0, stem.find('.'));
    const bool val = std::ranges::find(kValNames, stem) != kValNames.end();
    std::string* const split = stem == "train"  ? &found.train
                               : val            ? &found.val
                               : stem == "test" ? &found.test
                                                : nullptr;
    if (split != nullptr && split->empty()) {
      *split = file;
    } else {
      found.others.push_back(file);
    }
  }
  if (found.train.empty() || (found.val.empty() && found.test.empty())) return {};
  return found;
}

}  // namespace sinew::data
