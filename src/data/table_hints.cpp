// Says what the reader of an error about a table can do. A hint names only what has an effect: a job file or an
// override of `sinew eval` can set options, but `sinew predict` takes none, and a trained model keeps the kinds of its
// columns.
#include <cmath>

#include "data/table.h"

namespace sinew::data {
namespace {

// "; or set data.table.dates: day_first, if the day is first in all dates" for a date that would fit then; else "".
std::string other_order(const TableRequest& request, const CellFormat& format, std::string_view text) {
  const bool day_first = format.date == DateForm::day_first;
  if (format.kind != CellKind::date || request.options.dates != "auto") return "";
  if (!day_first && format.date != DateForm::month_first) return "";
  if (!parse_date(text, day_first ? DateForm::month_first : DateForm::day_first)) return "";
  return std::string("; or set data.table.dates: ") +
         (day_first ? "month_first, if the month" : "day_first, if the day") + " is first in all dates";
}

// Says that a number is written in another style than those of the first rows; else "".
std::string other_style(const CellFormat& format, std::string_view text) {
  if (format.kind != CellKind::number) return "";
  const bool comma = format.numbers.decimal == ',';
  const char decimal = comma ? '.' : ',', thousands = comma ? ',' : '.';
  const std::string_view number = split_unit(text).number;
  if (!parse_number(number, {decimal, '\0'}) && !parse_number(number, {decimal, thousands})) return "";
  return std::string("write all numbers of the table alike: this one has a decimal ") + (comma ? "point" : "comma") +
         ", and those of the first rows have decimal " + (comma ? "commas" : "points");
}

}  // namespace

std::string bad_row_hint(const TableRequest& request) {
  switch (request.reader) {
    case TableRequest::Reader::training: return "correct the line, or leave such lines out with data.on_corrupt: skip";
    case TableRequest::Reader::evaluation:
      return "correct the line, or add data.on_corrupt=skip to the command, which leaves such lines out";
    case TableRequest::Reader::prediction: break;
  }
  return "correct the line, or delete it";
}

std::string bad_cell_hint(const TableRequest& request, const Column& column, std::string_view text) {
  const bool target = column.name == request.target;
  if (const auto number = parse_cell(text, column.format); number && std::isfinite(*number))
    return "write the numbers of the column in a larger unit, so that all are below 3.4e38";
  if (std::string style = other_style(column.format, text); !style.empty()) return style;
  switch (request.reader) {
    case TableRequest::Reader::training: {
      const std::string first = "correct the cell" + other_order(request, column.format, text);
      const std::string skip = "data.on_corrupt: skip leaves ";
      if (!target)
        return first + "; or in the job file: data.columns.on_bad_cell: missing counts such cells as missing, " + skip +
               "their rows out, and data.columns.categorical, in place of another list, makes categories of the column";
      return first + "; or in the job file: " + skip + "such rows out" +
             (request.number_target ? "" : ", and data.columns.categorical makes classes of the values");
    }
    case TableRequest::Reader::evaluation:
      return std::string("correct the cell; or add to the command ") +
             (target ? "" : "data.columns.on_bad_cell=missing, which counts such cells as missing, or ") +
             "data.on_corrupt=skip, which leaves " + (target ? "such" : "their") + " rows out";
    case TableRequest::Reader::prediction: break;
  }
  return "correct the cell, or delete its row; a model that is trained with data.columns.on_bad_cell: missing counts "
         "such cells as missing";
}

}  // namespace sinew::data
