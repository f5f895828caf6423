#include "data/dialect.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "base/error.h"
#include "base/printable.h"
#include "data/files.h"
#include "data/rows.h"

namespace sinew::data {
namespace {

using Cells = std::vector<std::string>;

constexpr size_t kJudgedRows = 1000;
constexpr size_t kCountedRows = 200;
constexpr size_t kMostAbove = 20;  // rows above a header; more are no title

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

// Returns the part of the rows from `first` on that have as many fields as that row.
double consistency_from(const std::vector<Cells>& rows, size_t first) {
  const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(first);
  const auto same = std::count_if(begin, rows.end(), [&](const Cells& row) { return row.size() == begin->size(); });
  return static_cast<double>(same) / static_cast<double>(rows.end() - begin);
}

// Returns whether a row may be above a table of `width` columns: a comment, a title in one cell, the sep= of Excel. A
// word alone above rows of two cells is more likely a header that names one of two columns.
bool may_be_above(const Cells& row, size_t width) {
  if (row[0].starts_with('#')) return row.size() + 1 < width || row.size() == 1;
  if (row[0].starts_with("sep=")) return true;
  const auto filled = std::ranges::count_if(row, [](const std::string& cell) { return !cell.empty(); });
  return filled <= 1 && (width > 2 || (row.size() == 1 && row[0].find(' ') != std::string::npos));
}

// Returns the number of fields of most rows that have several and are no comment; of two numbers that are as frequent,
// that of the later rows.
size_t usual_width(const std::vector<Cells>& rows) {
  std::map<size_t, size_t> sizes;
  for (const Cells& row : rows) sizes[row.size()] += row.size() > 1 && !row[0].starts_with('#') ? 1 : 0;
  size_t width = rows.back().size();
  for (const auto& [size, count] : sizes) width = count > sizes[width] ? size : width;
  return width;
}

// Returns whether the row names the columns of the rows below: each cell is a word that does not occur in its column.
bool names_columns(const std::vector<Cells>& rows, size_t header) {
  for (size_t column = 0; column < rows[header].size(); ++column) {
    const std::string& name = rows[header][column];
    if (name.empty() || parse_number(split_unit(name).number)) return false;
    for (size_t i = header + 1; i < rows.size(); ++i) {
      if (column < rows[i].size() && rows[i][column] == name) return false;
    }
  }
  return true;
}

// Returns how many of the first rows are above the table, whose header is the next one. Returns 0 unless nearly all
// rows from the header on have the same number of fields.
size_t count_rows_above(const std::vector<Cells>& rows) {
  if (rows.size() < 3) return 0;
  const size_t width = usual_width(rows);
  size_t above = 0;
  while (above < rows.size() - 2 && may_be_above(rows[above], width)) ++above;
  const bool table = width > 1 && above <= kMostAbove && rows[above].size() == width &&
                     consistency_from(rows, above) >= 0.95 && names_columns(rows, above);
  return table ? above : 0;
}

struct SeparatorScore {
  char character = ',';
  size_t fields = 1;       // number of fields of the header, and of most rows
  double consistency = 0;  // the part of the rows that have this many
};

// `titled`: rows above the header are possible.
SeparatorScore score_of(char separator, std::string_view head, bool whole, bool titled) {
  const std::vector<Cells> rows = rows_with(head, whole, separator, kCountedRows);
  SeparatorScore score{separator, 1, 0};
  if (rows.empty()) return score;
  const size_t first = titled ? count_rows_above(rows) : 0;
  score.fields = rows[first].size();
  score.consistency = consistency_from(rows, first);
  return score;
}

SeparatorScore best_separator(std::string_view head, bool whole, char usual, bool titled) {
  SeparatorScore best{usual, 1, 0};
  for (const Separator& separator : kSeparators) {
    const SeparatorScore score = score_of(separator.character, head, whole, titled);
    if (score.fields < 2) continue;
    // A few broken lines must not decide. But if only every second line has commas, they do not separate cells.
    const double difference = score.consistency - best.consistency;
    const bool better =
        best.fields < 2 || difference > 0.2 ||
        (difference > -0.2 && (score.character == usual || (best.character != usual && score.fields > best.fields)));
    if (better) best = score;
  }
  return best;
}

char choose_separator(std::string_view head, bool whole, char usual, const std::string& wanted,
                      std::vector<std::string>& evidence) {
  for (const Separator& separator : kSeparators) {
    if (wanted != separator.word) continue;
    evidence.push_back(std::string(separator.plural) + " (data.table.sep)");
    return separator.character;
  }
  SeparatorScore best = best_separator(head, whole, usual, false);
  if (best.fields < 2 || best.consistency < 0.5) {
    const SeparatorScore below_title = best_separator(head, whole, usual, true);
    if (below_title.fields > 1 && below_title.consistency > best.consistency) best = below_title;
  }
  if (best.character != usual)
    evidence.push_back(std::string(separator_of(best.character).plural) + " between cells (the header has " +
                       std::to_string(best.fields - 1) + ")");
  return best.character;
}

// ---- numbers -------------------------------------------------------------------------------------------------------

struct StyleCount {
  NumberStyle style = {};
  int64_t explained = 0;  // cells that are a number in this style and not in the plain one
  int64_t broken = 0;     // cells that are a number in the plain style and not in this one
  int64_t unclear = 0;    // cells such as 1,234 that are a number in this style; they are in no other count
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

// What data.table says about numbers. nullopt: the file decides.
struct WantedStyle {
  std::optional<char> decimal, thousands;
  bool given() const { return decimal || thousands; }
  bool allows(NumberStyle style) const {
    return (!decimal || *decimal == style.decimal) && (!thousands || *thousands == style.thousands);
  }
  // The style of a file whose numbers show nothing.
  NumberStyle usual() const {
    const char group = thousands.value_or('\0');
    return {decimal.value_or(group == '.' ? ',' : '.'), group};
  }
};

WantedStyle wanted_style(const spec::TableOptions& wanted) {
  static const std::map<std::string, char> kCharacters = {
      {"none", '\0'}, {"comma", ','}, {"point", '.'}, {"space", ' '}, {"apostrophe", '\''}};
  WantedStyle style;
  if (wanted.decimal != "auto") style.decimal = kCharacters.at(wanted.decimal);
  if (wanted.thousands != "auto") style.thousands = kCharacters.at(wanted.thousands);
  if (style.decimal && style.decimal == style.thousands)
    throw Error("DATA_BAD_OPTION", "data.table.decimal and data.table.thousands are both " + wanted.decimal,
                "give two different characters, or only one of the two options");
  return style;
}

struct StyleCounts {
  std::array<StyleCount, 8> styles = {{{{'.', '\0'}},
                                       {{',', '\0'}},
                                       {{',', '.'}},
                                       {{',', ' '}},
                                       {{'.', ','}},
                                       {{'.', ' '}},
                                       {{'.', '\''}},
                                       {{',', '\''}}}};
  int64_t points = 0;  // cells such as 1.5
  std::string unclear_example = {};

