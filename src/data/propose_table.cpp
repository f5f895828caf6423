// Implements the detectors of tables and texts. For a table, the detector chooses the column to predict and the columns
// to leave out.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "data/files.h"
#include "data/propose.h"

namespace sinew::data {
namespace {

constexpr size_t kPreviewBytes = 1 << 18;  // bytes that are read from the beginning of a file

constexpr char kObjectLine[] = "write one object on each line: {\"a\": 1, \"b\": \"x\"}";

using Fields = std::vector<std::string>;

// Splits text into rows by RFC 4180. If `whole` is false, the text may end within a row, so the last row is left out.
std::vector<Fields> rows_of(const std::string& text, char separator, bool whole) {
  std::vector<Fields> rows;
  Fields row(1);
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"') {
        row.back() += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        row.back() += text[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"' && row.back().empty()) {
      quoted = true;
    } else if (c == separator) {
      row.emplace_back();
    } else if (c == '\n') {
      if (row.size() > 1 || !row[0].empty()) rows.push_back(row);
      row.assign(1, "");
    } else if (c != '\r') {
      row.back() += c;
    }
  }
  if (whole && (row.size() > 1 || !row[0].empty())) rows.push_back(row);
  return rows;
}

bool is_number(const std::string& text) {
  double number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  return !text.empty() && result.ec == std::errc() && result.ptr == text.data() + text.size();
}

// The column names and the first rows of a table.
struct Preview {
  Fields names;
  std::vector<Fields> rows;
};

Preview preview_lines(const std::string& path, const std::string& head, char separator) {
  std::vector<Fields> rows = rows_of(head, separator, head.size() < kPreviewBytes);
  if (rows.empty()) {
    throw Error("DATA_EMPTY", path + " has no header line", "write the names of the columns in the first line");
  }
  Preview preview{rows.front(), std::vector<Fields>(rows.begin() + 1, rows.end())};
  if (preview.names[0].starts_with("\xEF\xBB\xBF")) preview.names[0].erase(0, 3);
  for (const std::string& name : preview.names) {
    if (is_number(name)) {
      throw Error("DATA_BAD_HEADER", path + ": its first line has the number " + name + " instead of a column name",
                  "add a first line with the names of the columns");
    }
  }
  return preview;
}

Preview preview_objects(const std::string& path, const std::string& head) {
  Preview preview;
  size_t start = 0;
  for (size_t end = head.find('\n'); start < head.size(); end = head.find('\n', start)) {
    if (end == std::string::npos && head.size() == kPreviewBytes) break;
    const std::string line = head.substr(start, end - start);
    start = end == std::string::npos ? head.size() : end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto object = nlohmann::ordered_json::parse(line, nullptr, false);
    if (!object.is_object()) {
      throw Error("DATA_BAD_ROW", path + ": a line is not a JSON object", kObjectLine);
    }
    if (preview.names.empty()) {
      for (const auto& [name, value] : object.items()) preview.names.push_back(name);
    }
    Fields row;
    for (const std::string& name : preview.names) {
      const auto value = object.find(name);
      row.push_back(value == object.end() || value->is_null() ? ""
                    : value->is_string()                      ? value->get<std::string>()
                                                              : value->dump());
    }
    preview.rows.push_back(std::move(row));
  }
  if (preview.names.empty()) throw Error("DATA_EMPTY", path + " holds no JSON object", kObjectLine);
  return preview;
}

std::string guess_target(const Fields& names, std::string& why) {
  constexpr const char* kUsual[] = {"target",  "label",     "labels",  "y",         "outcome",    "survived",
                                    "species", "diagnosis", "price",   "saleprice", "sale_price", "income",
                                    "salary",  "churn",     "quality", "mpg",       "class"};
  for (const char* usual : kUsual) {
    for (const std::string& name : names) {
      if (lower_case(name) == usual) {
        why = "because of its name";
        return name;
      }
    }
  }
  why = "because it is the last column";
  return names.back();
}

// Returns the columns from which no model can learn: ids, and columns in which nearly all words differ.
Fields useless_columns(const Preview& preview, const std::string& target) {
  Fields useless;
  for (size_t c = 0; c < preview.names.size(); ++c) {
    if (preview.names[c] == target) continue;
    const std::string name = lower_case(preview.names[c]);
    std::set<std::string> different;
    size_t words = 0;
    for (const Fields& row : preview.rows) {
      if (c >= row.size() || row[c].empty()) continue;
      different.insert(row[c]);
      words += is_number(row[c]) ? 0 : 1;
    }
    const bool text =
        words > preview.rows.size() / 2 && different.size() > preview.rows.size() / 2 && preview.rows.size() >= 20;
    if (text || name == "id" || name == "index" || name == "passengerid" || name.empty()) {
      useless.push_back(preview.names[c]);
    }
  }
  return useless.size() + 1 < preview.names.size() ? useless : Fields();
}

}  // namespace

std::optional<Detection> detect_table(const std::string& path) {
  static const std::map<std::string, std::string> kFormats = {
      {"csv", "csv"}, {"tsv", "tsv"}, {"tab", "tsv"}, {"jsonl", "jsonl"}, {"ndjson", "jsonl"}};
  const auto format = kFormats.find(file_extension(path));
  std::error_code ignored;
  if (format == kFormats.end() || std::filesystem::is_directory(path, ignored)) return std::nullopt;
  const std::string head = read_text_head(path, kPreviewBytes);
  const Preview preview = format->second == "jsonl" ? preview_objects(path, head)
                                                    : preview_lines(path, head, format->second == "csv" ? ',' : '\t');
  if (preview.names.size() < 2) {
    throw Error("DATA_BAD_COLUMN", path + " has only one column, '" + preview.names[0] + "'",
                "a table needs a column to predict and a column to predict it from");
  }
  Detection detection;
  detection.data.format = format->second;
  detection.data.train.path = path;
  std::string why;
  detection.data.columns.target = guess_target(preview.names, why);
  detection.remarks.push_back("a table of " + std::to_string(preview.names.size()) + " columns");
  detection.remarks.push_back("the column to predict is '" + detection.data.columns.target + "', " + why +
                              "; data.columns.target chooses another");
  detection.data.columns.ignore = useless_columns(preview, detection.data.columns.target);
  for (const std::string& name : detection.data.columns.ignore) {
    detection.remarks.push_back("column '" + name +
                                "' is left out: nearly every row has another value (data.columns.ignore)");
  }
  return detection;
}

std::optional<Detection> detect_text(const std::string& path) {
  const std::string extension = file_extension(path);
  std::error_code ignored;
  if ((extension != "txt" && extension != "text" && extension != "md") ||
      std::filesystem::is_directory(path, ignored)) {
    return std::nullopt;
  }
  const std::string head = read_text_head(path, kPreviewBytes);
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
