#include "data/dialect.h"

#include "data/charset.h"
#include "data/fixtures.h"
#include "data/table_files.h"

namespace sinew::data {
namespace {

Dialect judge(std::string_view text, char usual = ',', const spec::TableOptions& wanted = {}) {
  return judge_dialect(text, true, usual, wanted);
}

std::string evidence(const Dialect& dialect) {
  std::string all;
  for (const std::string& phrase : dialect.evidence) all += phrase + "; ";
  return all;
}

TEST(Dialect, Separators) {
  EXPECT_EQ(judge("a,b\n1,2\n").separator, ',');
  EXPECT_EQ(evidence(judge("a,b\n1,2\n")), "") << "nothing unusual";
  EXPECT_EQ(judge("a;b\n1,5;2,5\n3,5;4,5\n").separator, ';');
  EXPECT_HAS(evidence(judge("a;b\n1;2\n")), "semicolons");
  EXPECT_EQ(judge("a\tb\nx, y\t2\n").separator, '\t');
  EXPECT_EQ(judge("a|b\n1|2\n").separator, '|');
  EXPECT_EQ(judge("a\tb\n1\t2\n", '\t').separator, '\t');
  EXPECT_EQ(judge("a,b\n1,2\n", '\t').separator, ',') << "commas in a .tsv";
  EXPECT_EQ(judge("a,b\n\"x;y;z\",1\n\"q\",2\n").separator, ',');
  EXPECT_EQ(judge("name,note\nx,\"a; b\"\ny,c; d\nz,e; f\n").separator, ',');
  EXPECT_EQ(judge("a;b\n\"x\n,,\";1\n\"y\";2\n").separator, ';') << "line breaks within quotes";
  EXPECT_EQ(judge("only\n1\n2\n").separator, ',');
  spec::TableOptions pipe;
  pipe.sep = "pipe";
  EXPECT_EQ(judge("a,b|c\n1,2|3\n", ',', pipe).separator, '|');
}

TEST(Dialect, NumbersAreReadAsTheFileWritesThem) {
  const auto style = [](std::string_view text, const spec::TableOptions& wanted = {}) {
    return judge(text, ',', wanted).style.numbers;
  };
  EXPECT_EQ(style("a,b\n1.5,2\n"), NumberStyle());
  EXPECT_EQ(style("a;b\n1,5;2\n"), (NumberStyle{',', '\0'}));
  EXPECT_EQ(style("a;b\n1.234,5;2\n12;3,5\n"), (NumberStyle{',', '.'}));
  EXPECT_EQ(style("a,b\n\"1,234.5\",2\n"), (NumberStyle{'.', ','}));
  EXPECT_EQ(style("a;b\n1 234,5;2\n"), (NumberStyle{',', ' '}));
  EXPECT_EQ(style("a,b\n1'234.5,2\n"), (NumberStyle{'.', '\''}));
  // 1,234 alone: with semicolons a decimal comma, otherwise thousands.
  EXPECT_EQ(style("a;b\n1,234;x\n"), (NumberStyle{',', '\0'}));
  EXPECT_EQ(style("a,b\n\"1,234\",x\n"), (NumberStyle{'.', ','}));
  EXPECT_EQ(style("a;b\n1,234;5.5\n"), (NumberStyle{'.', ','})) << "5.5 shows the decimal point";
  EXPECT_EQ(style("a;b\n0,123;x\n"), (NumberStyle{',', '\0'})) << "no group begins with 0";
  // Addresses look like groups of thousands, but reading them so would break the other numbers.
  EXPECT_EQ(style("a,b\n192.168.100.100,1.5\n192.168.100.101,2.25\n"), NumberStyle());
  spec::TableOptions wanted;
  wanted.decimal = "point";
  wanted.thousands = "comma";
  EXPECT_EQ(style("a;b\n1,234;x\n", wanted), (NumberStyle{'.', ','}));
}

TEST(Dialect, RowsAboveTheHeader) {
  const auto above = [](std::string_view text, char separator = ',') {
    const Dialect dialect = judge(text);
    EXPECT_EQ(dialect.separator, separator);
    EXPECT_EQ(evidence(dialect).find("left out") != std::string::npos, dialect.rows_above > 0) << evidence(dialect);
    return dialect.rows_above;
  };
  EXPECT_EQ(above("a,b,c\n1,2,3\n4,5,6\n7,8,9\n"), 0U);
  EXPECT_EQ(above("Animals of 2024\na,b,c\n1,2,3\n4,5,6\n"), 1U);
  EXPECT_EQ(above("Animals of 2024,,\n,,\na,b,c\n1,2,3\n4,5,6\n"), 2U);
  EXPECT_EQ(above("# by export 1.2\n# on Monday, at noon\na;b;c\n1;2;3\n4;5;6\n", ';'), 2U);
  EXPECT_EQ(above("sep=;\na;b\n1;2\n4;5\n", ';'), 1U);
  EXPECT_EQ(above("Sales, by month\na;b;c\n1;2;3\n4;5;6\n7;8;9\n", ';'), 1U);
  EXPECT_EQ(above("#id,b,c\n1,2,3\n4,5,6\n"), 0U) << "a header may begin with #";
  EXPECT_EQ(above("x\n1,5\n2,7\n3,9\n"), 0U) << "a header that names one column of two";
  EXPECT_EQ(above(",x\n0,a\n1,b\n2,c\n"), 0U) << "the index of pandas has no name";
  EXPECT_EQ(above("length;weight\n1,5;2,0\n3,5;4,5\n5,5;6,5\n", ';'), 0U);
  EXPECT_EQ(above("only\n1\n2\n3\n"), 0U);
  EXPECT_EQ(above(",,value\nsouth,station0,0.84\neast,station1,0.5\nwest,station2,0.25\n"), 0U) << "names of an index";
  EXPECT_EQ(above(",,,class\nred,round,big,cat\nblue,flat,small,dog\nred,flat,big,cat\n"), 0U);
  EXPECT_EQ(above("#name,city,y\nann,rome,1,\nbob,oslo,2,\ncid,bonn,3,\n"), 0U);
  EXPECT_EQ(above("text\nhello Ann, how are you 1\nhello Bob, how are you 2\nhello Cid, how are you 3\n"), 0U);
  EXPECT_EQ(above("# a\n# b\n# c\na,b,c\n1,2,3\n"), 3U) << "as many comments as rows";
  spec::TableOptions wanted;
  wanted.header = "first_line";
  EXPECT_EQ(judge("Title\na,b,c\n1,2,3\n4,5,6\n", ',', wanted).rows_above, 0U);
}

TEST(Dialect, KnowsATableWithoutItsName) {
  std::string table = "a;b;c\n", pairs, poem;
  for (int i = 0; i < 12; ++i) {
    table += "1;2;x\n";
    pairs += "a word, " + std::to_string(i) + "\n";
    poem += i % 5 == 0 ? "Shall I compare thee, to a day\n" : "Thou art more lovely\n";
  }
  EXPECT_EQ(cells_of_unnamed_table(table, true), 3U);
  EXPECT_EQ(cells_of_unnamed_table(pairs, true), 2U);
  EXPECT_EQ(cells_of_unnamed_table(poem, true), 0U);
  EXPECT_EQ(cells_of_unnamed_table("A\tHello\nB\tHi\nA\tHow are you\nB\tFine\nA\tGood\nB\tBye\n", true), 0U)
      << "words alone";
  EXPECT_EQ(cells_of_unnamed_table(pairs + "no comma here\n", true), 0U);
  EXPECT_EQ(cells_of_unnamed_table("a,b\n1,2\n3,4\n", true), 0U) << "too few lines to tell";
  EXPECT_EQ(cells_of_unnamed_table("", true), 0U);
}

// One of the two options is enough: the file decides the other one, and never the one that is given.
TEST(Dialect, OneCharacterOfNumbersMayBeGivenAlone) {
  const auto thousands = [](std::string_view text, const std::string& given) {
    spec::TableOptions wanted;
    wanted.thousands = given;
    const Dialect dialect = judge(text, ',', wanted);
    EXPECT_HAS(evidence(dialect), "(data.table)");
    return dialect.style.numbers;
  };
  EXPECT_EQ(thousands("a;b\n1,234;x\n", "comma"), (NumberStyle{'.', ','})) << "no decimal comma, despite semicolons";
  EXPECT_EQ(thousands("a;b\n1,5;2\n", "comma"), (NumberStyle{'.', ','}));
  EXPECT_EQ(thousands("a,b\n1,2\n", "point"), (NumberStyle{',', '.'})) << "a point cannot have both meanings";
  EXPECT_EQ(thousands("a;b\n1.234;2\n", "point"), (NumberStyle{',', '.'}));
  EXPECT_EQ(thousands("a;b\n1,234;x\n", "none"), (NumberStyle{',', '\0'}));
  EXPECT_EQ(thousands("a,b\n\"1,234\",x\n", "none"), (NumberStyle{',', '\0'})) << "also in a file with commas";
  EXPECT_EQ(thousands("a,b\n1.5,2\n", "space"), (NumberStyle{'.', ' '}));
  EXPECT_EQ(thousands("a;b\n1,5;2\n", "space"), (NumberStyle{',', ' '}));
  EXPECT_EQ(thousands("a,b\n1 234,2\n", "space"), judge("a,b\n1 234,2\n").style.numbers) << "as without the option";
  EXPECT_EQ(thousands("a;b\n1,5;2\n", "apostrophe"), (NumberStyle{',', '\''}));
  spec::TableOptions wanted;
  wanted.decimal = "point";
  EXPECT_EQ(judge("a;b\n1,234;x\n", ',', wanted).style.numbers, (NumberStyle{'.', ','}));
  wanted.decimal = "comma";
  EXPECT_EQ(judge("a,b\n\"1,234\",x\n", ',', wanted).style.numbers, (NumberStyle{',', '\0'}));
  wanted.thousands = "comma";
  EXPECT_ERROR(error_of([&] { judge("a,b\n1,2\n", ',', wanted); }), "DATA_BAD_OPTION",
               "data.table.decimal and data.table.thousands are both comma");
}

TEST(Dialect, FindsWhetherThereIsAHeader) {
  const auto header = [](std::string_view text, const std::string& wanted = "auto") {
    spec::TableOptions options;
    options.header = wanted;
    return judge(text, ',', options).style.header;
  };
  EXPECT_TRUE(header("a,b\n1,2\n3,4\n"));
  EXPECT_FALSE(header("5,6\n1,2\n3,4\n"));
  EXPECT_FALSE(header("5.1,3.5,setosa\n4.9,3.0,setosa\n7.0,3.2,virginica\n"));
  EXPECT_TRUE(header("x,y,species\n4.9,3.0,setosa\n7.0,3.2,virginica\n"));
  EXPECT_TRUE(header("country,2019,2020\nPeru,1.5,2\nChad,2.5,3\n")) << "years as names";
  EXPECT_TRUE(header("name,town\nann,rome\nbob,oslo\n")) << "words alone tell nothing";
  EXPECT_FALSE(header("a long and sad film,0\nit was a joy to see,1\nshort,0\nthe worst of all films,0\n"));
  EXPECT_TRUE(header("what did they say,0\nbad,1\ngood,0\n")) << "no sentences below";
  EXPECT_TRUE(header("text,0,1\nit was a joy to see,1,0\nthe worst of all films,0,1\n")) << "classes as names";
  EXPECT_FALSE(header("2023-01-03,16.9\n2023-01-04,17.1\n2023-01-05,18\n"));
  EXPECT_TRUE(header("1999,16.9\n2023-01-04,17.1\n2023-01-05,18\n"));
  EXPECT_TRUE(header("a,b\n"));
  EXPECT_TRUE(header("5,6\n1,2\n", "first_line"));
  EXPECT_FALSE(header("a,b\n1,2\n", "none"));
  EXPECT_HAS(evidence(judge("5,6\n1,2\n3,4\n")), "no header line");
}

TEST(Dialect, TheStyleOfTheTrainingFileHolds) {
  const TableStyle known{false, {',', '.'}};
  const Dialect dialect = judge_dialect("a;b\n1.5;2.5\n", true, ',', {}, &known);
  EXPECT_EQ(dialect.separator, ';');
  EXPECT_EQ(dialect.style, known);
}

// ---- encodings -----------------------------------------------------------------------------------------------------

std::vector<std::byte> bytes(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

CharsetJudgement judge_bytes(std::string_view text, bool whole = true) {
  return judge_charset(bytes(text), whole, "auto");
}

std::string utf16(std::string_view ascii, bool little) {
  std::string text;
  for (const char c : ascii) text += little ? std::string{c, '\0'} : std::string{'\0', c};
  return text;
}

TEST(Charset, IsFoundInTheFirstBytes) {
  EXPECT_EQ(judge_bytes("a,b\xC3\xA9\n").charset, Charset::utf8);
  EXPECT_EQ(judge_bytes("\xEF\xBB\xBF"
                        "a,b\n")
                .charset,
            Charset::utf8);
  EXPECT_EQ(judge_bytes("\xFF\xFE" + utf16("a,b\n", true)).charset, Charset::utf16le);
  EXPECT_EQ(judge_bytes("\xFE\xFF" + utf16("a,b\n", false)).charset, Charset::utf16be);
  EXPECT_EQ(judge_bytes(utf16("a,b\n1,2\n", true)).charset, Charset::utf16le);
  EXPECT_EQ(judge_bytes(utf16("a,b\n1,2\n", false)).charset, Charset::utf16be);
  const CharsetJudgement windows = judge_bytes("a,b\n1,caf\xE9\n");
  EXPECT_EQ(windows.charset, Charset::windows1252);
  EXPECT_HAS(windows.evidence, "byte 0xE9 in line 2");
  EXPECT_EQ(judge_bytes("a,b\xC3", false).charset, Charset::utf8) << "the rest of the character follows";
  EXPECT_EQ(judge_bytes("a,b\xC3", true).charset, Charset::windows1252);
  EXPECT_EQ(judge_charset(bytes("\xE9"), true, "latin-1").charset, Charset::latin1);
}

TEST(Charset, ConvertsToUtf8) {
  const auto text = [](std::string_view from, Charset charset) {
    return std::string(text_of(to_utf8(bytes(from), charset, "t.csv")));
  };
  EXPECT_EQ(text("caf\xE9 \x80\x96", Charset::windows1252), "café €–");
  EXPECT_EQ(text("\x80", Charset::latin1), "\xC2\x80");
  EXPECT_EQ(text("\xFF\xFE" + utf16("a\n", true), Charset::utf16le), "a\n");
  EXPECT_EQ(text(std::string("\xD8\x3D\xDE\x00", 4), Charset::utf16be), "\xF0\x9F\x98\x80");
  const auto error = [&](std::string_view from, Charset charset) { return error_of([&] { text(from, charset); }); };
  EXPECT_ERROR(error(utf16("a,b\n1", true) + "x", Charset::utf16le), "DATA_NOT_UTF8", "t.csv:2:2:");
  EXPECT_ERROR(error(std::string("a\0\x00\xD8"
                                 "b\0",
                                 6),
                     Charset::utf16le),
               "DATA_NOT_UTF8", "t.csv:1:2:");
  EXPECT_ERROR(error("a,b\r\ncaf\xE9\n", Charset::utf8), "DATA_NOT_UTF8", "t.csv:2:4: byte 0xE9");
}

// The beginning of the file says UTF-8. A byte that contradicts this later is an error with its place.
TEST(Charset, LaterBytesMustFit) {
  std::string text = "a,b\n";
  while (text.size() < kTableHead) text += "1,2\n";
  const auto decode = [&](const std::string& end) { decode_table("t.csv", bytes(text + end), true, {}); };
  EXPECT_NO_THROW(decode("1,\xC3\xA9\n"));
  const auto line = 1 + std::count(text.begin(), text.end(), '\n');
  EXPECT_ERROR(error_of([&] { decode("1,\xE9\n"); }), "DATA_NOT_UTF8", "t.csv:" + std::to_string(line) + ":3:");
}

TEST(Charset, FilesThatAreNoTextAreRefused) {
  EXPECT_ERROR(error_of([] { decode_table("t.csv", bytes(std::string_view("a,b\n1,\0x\n", 9)), true, {}); }),
               "DATA_WRONG_FORMAT", "t.csv:2:3:");
  EXPECT_ERROR(error_of([] { decode_table("t.csv", bytes("SQLite format 3"), true, {}); }), "DATA_WRONG_FORMAT",
               "SQLite");
}

}  // namespace
}  // namespace sinew::data
