// Tables and texts: which column to predict, and which to leave out.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "data/propose.h"

namespace sinew::data {
namespace {

constexpr size_t kLook = 1 << 18;  // bytes of a file that are looked at

using Row = std::vector<std::string>;

// The rows in these bytes by RFC 4180; a last row that may be cut is left out unless `whole`.
std::vector<Row> rows_of(const std::string& text, char separator, bool whole) {
  std::vector<Row> rows;
  Row row(1);
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

// The first rows of a table: names, then values.
struct Look {
  Row names;
  std::vector<Row> rows;
};

Look look_at_lines(const std::string& path, const std::string& head, char separator) {
  std::vector<Row> rows = rows_of(head, separator, head.size() < kLook);
  if (rows.empty()) throw Error(path + " has no header line", "the first line of a table names its columns");
  Look look{rows.front(), std::vector<Row>(rows.begin() + 1, rows.end())};
  if (look.names[0].starts_with("\xEF\xBB\xBF")) look.names[0].erase(0, 3);
  for (const std::string& name : look.names) {
    if (is_number(name)) {
      throw Error(path + ": its first line has the number " + name + " where a column's name should be",
                  "add a first line with the names of the columns");
    }
  }
  return look;
}

Look look_at_objects(const std::string& path, const std::string& head) {
  Look look;
  size_t start = 0;
  for (size_t end = head.find('\n'); start < head.size(); end = head.find('\n', start)) {
    if (end == std::string::npos && head.size() == kLook) break;
    const std::string line = head.substr(start, end - start);
    start = end == std::string::npos ? head.size() : end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto object = nlohmann::ordered_json::parse(line, nullptr, false);
    if (!object.is_object())
      throw Error(path + ": a line is no JSON object", "one object a line: {\"a\": 1, \"b\": \"x\"}");
    if (look.names.empty()) {
      for (const auto& [name, value] : object.items()) look.names.push_back(name);
    }
    Row row;
    for (const std::string& name : look.names) {
      const auto value = object.find(name);
      row.push_back(value == object.end() || value->is_null() ? ""
                    : value->is_string()                      ? value->get<std::string>()
                                                              : value->dump());
    }
    look.rows.push_back(std::move(row));
  }
  if (look.names.empty()) throw Error(path + " holds no JSON object", "one object a line: {\"a\": 1, \"b\": \"x\"}");
  return look;
}

std::string guess_target(const Row& names, std::string& why) {
  constexpr const char* kUsual[] = {"target",  "label",     "labels",  "y",         "outcome",    "survived",
                                    "species", "diagnosis", "price",   "saleprice", "sale_price", "income",
                                    "salary",  "churn",     "quality", "mpg",       "class"};
  for (const char* usual : kUsual) {
    for (const std::string& name : names) {
      if (lower_case(name) == usual) {
        why = "by its name";
        return name;
      }
    }
  }
  why = "because it is the last";
  return names.back();
}

// Columns no model learns from: an id, or words that are nearly all different.
Row useless_columns(const Look& look, const std::string& target) {
  Row useless;
  for (size_t c = 0; c < look.names.size(); ++c) {
    if (look.names[c] == target) continue;
    const std::string name = lower_case(look.names[c]);
    std::set<std::string> different;
    size_t words = 0;
    for (const Row& row : look.rows) {
      if (c >= row.size() || row[c].empty()) continue;
      different.insert(row[c]);
      words += is_number(row[c]) ? 0 : 1;
    }
    const bool text = words > look.rows.size() / 2 && different.size() > look.rows.size() / 2 && look.rows.size() >= 20;
    if (text || name == "id" || name == "index" || name == "passengerid" || name.empty())
      useless.push_back(look.names[c]);
  }
  return useless.size() + 1 < look.names.size() ? useless : Row();
}

}  // namespace

std::optional<Sighting> see_table(const std::string& path) {
  static const std::map<std::string, std::string> kFormats = {
      {"csv", "csv"}, {"tsv", "tsv"}, {"tab", "tsv"}, {"jsonl", "jsonl"}, {"ndjson", "jsonl"}};
  const auto format = kFormats.find(ending_of(path));
  std::error_code ignored;
  if (format == kFormats.end() || std::filesystem::is_directory(path, ignored)) return std::nullopt;
  const std::string head = head_of(path, kLook);
  const Look look = format->second == "jsonl" ? look_at_objects(path, head)
                                              : look_at_lines(path, head, format->second == "csv" ? ',' : '\t');
  if (look.names.size() < 2) {
    throw Error(path + " has one column, '" + look.names[0] + "'",
                "a table needs a column to predict and one to predict it from");
  }
  Sighting sighting;
  sighting.data.format = format->second;
  sighting.data.train.path = path;
  std::string why;
  sighting.data.columns.target = guess_target(look.names, why);
  sighting.remarks.push_back("a table of " + std::to_string(look.names.size()) + " columns");
  sighting.remarks.push_back("the column to predict is '" + sighting.data.columns.target + "', taken " + why +
                             "; another: data.columns.target");
  sighting.data.columns.ignore = useless_columns(look, sighting.data.columns.target);
  for (const std::string& name : sighting.data.columns.ignore) {
    sighting.remarks.push_back("column '" + name +
                               "' is left out: nearly every row has another value (data.columns.ignore)");
  }
  return sighting;
}

std::optional<Sighting> see_text(const std::string& path) {
  const std::string ending = ending_of(path);
  std::error_code ignored;
  if ((ending != "txt" && ending != "text" && ending != "md") || std::filesystem::is_directory(path, ignored))
    return std::nullopt;
  const std::string head = head_of(path, kLook);
  if (head.empty()) throw Error(path + " is empty", "give a text to learn from");
  Sighting sighting;
  sighting.data.format = "text";
  sighting.data.train.path = path;
  if (head.find('\0') != std::string::npos) sighting.data.text.tokens = "bytes";
  sighting.remarks.push_back(std::string("a text; the model learns to continue it, one ") +
                             (sighting.data.text.tokens == "bytes" ? "byte" : "character") + " at a time");
  return sighting;
}

}  // namespace sinew::data
