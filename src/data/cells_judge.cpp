// Decides what the cells of a column are.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "data/cells.h"
#include "data/files.h"
#include "data/rows.h"

namespace sinew::data {
namespace {

using Samples = std::span<const CellSample>;

// Returns whether `count` of `all` cells are enough to decide. Below ten cells, all must agree.
bool nearly_all(int64_t count, int64_t all) {
  return count > 0 && count * 10 >= all * 9;
}

std::string of_first(int64_t count, int64_t all, const std::string& what) {
  return (count == all ? "all " + with_commas(all) : with_commas(count) + " of " + with_commas(all)) + " values are " +
         what;
}

// "007": a code or a postcode, whose zeros matter.
bool has_leading_zero(std::string_view text) {
  return text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

// Returns whether the text is an integer that no 64-bit floating-point number equals.
bool is_inexact_integer(std::string_view text) {
  constexpr size_t kExactDigits = 15;
  if (text.starts_with('-')) text.remove_prefix(1);
  if (text.size() <= kExactDigits || text.find_first_not_of("0123456789") != std::string_view::npos) return false;
  const auto number = parse_number(text);
  if (!number || text.size() > 300) return false;
  char exact[320];
  std::snprintf(exact, sizeof exact, "%.0f", *number);
  return exact != text;
}

// Returns whether the cells have at most 20 different values.
bool are_few(Samples cells) {
  constexpr size_t kFew = 20;
  std::set<std::string_view> values;
  for (const CellSample& cell : cells) {
    if (values.size() > kFew) return false;
    values.insert(cell.text);
  }
  return values.size() <= kFew;
}

struct NumberCount {
  std::string unit;
  int64_t count = 0;
  int64_t zeros = 0, inexact = 0;  // of these: with leading zeros, and integers that a number cannot hold
};

// Counts the cells that are numbers with the most frequent unit.
NumberCount count_numbers(Samples cells, NumberStyle style) {
  std::map<std::string, NumberCount, std::less<>> counts;
  for (const CellSample& cell : cells) {
    if (cell.is_word) continue;
    const UnitText split = split_unit(cell.text);
    if (!parse_number(split.number, style)) continue;
    NumberCount& found = counts[std::string(split.unit)];
    ++found.count;
    found.zeros += has_leading_zero(split.number) ? 1 : 0;
    found.inexact += is_inexact_integer(split.number) ? 1 : 0;
  }
  NumberCount best;
  for (auto& [unit, count] : counts) {
    count.unit = unit;
    if (count.count > best.count) best = count;
  }
  return best;
}

int64_t count_dates(Samples cells, DateForm form) {
  return std::count_if(cells.begin(), cells.end(),
                       [&](const CellSample& cell) { return parse_date(cell.text, form).has_value(); });
}

// The text before the first and the second separator of 3/4/2024.
struct DayAndMonth {
  std::string first, second;
  char separator = '\0';
};
DayAndMonth split_day(const std::string& text) {
  const size_t one = text.find_first_of("./-");
  const size_t two = one == std::string::npos ? one : text.find_first_of("./-", one + 1);
  if (two == std::string::npos) return {};
  return {text.substr(0, one), text.substr(one + 1, two - one - 1), text[one]};
}

struct DateChoice {
  DateForm form = DateForm::iso;
  int64_t count = 0;          // cells that are dates of this form
  std::string doubt = {};     // why this form is a guess
  std::string conflict = {};  // why the count is too small, if nearly all cells are dates in one of the two orders
};

// What the cells tell about the order of day and month in 3/4/2024. Cells that are no such date tell nothing.
struct OrderEvidence {
  int64_t dates = 0, points = 0;                   // such dates; of these, those with points: 3.4.2024
  int64_t day_first = 0, month_first = 0;          // dates in one order alone, because a day is above 12
  std::string day_example, month_example;          // the first of these
  std::map<std::string, int64_t> firsts, seconds;  // how often each text is the first number, and the second

  int64_t clear() const { return day_first + month_first; }
  int64_t fitting(DateForm form) const { return dates - (form == DateForm::day_first ? month_first : day_first); }
};

OrderEvidence order_evidence(Samples cells) {
  OrderEvidence found;
  for (const CellSample& cell : cells) {
    const bool day = parse_date(cell.text, DateForm::day_first).has_value();
    const bool month = parse_date(cell.text, DateForm::month_first).has_value();
    if (!day && !month) continue;
    const DayAndMonth parts = split_day(cell.text);
    ++found.dates;
    ++found.firsts[parts.first];
    ++found.seconds[parts.second];
    found.points += parts.separator == '.' ? 1 : 0;
    if (!month && found.day_first++ == 0) found.day_example = cell.text;
    if (!day && found.month_first++ == 0) found.month_example = cell.text;
  }
  return found;
}

std::string days_above_12(const OrderEvidence& found) {
  if (found.clear() == 0) return "no day is above 12";
  if (found.day_first > 0 && found.month_first > 0)
    return with_commas(found.day_first) + " of " + with_commas(found.dates) +
           " values can only have the day first, such as '" + found.day_example + "', and " +
           with_commas(found.month_first) + " only the month, such as '" + found.month_example + "'";
  return "only " + with_commas(found.clear()) + " of " + with_commas(found.dates) + " values " +
         (found.clear() == 1 ? "has" : "have") + " a day above 12, such as '" + found.day_example +
         found.month_example + "'";
}

// A usage that tells the order of all cells, and in words which one.
std::optional<std::pair<DateForm, std::string>> order_by_usage(const OrderEvidence& found) {
  const auto hardly_changes = [&](const std::map<std::string, int64_t>& texts) {
    return std::any_of(texts.begin(), texts.end(),
                       [&](const auto& text) { return nearly_all(text.second, found.dates); });
  };
  if (found.points * 2 > found.dates) return {{DateForm::day_first, "the day is first, as usual with points"}};
  const bool first = hardly_changes(found.firsts), second = hardly_changes(found.seconds);
  if (first && !second) return {{DateForm::day_first, "the first number hardly changes, so it is the day"}};
  if (second && !first) return {{DateForm::month_first, "the second number hardly changes, so it is the day"}};
  return std::nullopt;
}

// Chooses the order of day and month from all cells. Days above 12 decide if more than one of ten dates has one, and
// nine of ten of these agree. Otherwise the few that there are may be wrong cells. The order is then a guess, and a
// usage of all cells counts more than they do.
DateChoice choose_order(const OrderEvidence& found, const std::string& dates) {
  const auto choice = [&](DateForm form, const std::string& doubt) {
    return DateChoice{form, found.fitting(form), doubt};
  };
  if (dates != "auto") return choice(dates == "day_first" ? DateForm::day_first : DateForm::month_first, "");
  const DateForm by_days = found.day_first > found.month_first ? DateForm::day_first : DateForm::month_first;
  const bool many = found.clear() * 10 > found.dates;
  if (many && nearly_all(std::max(found.day_first, found.month_first), found.clear())) return choice(by_days, "");
  const auto usage = many ? std::nullopt : order_by_usage(found);
  const DateForm form = usage ? usage->first : by_days;
  return choice(form, days_above_12(found) + ", so the order of day and month is a guess: " +
                          (usage                           ? usage->second
                           : form == DateForm::month_first ? "the month is first"
                                                           : "the day is first") +
                          ", data.table.dates decides it");
}

std::string conflict_of(const OrderEvidence& found, const std::string& dates) {
  if (dates == "auto") return days_above_12(found);
  const bool day = dates == "day_first";
  return "data.table.dates is " + dates + ", but " + with_commas(day ? found.month_first : found.day_first) + " of " +
         with_commas(found.dates) + " values can only have the " + (day ? "month" : "day") + " first, such as '" +
         (day ? found.month_example : found.day_example) + "'";
}

DateChoice choose_date(Samples cells, const std::string& dates, bool compact) {
  DateChoice best;
  for (const DateForm form : {DateForm::iso, DateForm::named, DateForm::compact}) {
    if (form == DateForm::compact && !compact) continue;
    if (const int64_t count = count_dates(cells, form); count > best.count) best = {form, count};
  }
  const OrderEvidence found = order_evidence(cells);
  if (std::max(found.fitting(DateForm::day_first), found.fitting(DateForm::month_first)) <= best.count) return best;
  DateChoice choice = choose_order(found, dates);
  const auto all = static_cast<int64_t>(cells.size());
  if (nearly_all(found.dates, all) && !nearly_all(choice.count, all)) choice.conflict = conflict_of(found, dates);
  return choice;
}

// Returns whether every cell is one of the two words of a pair, and both occur. 1 and 0 are numbers.
bool are_booleans(Samples cells) {
  std::set<std::string> words;
  for (const CellSample& cell : cells) {
    words.insert(lower_case(cell.text));
    if (words.size() > 2) return false;
  }
  return words.size() == 2 && !words.contains("1") && are_opposites(*words.begin(), *words.rbegin());
}

bool names_a_date(const std::string& column) {
  const std::string name = lower_case(column);
  return name.find("date") != std::string::npos || name.find("day") != std::string::npos;
}

}  // namespace

CellJudgement judge_cells(const std::string& name, Samples cells, NumberStyle style, const std::string& dates) {
  const auto all = static_cast<int64_t>(cells.size());
  if (all == 0) return {std::nullopt, "the first rows have no value"};
  const DateChoice date = choose_date(cells, dates, names_a_date(name));
  if (nearly_all(date.count, all) && (date.form != DateForm::compact || date.count == all)) {
    const CellFormat format{CellKind::date, style, "", date.form};
    return {format, of_first(date.count, all, "dates like " + described(format).substr(12)), date.doubt};
  }
  if (!date.conflict.empty())
    return {CellFormat{CellKind::word, style}, of_first(all, all, "words"),
            date.conflict + ", so all are read as words"};
  const NumberCount numbers = count_numbers(cells, style);
  if (nearly_all(numbers.count, all)) {
    if (numbers.zeros * 20 >= all)
      return {CellFormat{CellKind::word, style},
              with_commas(numbers.zeros) + " of " + with_commas(all) + " values have leading zeros, so they are codes"};
    if (numbers.inexact * 2 >= all || (numbers.inexact > 0 && are_few(cells)))
      return {CellFormat{CellKind::word, style},
              with_commas(numbers.inexact) + " of " + with_commas(all) +
                  " values have more digits than a number can hold, so they are codes",
              "its numbers have more digits than a number can hold; data.columns.numeric rounds them"};
    const CellFormat format{CellKind::number, style, numbers.unit};
    return {format, of_first(numbers.count, all, numbers.unit.empty() ? "numbers" : "numbers with " + numbers.unit)};
  }
  if (are_booleans(cells)) return {CellFormat{CellKind::boolean, style}, of_first(all, all, "one of two truth values")};
  if (numbers.count == 0) return {CellFormat{CellKind::word, style}, of_first(all, all, "words")};
  return {CellFormat{CellKind::word, style}, of_first(numbers.count, all, "numbers, the others words")};
}

CellJudgement judge_declared(CellKind kind, Samples cells, NumberStyle style, const std::string& dates) {
  CellFormat format{kind, style};
  format.strings = kind == CellKind::number;
  if (kind == CellKind::number) format.unit = count_numbers(cells, style).unit;
  if (kind != CellKind::date) return {format, ""};
  const DateChoice choice = choose_date(cells, dates, true);
  if (choice.count == 0 && !cells.empty()) return {std::nullopt, "", choice.conflict};
  format.date = choice.form;
  return {format, "", choice.doubt};
}

}  // namespace sinew::data