  void add(const std::string& cell) {
    const std::string_view number = split_unit(cell).number;
    if (number.size() > 40 || number.find_first_of("0123456789") == std::string_view::npos) return;
    const bool plain = parse_number(number).has_value();
    if (plain && number.find('.') == std::string_view::npos) return;
    points += plain ? 1 : 0;
    const bool unclear = !plain && is_unclear(number);
    if (unclear && unclear_example.empty()) unclear_example = cell;
    for (StyleCount& count : styles) {
      const bool fits = parse_number(number, count.style).has_value();
      if (unclear) {
        count.unclear += fits ? 1 : 0;
      } else if (plain) {
        count.broken += fits ? 0 : 1;
      } else if (fits && count.explained++ == 0) {
        count.example = cell;
      }
    }
  }

  // The first of the allowed styles that gains most. data.table always allows one.
  const StyleCount& best(const WantedStyle& wanted) const {
    const StyleCount* found = nullptr;
    for (const StyleCount& count : styles) {
      if (wanted.allows(count.style) && (found == nullptr || count.gain() > found->gain())) found = &count;
    }
    SINEW_CHECK(found != nullptr);
    return *found;
  }

  // The style of a file that has only numbers such as 1,234: `preferred` if it is allowed, otherwise the first allowed
  // one in which these are numbers. nullopt: there is none.
  std::optional<StyleCount> of_unclear(const WantedStyle& wanted, NumberStyle preferred) const {
    std::optional<StyleCount> found;
    for (const StyleCount& count : styles) {
      if (count.unclear == 0 || !wanted.allows(count.style)) continue;
      if (!found || count.style == preferred) found = count;
    }
    return found;
  }
};

// Counts for each style the cells that only it explains, and those that it breaks, and chooses the best that data.table
// allows. "1,234" can be read in two ways. If neither data.table nor another cell tells which one, the separator
// decides: a file with semicolons comes from a country with decimal commas.
NumberStyle choose_numbers(const std::vector<Cells>& rows, char separator, const spec::TableOptions& options,
                           std::vector<std::string>& evidence) {
  const WantedStyle wanted = wanted_style(options);
  StyleCounts counts;
  for (const Cells& row : rows) {
    for (const std::string& cell : row) counts.add(cell);
  }
  const StyleCount& best = counts.best(wanted);
  NumberStyle style = best.explained > 0 ? best.style : wanted.usual();
  int64_t cells = best.explained;
  std::string example = best.example;
  if (best.explained == 0) {
    const bool comma = separator == ';' && counts.points == 0;
    if (const auto unclear = counts.of_unclear(wanted, comma ? NumberStyle{',', '\0'} : NumberStyle{'.', ','})) {
      style = unclear->style;
      cells = unclear->unclear;
      example = counts.unclear_example;
    }
  }
  if (wanted.given()) {
    evidence.push_back(characters_of(style) + " (data.table)");
  } else if (cells > 0) {
    evidence.push_back(characters_of(style) + " (" + with_commas(cells) + " cells such as '" +
                       printable_start(example) + "')");
  }
  return style;
}

// ---- header --------------------------------------------------------------------------------------------------------

bool is_number_cell(const std::string& cell, NumberStyle style) {
  return parse_number(split_unit(cell).number, style).has_value();
}

bool is_sentence(const std::string& cell) {
  return std::ranges::count(cell, ' ') >= 3;
}

// Returns the form of a date, a time or a code: "9999-99-99". Returns "" for a cell with fewer than four digits.
std::string form_of(std::string cell) {
  int digits = 0;
  for (char& c : cell) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) continue;
    c = '9';
    ++digits;
  }
  return digits < 4 ? "" : cell;
}

// Returns whether the first line is data. It must have at least one number. In a column whose cells below are numbers
// (nine of ten), it must have a number or a text such as NA. In any other column, its cell must occur below as well, or
// be a sentence where half of the cells are sentences, or have the form of nine of ten cells.
bool is_data(const std::vector<Cells>& rows, NumberStyle style) {
  const Cells& first = rows.front();
  size_t numbers = 0;
  for (size_t column = 0; column < first.size(); ++column) {
    int64_t below = 0, given = 0, sentences = 0, same_form = 0;
    bool occurs = false;
    const bool sentence = is_sentence(first[column]);
    const std::string form = form_of(first[column]);
    for (size_t row = 1; row < rows.size(); ++row) {
      if (column >= rows[row].size() || is_missing(rows[row][column])) continue;
      ++given;
      below += is_number_cell(rows[row][column], style) ? 1 : 0;
      occurs = occurs || rows[row][column] == first[column];
      sentences += sentence && is_sentence(rows[row][column]) ? 1 : 0;
      same_form += !form.empty() && form_of(rows[row][column]) == form ? 1 : 0;
    }
    const bool of_numbers = given == 0 || below * 10 >= given * 9;
    const bool number = is_number_cell(first[column], style);
    if (of_numbers && !number && !(is_missing(first[column]) && !first[column].empty())) return false;
    const bool alike = occurs || (sentence && sentences * 2 >= given) || same_form * 10 >= given * 9;
    if (!of_numbers && !alike) return false;
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

// Takes the rows that are above the header out of `rows`, and returns how many these are.
size_t take_rows_above(std::vector<Cells>& rows, const std::string& wanted, std::vector<std::string>& evidence) {
  if (wanted != "auto") return 0;
  const size_t above = count_rows_above(rows);
  if (above == 0) return 0;
  evidence.push_back((above == 1 ? "the first line is" : "the first " + std::to_string(above) + " lines are") +
                     " left out, because the header is below: '" + printable_start(rows[0][0]) + "'");
  rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(above));
  return above;
}

}  // namespace

Dialect judge_dialect(std::string_view head, bool whole, char usual, const spec::TableOptions& wanted,
                      const TableStyle* known) {
  Dialect dialect;
  dialect.separator = choose_separator(head, whole, usual, wanted.sep, dialect.evidence);
  std::vector<Cells> rows = rows_with(head, whole, dialect.separator, kJudgedRows);
  if (known != nullptr) {
    dialect.style = *known;
    if (known->header) dialect.rows_above = take_rows_above(rows, wanted.header, dialect.evidence);
    return dialect;
  }
  dialect.style.numbers = choose_numbers(rows, dialect.separator, wanted, dialect.evidence);
  dialect.rows_above = take_rows_above(rows, wanted.header, dialect.evidence);
  dialect.style.header = choose_header(rows, dialect.style.numbers, wanted.header, dialect.evidence);
  return dialect;
}

size_t cells_of_unnamed_table(std::string_view head, bool whole) {
  constexpr size_t kLeastRows = 5, kEveryRow = 1'000'000;
  const SeparatorScore best = best_separator(head, whole, ',', true);
  if (best.fields < 2 || best.consistency < 1) return 0;
  std::vector<Cells> rows = rows_with(head, whole, best.character, kEveryRow);
  std::vector<std::string> evidence;
  const NumberStyle style = choose_numbers(rows, best.character, {}, evidence);
  take_rows_above(rows, "auto", evidence);
  if (rows.size() < kLeastRows || consistency_from(rows, 0) < 1) return 0;
  for (size_t column = 0; column < best.fields; ++column) {
    const auto numbers = std::count_if(rows.begin() + 1, rows.end(),
                                       [&](const Cells& row) { return is_number_cell(row[column], style); });
    if (static_cast<size_t>(numbers) * 10 >= (rows.size() - 1) * 9) return best.fields;
  }
  return 0;
}

std::string default_column_name(size_t index) {
  return "column_" + std::to_string(index + 1);
}

TableHeader resolve_header(const std::vector<HeaderCell>& cells) {
  TableHeader header;
  std::unordered_set<std::string_view> taken;
  for (const HeaderCell& cell : cells) taken.insert(cell.text);
  std::unordered_set<std::string> used;
  // The number of the next copy of a name. A number that was in use stays in use, so no search begins at 1 again: a
  // header of many equal names would take quadratic time.
  std::unordered_map<std::string, int64_t> next_copy;
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
    if (used.contains(name)) {
      int64_t& copy = next_copy[given];
      do {
        name = given + '.' + std::to_string(++copy);
      } while (used.contains(name) || taken.contains(name));
      header.changes.push_back(column + " is another '" + printable_start(given) + "'; it is called '" +
                               printable_start(name) + "'");
    }
    used.insert(name);
    header.names.push_back(std::move(name));
  }
  return header;
}

}  // namespace sinew::data
