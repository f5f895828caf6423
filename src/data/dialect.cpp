#include "data/dialect.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/error.h"
#include "base/printable.h"
#include "data/files.h"
#include "data/rows.h"

namespace sinew::data {
namespace {

using Cells = std::vector<std::string>;

constexpr size_t kJudgedRows = 1000;
constexpr size_t kCountedRows = 200;

struct Separator {
  char character;
  const char* word;    // data.table.sep
  const char* plural;  // for the evidence
};
constexpr auto kSeparators = std::to_array<Separator>(
    {{',', "comma", "commas"}, {';', "semicolon", "semicolons"}, {'\t', "tab", "tabs"}, {'|', "pipe", "pipes"}});

const Separator& separator_of(char character) {
  return *std::find_if(kSeparators.begin(), kSeparators.end(),
                       [&](const Separator& separator) { return separator.character == character; });
}

// Returns up to `most` rows of the text as they would be with this separator. Leaves out the last row if it may be cut.
std::vector<Cells> rows_with(std::string_view head, bool whole, char separator, size_t most) {
  std::vector<Cells> rows;
  const std::string name;
  try {
    const auto reader = read_csv(head, name, separator, false);
    Row row;
    while (rows.size() <= most && reader->next(row)) {
      Cells& cells = rows.emplace_back();
      for (const Field& field : row.fields) cells.emplace_back(field.text);
    }
  } catch (const Error&) {  // a quote that never closes; the reader of the whole file reports it
  }
  if (!whole && rows.size() > 1 && rows.size() <= most) rows.pop_back();
  if (rows.size() > most) rows.resize(most);
  return rows;
}

struct SeparatorScore {
  char character = ',';
  size_t fields = 1;       // number of fields of the header, and of most rows
  double consistency = 0;  // the part of the rows that have this many
};

SeparatorScore score_of(char separator, std::string_view head, bool whole) {
  const std::vector<Cells> rows = rows_with(head, whole, separator, kCountedRows);
  SeparatorScore score{separator, 1, 0};
  if (rows.empty()) return score;
  score.fields = rows[0].size();
  const auto same =
      std::count_if(rows.begin(), rows.end(), [&](const Cells& row) { return row.size() == score.fields; });
  score.consistency = static_cast<double>(same) / static_cast<double>(rows.size());
  return score;
}

char choose_separator(std::string_view head, bool whole, char usual, const std::string& wanted,
                      std::vector<std::string>& evidence) {
  for (const Separator& separator : kSeparators) {
    if (wanted != separator.word) continue;
    evidence.push_back(std::string(separator.plural) + " (data.table.sep)");
    return separator.character;
  }
  SeparatorScore best{usual, 1, 0};
  for (const Separator& separator : kSeparators) {
    const SeparatorScore score = score_of(separator.character, head, whole);
    if (score.fields < 2) continue;
    // A few broken lines must not decide, but a text that has a comma in every second line is not a table of commas.
    const double difference = score.consistency - best.consistency;
    const bool better =
        best.fields < 2 || difference > 0.2 ||
        (difference > -0.2 && (score.character == usual || (best.character != usual && score.fields > best.fields)));
    if (better) best = score;
  }
  if (best.character != usual)
    evidence.push_back(std::string(separator_of(best.character).plural) + " between cells (the first line has " +
                       std::to_string(best.fields - 1) + ")");
  return best.character;
}

// ---- numbers -------------------------------------------------------------------------------------------------------

struct StyleCount {
  NumberStyle style;
  int64_t explained = 0;  // cells that are a number in this style and not in the plain one
  int64_t broken = 0;     // cells that are a number in the plain style and not in this one
  std::string example = {};
  int64_t gain() const { return explained - broken; }
};

std::string characters_of(NumberStyle style) {
  return std::string(style.decimal == ',' ? "decimal commas" : "decimal points") +
         (style.thousands == '\0' ? "" : ", groups of thousands");
}

// Returns whether a comma in the text may be a decimal comma or separate thousands: 1,234.
bool is_unclear(std::string_view number) {
  if (number.starts_with('-')) number.remove_prefix(1);
  const size_t comma = number.find(',');
  return comma > 0 && comma < 4 && number.size() - comma == 4 && number[0] != '0' &&
         number.find_first_not_of("0123456789,") == std::string_view::npos;
}

NumberStyle wanted_style(const spec::TableOptions& wanted, NumberStyle found) {
  if (wanted.decimal != "auto") found.decimal = wanted.decimal == "comma" ? ',' : '.';
  static const std::map<std::string, char> kThousands = {
      {"none", '\0'}, {"comma", ','}, {"point", '.'}, {"space", ' '}, {"apostrophe", '\''}};
  if (const auto given = kThousands.find(wanted.thousands); given != kThousands.end()) found.thousands = given->second;
  if (found.thousands == found.decimal) found.thousands = '\0';
  return found;
}

struct StyleCounts {
  std::array<StyleCount, 7> styles = {
      {{{',', '\0'}}, {{',', '.'}}, {{',', ' '}}, {{'.', ','}}, {{'.', ' '}}, {{'.', '\''}}, {{',', '\''}}}};
  int64_t unclear = 0, points = 0;  // cells such as 1,234 and such as 1.5
  std::string unclear_example = {};

