// Decides what the cells of a column are.
#include <algorithm>
#include <map>
#include <set>

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

struct NumberCount {
  std::string unit;
  int64_t count = 0, zeros = 0;  // zeros: cells with leading zeros, which are also in `count`
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
  int64_t count = 0;
  std::string why;  // why day and month have this order, if the values do not tell it
};

// Chooses the order of day and month (3/4 is a day in April or in March), if both orders fit equally many cells.
DateChoice order_of(Samples cells, int64_t count, const std::string& dates) {
  if (dates != "auto") return {dates == "day_first" ? DateForm::day_first : DateForm::month_first, count, ""};
  std::set<std::string> first, second;
  char separator = '\0';
  for (const CellSample& cell : cells) {
    const DayAndMonth parts = split_day(cell.text);
    first.insert(parts.first);
    second.insert(parts.second);
    separator = parts.separator;
  }
  const std::string unclear = "; no day is above 12, so the order of day and month is a guess: ";
  const std::string decide = ", data.table.dates decides it";
  if (separator == '.')
    return {DateForm::day_first, count, unclear + "the day is first, as usual with points" + decide};
  if (first.size() == 1 && second.size() > 1)
    return {DateForm::day_first, count, unclear + "the first number never changes, so it is the day" + decide};
  return {DateForm::month_first, count, unclear + "the month is first" + decide};
}

DateChoice choose_date(Samples cells, const std::string& dates, bool compact) {
  DateChoice best;
  for (const DateForm form : {DateForm::iso, DateForm::named, DateForm::compact}) {
    if (form == DateForm::compact && !compact) continue;
    if (const int64_t count = count_dates(cells, form); count > best.count) best = {form, count, ""};
  }
  const int64_t day = count_dates(cells, DateForm::day_first), month = count_dates(cells, DateForm::month_first);
  if (std::max(day, month) <= best.count) return best;
  if (day == month) return order_of(cells, day, dates);
  if (dates != "auto")
    return {dates == "day_first" ? DateForm::day_first : DateForm::month_first, dates == "day_first" ? day : month, ""};
  return {day > month ? DateForm::day_first : DateForm::month_first, std::max(day, month), ""};
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
    return {format, of_first(date.count, all, "dates like " + described(format).substr(12)) + date.why};
  }
  const NumberCount numbers = count_numbers(cells, style);
  if (nearly_all(numbers.count, all)) {
    if (numbers.zeros * 20 >= all)
      return {CellFormat{CellKind::word, style},
              with_commas(numbers.zeros) + " of " + with_commas(all) + " values have leading zeros, so they are codes"};
    const CellFormat format{CellKind::number, style, numbers.unit};
    return {format, of_first(numbers.count, all, numbers.unit.empty() ? "numbers" : "numbers with " + numbers.unit)};
  }
  if (are_booleans(cells)) return {CellFormat{CellKind::boolean, style}, of_first(all, all, "one of two truth values")};
  if (numbers.count == 0) return {CellFormat{CellKind::word, style}, of_first(all, all, "words")};
  return {CellFormat{CellKind::word, style}, of_first(numbers.count, all, "numbers, the others words")};
}

std::optional<CellFormat> format_of_kind(CellKind kind, Samples cells, NumberStyle style, const std::string& dates) {
  CellFormat format{kind, style};
  if (kind == CellKind::number) format.unit = count_numbers(cells, style).unit;
  if (kind == CellKind::date) {
    const DateChoice choice = choose_date(cells, dates, true);
    if (choice.count == 0 && !cells.empty()) return std::nullopt;
    format.date = choice.form;
  }
  return format;
}

}  // namespace sinew::data
