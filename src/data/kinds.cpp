#include "data/kinds.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "data/files.h"

namespace sinew::data {
namespace {

constexpr int64_t kFewCodes = 50;       // a column with more different whole numbers is one of numbers
constexpr int64_t kAlwaysFew = 10;      // so many different words are categories, however few rows there are
constexpr double kWordsOfText = 3;      // mean words of a value that make it a text if most values differ
constexpr double kWordsOfLongText = 8;  // or if there are many values

constexpr auto kNames = std::to_array<std::string_view>(
    {"number", "code", "category", "boolean", "date", "text", "identifier", "constant", "empty"});

// Returns the last word of a name: "id" of "user_id", "userId" and "USER ID".
std::string last_word(const std::string& column) {
  size_t begin = column.size();
  while (begin > 0) {
    const auto c = static_cast<unsigned char>(column[begin - 1]);
    if (std::isalnum(c) == 0 && c < 0x80) break;
    const bool starts_word =
        std::isupper(c) != 0 && begin < column.size() && std::islower(static_cast<unsigned char>(column[begin])) != 0;
    --begin;
    if (starts_word) break;
  }
  return lower_case(column.substr(begin));
}

std::string counted(int64_t count, const char* what) {
  return with_commas(count) + ' ' + what;
}

KindChoice judge_words(const ColumnStats& stats, bool listed) {
  const int64_t given = stats.given();
  const bool mostly_different = stats.different > kAlwaysFew && stats.different > given / 2;
  const std::string differ = counted(stats.different, "different values in ") + counted(given, "rows");
  if (mostly_different && stats.words_per_value >= kWordsOfText)
    return {ColumnKind::text, differ + ", each of several words"};
  if (stats.different > kAlwaysFew * 10 && stats.words_per_value >= kWordsOfLongText)
    return {ColumnKind::text, "its values are long texts"};
  const bool named = names_identifier(stats.name) && stats.different == given && given > 1;
  if ((mostly_different || named) && !listed)
    return {ColumnKind::identifier, differ + (named ? ", and its name is that of an identifier" : "") +
                                        "; data.columns.text or data.columns.categorical keeps it"};
  return {ColumnKind::category, counted(stats.different, "different words")};
}

KindChoice judge_numbers(const ColumnStats& stats, bool listed) {
  const int64_t given = stats.given();
  if (stats.zero_or_one) return {ColumnKind::boolean, "all values are 0 or 1"};
  if (!listed && stats.whole && given > 1 && stats.different == given && names_identifier(stats.name))
    return {ColumnKind::identifier,
            "its name is that of an identifier, and every row has another value; "
            "data.columns.numeric keeps it"};
  const bool few = stats.different <= kFewCodes && stats.different * 5 <= given && stats.different > 2;
  if (stats.whole && few && (names_code(stats.name) || names_identifier(stats.name)))
    return {ColumnKind::code, counted(stats.different,
                                      "different whole numbers, and its name is that of a code; "
                                      "data.columns.numeric makes a number of it")};
  return {ColumnKind::number, stats.whole ? "whole numbers" : "numbers"};
}

std::string declared_reason(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::number: return "data.columns.numeric";
    case ColumnKind::boolean: return "data.columns.boolean";
    case ColumnKind::date: return "data.columns.date";
    case ColumnKind::text: return "data.columns.text";
    default: return "data.columns.categorical";
  }
}

}  // namespace

std::string_view to_string(ColumnKind kind) {
  return kNames[static_cast<size_t>(kind)];
}

std::optional<ColumnKind> kind_named(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<ColumnKind>(found - kNames.begin());
}

bool is_left_out(ColumnKind kind) {
  return kind == ColumnKind::identifier || kind == ColumnKind::constant || kind == ColumnKind::empty;
}

bool can_be_made_of(ColumnKind kind, CellKind cells) {
  switch (kind) {
    case ColumnKind::number:
    case ColumnKind::code: return cells == CellKind::number;
    case ColumnKind::boolean: return cells == CellKind::boolean || cells == CellKind::number;
    case ColumnKind::date: return cells == CellKind::date;
    case ColumnKind::category:
    case ColumnKind::text: return cells == CellKind::word;
    case ColumnKind::identifier:
    case ColumnKind::constant:
    case ColumnKind::empty: break;
  }
  return true;
}

bool names_identifier(const std::string& column) {
  static constexpr auto kWords =
      std::to_array<std::string_view>({"id", "ids", "uuid", "guid", "index", "idx", "rownum"});
  const std::string lower = lower_case(column);
  return is_one_of(last_word(column), kWords) || lower == "passengerid" || lower == "userid" || lower == "customerid" ||
         lower == "row" || lower == "unnamed: 0";
}

bool names_code(const std::string& column) {
  static constexpr auto kWords = std::to_array<std::string_view>(
      {"code",   "zip",      "zipcode", "postcode", "postal",     "type", "category", "cat",  "class",  "kind",
       "region", "district", "state",   "cluster",  "department", "dept", "store",    "shop", "branch", "sku"});
  return is_one_of(last_word(column), kWords);
}

KindChoice judge_kind(const ColumnStats& stats, std::optional<ColumnKind> declared, bool listed) {
  if (stats.given() == 0) return {ColumnKind::empty, "no training row has a value"};
  if (stats.different == 1 && stats.missing == 0) return {ColumnKind::constant, "all training rows have one value"};
  if (declared) return {*declared, declared_reason(*declared)};
  switch (stats.cells) {
    case CellKind::boolean: return {ColumnKind::boolean, ""};
    case CellKind::date: return {ColumnKind::date, ""};
    case CellKind::number: return judge_numbers(stats, listed);
    case CellKind::word: break;
  }
  return judge_words(stats, listed);
}

}  // namespace sinew::data