  void add(const std::string& cell) {
    const std::string_view number = split_unit(cell).number;
    if (number.size() > 40 || number.find_first_of("0123456789") == std::string_view::npos) return;
    const bool plain = parse_number(number).has_value();
    if (plain && number.find('.') == std::string_view::npos) return;
    points += plain ? 1 : 0;
    if (!plain && is_unclear(number)) {
      if (unclear++ == 0) unclear_example = cell;
      return;
    }
    for (StyleCount& count : styles) {
      const bool fits = parse_number(number, count.style).has_value();
      if (plain && !fits) ++count.broken;
      if (plain || !fits) continue;
      if (count.explained++ == 0) count.example = cell;
    }
  }
};

// Counts for each style the cells that only it explains, and those that it breaks, and chooses the best. "1,234" can be
// read in two ways. If nothing else tells, the separator decides: a file with semicolons comes from a country with
// decimal commas.
NumberStyle choose_numbers(const std::vector<Cells>& rows, char separator, const spec::TableOptions& wanted,
                           std::vector<std::string>& evidence) {
  StyleCounts counts;
  for (const Cells& row : rows) {
    for (const std::string& cell : row) counts.add(cell);
  }
  StyleCount best;
  for (const StyleCount& count : counts.styles) {
    if (count.gain() > best.gain()) best = count;
  }
  if (best.explained == 0 && counts.unclear > 0) {
    const bool comma = separator == ';' && counts.points == 0;
    best = {{comma ? ',' : '.', comma ? '\0' : ','}, counts.unclear, 0, counts.unclear_example};
  }
  const NumberStyle style = wanted_style(wanted, best.style);
  if (wanted.decimal != "auto" || wanted.thousands != "auto") {
    evidence.push_back(characters_of(style) + " (data.table)");
  } else if (best.explained > 0) {
    evidence.push_back(characters_of(style) + " (" + with_commas(best.explained) + " cells such as '" +
                       printable_start(best.example) + "')");
  }
  return style;
}

// ---- header --------------------------------------------------------------------------------------------------------

bool is_number_cell(const std::string& cell, NumberStyle style) {
  return parse_number(split_unit(cell).number, style).has_value();
}

// Returns whether the first line is data. It must have at least one number. In a column whose cells below are numbers
// (nine of ten), it must have a number or a text such as NA. In any other column, its cell must occur below as well.
bool is_data(const std::vector<Cells>& rows, NumberStyle style) {
  const Cells& first = rows.front();
  size_t numbers = 0;
  for (size_t column = 0; column < first.size(); ++column) {
    int64_t below = 0, given = 0;
    bool occurs = false;
    for (size_t row = 1; row < rows.size(); ++row) {
      if (column >= rows[row].size() || is_missing(rows[row][column])) continue;
      ++given;
      below += is_number_cell(rows[row][column], style) ? 1 : 0;
      occurs = occurs || rows[row][column] == first[column];
    }
    const bool of_numbers = given == 0 || below * 10 >= given * 9;
    const bool number = is_number_cell(first[column], style);
    if (of_numbers && !number && !(is_missing(first[column]) && !first[column].empty())) return false;
    if (!of_numbers && !occurs) return false;
    numbers += number ? 1 : 0;
  }
  return numbers > 0;
}

bool choose_header(const std::vector<Cells>& rows, NumberStyle style, const std::string& wanted,
                   std::vector<std::string>& evidence) {
  if (wanted == "first_line") return true;
  const bool none = wanted == "none" || (!rows.empty() && is_data(rows, style));
  if (none)
    evidence.push_back(wanted == "none" ? "no header line (data.table.header)"
                                        : "no header line (the first line has numbers where the others have them; the "
                                          "columns are column_1, column_2, ...)");
  return !none;
}

}  // namespace

Dialect judge_dialect(std::string_view head, bool whole, char usual, const spec::TableOptions& wanted,
                      const TableStyle* known) {
  Dialect dialect;
  dialect.separator = choose_separator(head, whole, usual, wanted.sep, dialect.evidence);
  if (known != nullptr) {
    dialect.style = *known;
    return dialect;
  }
  const std::vector<Cells> rows = rows_with(head, whole, dialect.separator, kJudgedRows);
  dialect.style.numbers = choose_numbers(rows, dialect.separator, wanted, dialect.evidence);
  dialect.style.header = choose_header(rows, dialect.style.numbers, wanted.header, dialect.evidence);
  return dialect;
}

std::string default_column_name(size_t index) {
  return "column_" + std::to_string(index + 1);
}

TableHeader resolve_header(const std::vector<HeaderCell>& cells) {
  TableHeader header;
  std::set<std::string> taken;
  for (const HeaderCell& cell : cells) taken.insert(std::string(cell.text));
  std::set<std::string> used;
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string column = "column " + std::to_string(i + 1);
    std::string name(cells[i].text);
    const size_t first = name.find_first_not_of(" \t"), last = name.find_last_not_of(" \t");
    name = first == std::string::npos ? "" : name.substr(first, last - first + 1);
    if (name.empty()) {
      name = default_column_name(i);
      header.unnamed_first = header.unnamed_first || i == 0;
      header.changes.push_back(column + " has no name; it is called '" + name + "'");
    } else if (cells[i].had_spaces || name.size() != cells[i].text.size()) {
      header.changes.push_back("the name of " + column + " has spaces around it; it is read as '" +
                               printable_start(name) + "'");
    }
    const std::string given = name;
    for (int copy = 1; used.contains(name) || (copy > 1 && taken.contains(name)); ++copy)
      name = given + '.' + std::to_string(copy);
    if (name != given)
      header.changes.push_back(column + " is another '" + printable_start(given) + "'; it is called '" +
                               printable_start(name) + "'");
    used.insert(name);
    header.names.push_back(std::move(name));
  }
  return header;
}

}  // namespace sinew::data
