// Private to data/: how the text of one cell of a table becomes a number, a truth value or a date.
//
// A column's format is decided once, from the first rows of the training file, by a pure function that returns its
// reason. All later cells of the column are read in this format, also those of other files. A cell that does not fit is
// an error that names its place, or counts as missing (data.columns.on_bad_cell).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sinew::data {

// How the numbers of a file are written.
struct NumberStyle {
  char decimal = '.';
  // ',' '.' ' ' or '\''; '\0': none. ' ' stands for every kind of space, '\'' also for U+2019.
  char thousands = '\0';
  bool plain() const { return decimal == '.' && thousands == '\0'; }
  bool operator==(const NumberStyle&) const = default;
};

// Returns the whole text as a number in this style. Groups of digits must have three digits, except the first.
std::optional<double> parse_number(std::string_view text, NumberStyle style);

// A number with a percent sign or a currency: "12 %", "-$5", "3.50 EUR".
struct UnitText {
  std::string_view number;  // without the unit and, if `negative`, without the sign
  std::string_view unit;    // "" if there is none
  bool negative = false;    // a sign was before the unit, or it was the true minus sign U+2212
};
UnitText split_unit(std::string_view text);

// The forms of a date. A time may follow each: 2024-05-01T12:30:00+02:00, 5/1/2024 3:07 PM. An offset is subtracted.
enum class DateForm : uint8_t {
  iso,          // 2024-05-01, 2024/5/1
  day_first,    // 1.5.2024, 01/05/24
  month_first,  // 5/1/2024
  named,        // 1 May 2024, May 1, 2024, 01-May-24
  compact       // 20240501
};
// Returns seconds since 1970-01-01, or nullopt if the text is no date of this form. Years are 1 to 9999. If a year has
// two digits, 69 to 99 mean 19xx, and 0 to 68 mean 20xx.
std::optional<double> parse_date(std::string_view text, DateForm form);
constexpr double kSecondsOfDay = 86400;

// Returns whether a person may take the text for a number although it is a word: "12 kg", "(3.50)", "1.234,50",
// "14:05".
bool resembles_number(std::string_view text);

// Returns whether the text is a truth value: true/false, yes/no, t/f, y/n, on/off, 1/0, in upper or lower case.
std::optional<bool> parse_boolean(std::string_view text);

// Returns whether the two words, in lower case, are the two values of one pair, such as yes and no.
bool are_opposites(std::string_view one, std::string_view other);

enum class CellKind : uint8_t { number, boolean, date, word };

struct CellFormat {
  CellKind kind = CellKind::word;
  NumberStyle numbers = {};
  std::string unit = {};  // of numbers: the unit that every cell has
  DateForm date = DateForm::iso;
  bool strings = false;  // of numbers: a string of JSON may hold one
  bool operator==(const CellFormat&) const = default;
};

// Returns the cell's value: a number, 0 or 1, or seconds since 1970. Not for words. The number may be infinite.
std::optional<double> parse_cell(std::string_view text, const CellFormat& format);
// Describes a cell of this format, for messages: "a number with $".
std::string described(const CellFormat& format);

// A cell of the first rows that is not missing.
struct CellSample {
  std::string text;
  bool is_word = false;  // a string of JSON: not a number, even if it is "1"
};

struct CellJudgement {
  std::optional<CellFormat> format;  // nullopt: there are no cells, so the first cell decides
  std::string reason;
  std::string doubt = {};  // what the user should know about the order of day and month; empty: it is certain
};
// Decides what the cells of a column are. `name`: of the column. `dates`: data.table.dates. The rule: nine of ten cells
// must be numbers (or dates), so one wrong cell does not turn a column of numbers into words. Truth values and short
// columns have no tolerance. All cells together decide the order of day and month, not a single one.
CellJudgement judge_cells(const std::string& name, std::span<const CellSample> cells, NumberStyle numbers,
                          const std::string& dates);
// Decides the unit or the form of a column whose kind the user has declared; it has no other reason. Strings of JSON
// may be numbers then. Without a format, no cell is of this kind. Then the doubt says it if data.table.dates
// contradicts the cells.
CellJudgement judge_declared(CellKind kind, std::span<const CellSample> cells, NumberStyle numbers,
                             const std::string& dates);

}  // namespace sinew::data
