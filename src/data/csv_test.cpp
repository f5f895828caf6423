#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "data/dialect.h"
#include "data/fixtures.h"
#include "data/rows.h"

namespace sinew::data {
namespace {

using Rows = std::vector<std::vector<std::string>>;

struct ReadBack {
  std::vector<std::string> header, problems;
  Rows rows;
  std::vector<int64_t> lines;
};

ReadBack read_all(const std::string& text, char delimiter = ',') {
  const std::string name = "t.csv";
  const auto reader = read_csv(text, name, delimiter);
  ReadBack back{reader->columns(), {}, {}, {}};
  Row row;
  while (reader->next(row)) {
    back.lines.push_back(row.line);
    if (!row.problem.empty()) {
      back.problems.push_back(std::to_string(row.line) + ": " + row.problem);
      continue;
    }
    auto& fields = back.rows.emplace_back();
    for (const Field& field : row.fields) fields.emplace_back(field.text);
  }
  return back;
}

TEST(Csv, ReadsQuotesLineEndsBlankLinesAndByteOrderMarks) {
  const ReadBack back = read_all(
      "\xEF\xBB\xBF"
      "a,\"b \"\"x\"\"\",c\r\n1,\"two\r\nlines\",3\n\n\"\",\" kept \",  trimmed \r4, \"quoted, after a space\" "
      ",6\n7,,");
  EXPECT_EQ(back.header, (std::vector<std::string>{"a", "b \"x\"", "c"}));
  EXPECT_EQ(
      back.rows,
      (Rows{
          {"1", "two\r\nlines", "3"}, {"", " kept ", "trimmed"}, {"4", "quoted, after a space", "6"}, {"7", "", ""}}));
  EXPECT_EQ(back.lines, (std::vector<int64_t>{2, 5, 6, 7}));
  EXPECT_TRUE(back.problems.empty());
}

TEST(Csv, ReportsBrokenRowsAndReadsTheNextOne) {
  const ReadBack back = read_all("a,b\n1,2\n3\n4,5,6\n\"x\"y,7\n8,9\n");
  EXPECT_EQ(back.rows, (Rows{{"1", "2"}, {"8", "9"}}));
  ASSERT_EQ(back.problems.size(), 3U);
  EXPECT_EQ(back.problems[0], "3: has 1 field, but the header has 2");
  EXPECT_EQ(back.problems[1], "4: has 3 fields, but the header has 2");
  EXPECT_EQ(back.problems[2], "5: has text after the closing quote of field 1");
}

TEST(Csv, ThrowsWithTheLineWhereItCannotContinue) {
  EXPECT_ERROR(error_of([] { read_all("a,b\n1,2\n3,\"open\n5,6\n"); }), "DATA_BAD_ROW", "t.csv:3:");
  EXPECT_ERROR(error_of([] { read_all(""); }), "DATA_EMPTY", "t.csv:");
  EXPECT_ERROR(error_of([] { read_all("\"a\"x,b\n"); }), "DATA_BAD_HEADER", "t.csv:1:1: has text after");
  EXPECT_ERROR(error_of([] { read_all("a,b\xFF\n"); }), "DATA_NOT_UTF8", "t.csv:1:3: the name of column 2");
}

TEST(Csv, NamesColumnsThatTheHeaderDoesNotName) {
  const std::string name = "t.csv";
  const auto header_of = [&](const std::string& text, bool header = true) {
    const TableHeader found = read_csv(text, name, ',', header)->header();
    return std::pair(found.names, found.changes.size());
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(header_of("a,b\n"), (std::pair{Names{"a", "b"}, size_t{0}}));
  EXPECT_EQ(header_of(",a,\n"), (std::pair{Names{"column_1", "a", "column_3"}, size_t{2}}));
  EXPECT_EQ(header_of("x,x,x.1,x\n"), (std::pair{Names{"x", "x.2", "x.1", "x.3"}, size_t{2}}));
  EXPECT_EQ(header_of("a, b ,\" c \"\n"), (std::pair{Names{"a", "b", "c"}, size_t{2}}));
  EXPECT_EQ(header_of("1,2\n3,4\n", false), (std::pair{Names{"column_1", "column_2"}, size_t{0}}));
  EXPECT_TRUE(read_csv(std::string_view(",a\n"), name, ',')->header().unnamed_first);
}

// The search for a free name must not begin again for each column.
TEST(Csv, NamesManyColumnsOfOneName) {
  const std::string name = "t.csv";
  std::string text = "x.7";
  for (int i = 0; i < 100'000; ++i) text += ",x";
  text += '\n';
  const auto reader = read_csv(text, name, ',', true);
  const std::vector<std::string>& names = reader->columns();
  ASSERT_EQ(names.size(), 100'001U);
  EXPECT_EQ(names[1], "x");
  EXPECT_EQ(names[7], "x.6");
  EXPECT_EQ(names[8], "x.8") << "x.7 is the name of another column";
  EXPECT_EQ(names.back(), "x.100000");
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
}

TEST(Csv, WithoutAHeaderTheFirstLineIsARow) {
  const std::string name = "t.csv", text =
                                        "\xEF\xBB\xBF"
                                        "1,2\n3,4\n";
  const auto reader = read_csv(text, name, ',', false);
  Row row;
  ASSERT_TRUE(reader->next(row));
  EXPECT_EQ(row.line, 1);
  EXPECT_EQ(row.fields[0].text, "1");
  ASSERT_TRUE(reader->next(row));
  EXPECT_FALSE(reader->next(row));
}

TEST(Csv, LeavesOutTheRowsAboveTheHeader) {
  const std::string name = "t.csv", text = "Title\n\n\"two\nlines\",\n a ,b\n1,2\n";
  const auto reader = read_csv(text, name, ',', true, 2);
  EXPECT_EQ(reader->columns(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(reader->header().line, 5);
  Row row;
  ASSERT_TRUE(reader->next(row));
  EXPECT_EQ(row.line, 6);
  EXPECT_FALSE(reader->next(row));
}

TEST(Csv, TheEndOfAFileInDosIsNoRow) {
  const std::string name = "t.csv", text = "a,b\n1,2\n\x1A";
  const auto reader = read_csv(text, name, ',');
  Row row;
  EXPECT_TRUE(reader->next(row));
  EXPECT_FALSE(reader->next(row));
}

// A quote too many in line 2, and another one below, take the rows between them into one cell.
TEST(Csv, CountsTheRowsWithinQuotes) {
  const auto quoted = [](const std::string& text) {
    const std::string name = "t.csv";
    const auto reader = read_csv(text, name, ',');
    Row row;
    EXPECT_TRUE(reader->next(row));
    EXPECT_EQ(row.problem, "");
    return row.quoted_rows;
  };
  EXPECT_EQ(quoted("a,b,c\n1,\"x,y\n2,x,y\n3,x,y\n4,x\",y\n"), 2);
  EXPECT_EQ(quoted("a,b,c\n1,\"x,y\n2,x,y\n4,x\",y\n"), 0) << "one line alone may be a note with two commas";
  EXPECT_EQ(quoted("a,b,c\n1,\"A note\nof several, \nlines, which, commas\nend\",y\n"), 0);
}

TEST(Csv, FindsThePlaceOfACell) {
  const std::string name = "t.csv";
  const std::string text = "a,b,c\n\n1,\"two\r\nlines \"\"q\"\"\",x\r\n\xC3\xA9\xC3\xA9,  \"b\",,\n";
  const auto reader = read_csv(text, name, ',');
  Row row;
  ASSERT_TRUE(reader->next(row));
  EXPECT_EQ(reader->place_of(row, 0), "3:1");
  EXPECT_EQ(reader->place_of(row, 1), "3:3");
  EXPECT_EQ(reader->place_of(row, 2), "4:14");
  ASSERT_TRUE(reader->next(row));
  EXPECT_EQ(reader->place_of(row, 1), "5:6") << "columns count characters";
  EXPECT_EQ(reader->place_of(row, 2), "5:10");
}

// Rows of awkward fields, written by RFC 4180, must read back unchanged.
TEST(Csv, ReadsBackWhatWasWritten) {
  RandomStream draws(random_key({1}));
  const std::string alphabet = "ab,\"\n\r\t;0\xC3\xA9";
  for (int trial = 0; trial < 2000; ++trial) {
    const char delimiter = trial % 2 == 0 ? ',' : '\t';
    const auto columns = 1 + draws.below(20);
    Rows rows;
    std::string text;
    for (size_t c = 0; c < columns; ++c)
      text += (c == 0 ? "name" : std::string(1, delimiter) + "name") + std::to_string(c);
    text += '\n';
    for (size_t r = 0; r < draws.below(6); ++r) {
      auto& row = rows.emplace_back();
      for (size_t c = 0; c < columns; ++c) {
        std::string field, quoted = "\"";
        for (size_t i = draws.below(draws.below(4) == 0 ? 60 : 6); i > 0; --i) field += alphabet[draws.below(9)];
        for (const char letter : field) quoted += letter == '"' ? "\"\"" : std::string(1, letter);
        row.push_back(field);
        const bool plain =
            !field.empty() && field.find_first_of(",\"\n\r\t") == std::string::npos && draws.below(2) == 0;
        text += (c == 0 ? "" : std::string(1, delimiter)) + (plain ? field : quoted + '"');
      }
      text += draws.below(2) == 0 ? "\n" : "\r\n";
    }
    const ReadBack back = read_all(text, delimiter);
    ASSERT_EQ(back.rows, rows) << text;
    ASSERT_TRUE(back.problems.empty());
  }
}

// The reader and Python's csv module must read the same rows from the same text. SINEW_PYTHON names an interpreter.
TEST(Csv, AgreesWithPython) {
  const char* python = std::getenv("SINEW_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "SINEW_PYTHON is not set";
  Folder folder;
  folder.write("read.py",
               "import csv, json, sys\n"
               "for i in range(int(sys.argv[2])):\n"
               "    with open(f'{sys.argv[1]}/{i}.csv', newline='', encoding='utf-8') as f:\n"
               "        try:\n"
               "            print(json.dumps([r for r in csv.reader(f, strict=True) if r]))\n"
               "        except csv.Error as e:\n"
               "            print(json.dumps(str(e)))\n");
  RandomStream draws(random_key({2}));
  constexpr int kFiles = 300;
  std::vector<std::string> texts;
  for (int i = 0; i < kFiles; ++i) {
    std::string text = "h,i\n";
    const std::string alphabet = "ab,,\"\"\"\n\nc1";
    for (size_t n = draws.below(40); n > 0; --n) text += alphabet[draws.below(alphabet.size())];
    folder.write(std::to_string(i) + ".csv", text);
    texts.push_back(text);
  }
  const std::string command =
      std::string(python) + ' ' + folder.path("read.py") + ' ' + folder.path() + ' ' + std::to_string(kFiles);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  ASSERT_TRUE(pipe);
  int read = 0;
  for (const std::string& text : texts) {
    char* line = nullptr;
    size_t size = 0;
    ASSERT_GT(getline(&line, &size, pipe.get()), 0);
    const auto expected = nlohmann::json::parse(line);
    free(line);
    ReadBack back;
    bool thrown = false;
    try {
      back = read_all(text);
    } catch (const Error&) {
      thrown = true;
    }
    if (expected.is_string()) {
      EXPECT_TRUE(thrown || !back.problems.empty()) << text;
      continue;
    }
    Rows wanted;
    size_t ragged = 0;
    for (size_t r = 1; r < expected.size(); ++r) {
      if (expected[r].size() == 2) {
        wanted.push_back(expected[r].get<std::vector<std::string>>());
      } else {
        ++ragged;
      }
    }
    ASSERT_FALSE(thrown) << text;
    EXPECT_EQ(back.rows, wanted) << text;
    EXPECT_EQ(back.problems.size(), ragged) << text;
    ++read;
  }
  EXPECT_GT(read, kFiles / 10);
}

// The defaults of pandas.read_csv, and a few more.
TEST(Missing, KnowsTheUsualSpellings) {
  for (const char* text :
       {"",    "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>",
        "N/A", "NA",   "NULL",     "NaN", "None",    "n/a",      "nan",  "null", "?",      "na",      "NAN"})
    EXPECT_TRUE(is_missing(text)) << text;
  for (const char* text : {"0", "none", "N", "NAs", "-", "1.#INF", "1.5", "nil", "missing", " "})
    EXPECT_FALSE(is_missing(text)) << text;
}

TEST(ParseNumber, AgreesWithStrtod) {
  RandomStream draws(random_key({3}));
  for (int i = 0; i < 60000; ++i) {
    std::string text = draws.below(3) == 0 ? "-" : "";
    for (size_t n = draws.below(12); n > 0; --n) text += static_cast<char>('0' + draws.below(10));
    if (draws.below(3) != 0) text += '.';
    for (size_t n = draws.below(14); n > 0; --n) text += static_cast<char>('0' + draws.below(10));
    if (draws.below(5) == 0) text += "e" + std::to_string(static_cast<int>(draws.below(700)) - 350);
    if (draws.below(20) == 0) text += "x";
    char* end = nullptr;
    const double expected = std::strtod(text.c_str(), &end);
    const bool whole = !text.empty() && *end == '\0';
    const auto value = parse_number(text);
    ASSERT_EQ(value.has_value(), whole) << text;
    // Below the smallest normal number, the result may be 0 or the nearest subnormal. A table treats both as 0.
    if (whole && (std::abs(expected) > 1e-300 || expected == 0)) {
      ASSERT_EQ(*value, expected) << text;
    }
  }
}

TEST(ParseNumber, RefusesWords) {
  for (const char* word :
       {"", "-", "+", ".", "-.", "1.2.3", "1,5", "0x10", "1e", "e5", "--1", "1 2", "five", "1_000", "$5"}) {
    EXPECT_FALSE(parse_number(word)) << word;
  }
  EXPECT_EQ(parse_number("+2.5"), 2.5);
  EXPECT_EQ(parse_number("5."), 5.0);
  EXPECT_EQ(parse_number(".5"), 0.5);
  EXPECT_TRUE(std::isinf(*parse_number("-1e999")));
  EXPECT_TRUE(std::isinf(*parse_number("inf")));
}

TEST(Jsonl, ReadsFlatObjectsNullsAndNewKeys) {
  const std::string text =
      "\xEF\xBB\xBF{\"a\": 1, \"b\": \"x \\u00e9\"}\n\n{\"b\": null, \"c\": true, \"a\": -2.5e3}\r\n{}\n"
      "{\"a\": [1]}\n{\"a\": {\"q\": 1}}\n{\"a\": 1, \"a\": 2}\n[1]\n5\n{\"a\": 1\n{\"z\": }\n{\"c\": \"\"}";
  const std::string name = "t.jsonl";
  const auto reader = read_jsonl(text, name);
  Row row;
  Rows rows;
  std::vector<std::string> problems;
  while (reader->next(row)) {
    if (!row.problem.empty()) {
      problems.push_back(std::to_string(row.line) + ": " + row.problem);
      continue;
    }
    auto& fields = rows.emplace_back();
    for (const Field& field : row.fields) {
      fields.push_back((field.kind == Field::Kind::missing ? "?"
                        : field.kind == Field::Kind::text  ? "t"
                                                           : "p") +
                       std::string(field.text));
    }
  }
  EXPECT_EQ(reader->columns(), (std::vector<std::string>{"a", "b", "c"}));  // "z" occurs only in a broken row
  EXPECT_EQ(rows, (Rows{{"p1", "tx é"}, {"p-2.5e3", "?", "ttrue"}, {"?", "?", "?"}, {"?", "?", "?"}}));
  ASSERT_EQ(problems.size(), 7U);
  EXPECT_EQ(problems[0], "5: 'a' holds a list; values must be flat");
  EXPECT_EQ(problems[1], "6: 'a' holds an object; values must be flat");
  EXPECT_EQ(problems[2], "7: has the key 'a' twice");
  EXPECT_EQ(problems[3], "8: is not an object");
  EXPECT_EQ(problems[4], "9: is not an object");
  EXPECT_HAS(problems[5], "10: column 8: not JSON");
  EXPECT_HAS(problems[6], "11: column 7: not JSON");
}

}  // namespace
}  // namespace sinew::data
