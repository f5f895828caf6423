#include "data/cells.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/random.h"
#include "data/fixtures.h"
#include "data/rows.h"

namespace sinew::data {
namespace {

TEST(Cells, NumbersInEveryStyle) {
  const NumberStyle plain, german{',', '.'}, french{',', ' '}, english{'.', ','}, swiss{'.', '\''}, comma{',', '\0'};
  EXPECT_EQ(parse_number("1.5", plain), 1.5);
  EXPECT_EQ(parse_number("1.234,5", german), 1234.5);
  EXPECT_EQ(parse_number("-1.234.567", german), -1234567);
  EXPECT_EQ(parse_number("1234,5", german), 1234.5) << "groups are allowed, not required";
  EXPECT_EQ(parse_number("12 345,6", french), 12345.6);
  EXPECT_EQ(parse_number("12\xC2\xA0"
                         "345,6",
                         french),
            12345.6);
  EXPECT_EQ(parse_number("12\xE2\x80\xAF"
                         "345",
                         french),
            12345);
  EXPECT_EQ(parse_number("1,234,567.25", english), 1234567.25);
  EXPECT_EQ(parse_number("1'234.5", swiss), 1234.5);
  EXPECT_EQ(parse_number("1\xE2\x80\x99"
                         "234",
                         swiss),
            1234);
  EXPECT_EQ(parse_number("1,5e3", comma), 1500);
  for (const char* bad :
       {"1.23,5", "1.2345", ".123", "1..234", "1.234.", "1,5,5", "12345.678", "", "-", "1,234.5", "abc"})
    EXPECT_FALSE(parse_number(bad, german)) << bad;
  EXPECT_FALSE(parse_number("1.5", comma)) << "the point is no decimal character in this file";
  EXPECT_FALSE(parse_number(std::string(200, '1') + ",5", comma));
}

// Whatever number is written in a style reads back as the same number.
TEST(Cells, NumbersReadBack) {
  RandomStream draws(random_key({7}));
  for (int i = 0; i < 20000; ++i) {
    const NumberStyle style{draws.below(2) == 0 ? ',' : '.', " ,.'"[draws.below(4)]};
    if (style.decimal == style.thousands) continue;
    const auto value = static_cast<int64_t>(draws.below(1'000'000'000));
    std::string digits = std::to_string(value), written;
    for (size_t at = 0; at < digits.size(); ++at) {
      if (at > 0 && (digits.size() - at) % 3 == 0) written += style.thousands;
      written += digits[at];
    }
    const auto fraction = draws.below(1000);
    const std::string end = std::to_string(fraction + 1000).substr(1);
    ASSERT_EQ(parse_number(written + style.decimal + end, style), parse_number(digits + '.' + end)) << written << end;
  }
}

TEST(Cells, Units) {
  const auto split = [](std::string_view text) {
    const UnitText found = split_unit(text);
    return std::string(found.negative ? "-" : "") + "|" + std::string(found.number) + "|" + std::string(found.unit);
  };
  EXPECT_EQ(split("12"), "|12|");
  EXPECT_EQ(split("-12"), "|-12|");
  EXPECT_EQ(split("12 %"), "|12|%");
  EXPECT_EQ(split("-$5"), "-|5|$");
  EXPECT_EQ(split("$-5"), "|-5|$");
  EXPECT_EQ(split("3,50 €"), "|3,50|€");
  EXPECT_EQ(split("EUR 3"), "|3|EUR");
  EXPECT_EQ(parse_cell("-$1,234.50", {CellKind::number, {'.', ','}, "$"}), -1234.5);
  EXPECT_FALSE(parse_cell("5", {CellKind::number, {}, "%"})) << "without its unit, 5 may mean something else";
  EXPECT_FALSE(parse_cell("5 €", {CellKind::number, {}, "$"}));
}

double at(int year, unsigned month, unsigned day, double seconds = 0) {
  const auto days = std::chrono::sys_days(std::chrono::year(year) / static_cast<int>(month) / static_cast<int>(day));
  return static_cast<double>(days.time_since_epoch().count()) * kSecondsOfDay + seconds;
}

TEST(Cells, Dates) {
  EXPECT_EQ(parse_date("2024-02-29", DateForm::iso), at(2024, 2, 29));
  EXPECT_EQ(parse_date("2024/2/9", DateForm::iso), at(2024, 2, 9));
  EXPECT_EQ(parse_date("1969-12-31T23:59:59.5", DateForm::iso), -0.5);
  EXPECT_EQ(parse_date("2024-05-01 12:30", DateForm::iso), at(2024, 5, 1, 45000));
  EXPECT_EQ(parse_date("2024-05-01T00:30:00+02:00", DateForm::iso), at(2024, 4, 30, 81000));
  EXPECT_EQ(parse_date("2024-05-01T12:30:00Z", DateForm::iso), at(2024, 5, 1, 45000));
  EXPECT_EQ(parse_date("31.12.2023", DateForm::day_first), at(2023, 12, 31));
  EXPECT_EQ(parse_date("31/12/68", DateForm::day_first), at(2068, 12, 31));
  EXPECT_EQ(parse_date("12/31/69", DateForm::month_first), at(1969, 12, 31));
  EXPECT_EQ(parse_date("5/1/2024 3:07 PM", DateForm::month_first), at(2024, 5, 1, 15 * 3600 + 7 * 60));
  EXPECT_EQ(parse_date("5/1/2024 12:07 am", DateForm::month_first), at(2024, 5, 1, 7 * 60));
  EXPECT_EQ(parse_date("1 May 2024", DateForm::named), at(2024, 5, 1));
  EXPECT_EQ(parse_date("September 30, 2024", DateForm::named), at(2024, 9, 30));
  EXPECT_EQ(parse_date("01-Sept-24", DateForm::named), at(2024, 9, 1));
  EXPECT_EQ(parse_date("20240501", DateForm::compact), at(2024, 5, 1));
  for (const char* bad : {"2023-02-29", "2024-13-01", "2024-00-10", "2024-1/1", "2024-01-01T25:00", "2024-01-01x",
                          "2024-01-01 10", "24-01-01", "", "2024-01-01T10:00+99:00"})
    EXPECT_FALSE(parse_date(bad, DateForm::iso)) << bad;
  EXPECT_FALSE(parse_date("31.13.2023", DateForm::day_first));
  EXPECT_FALSE(parse_date("1 Mai 2024", DateForm::named));
  EXPECT_FALSE(parse_date("5/1/2024 13:07 PM", DateForm::month_first));
}

std::vector<CellSample> samples(const std::vector<std::string>& texts) {
  std::vector<CellSample> cells;
  for (const std::string& text : texts) cells.push_back({text});
  return cells;
}

CellJudgement judge(const std::vector<std::string>& texts, const std::string& name = "c",
                    const std::string& dates = "auto") {
  const auto cells = samples(texts);
  return judge_cells(name, cells, {}, dates);
}

TEST(Cells, OneWrongCellOfTenDoesNotMakeWords) {
  std::vector<std::string> texts(9, "1.5");
  texts.push_back("oops");
  const CellJudgement numbers = judge(texts);
  EXPECT_EQ(numbers.format->kind, CellKind::number);
  EXPECT_HAS(numbers.reason, "9 of 10 values are numbers");
  texts.push_back("again");
  EXPECT_EQ(judge(texts).format->kind, CellKind::word) << "two of eleven are too many";
  EXPECT_EQ(judge({"1", "2", "x"}).format->kind, CellKind::word) << "few values have no tolerance";
  EXPECT_FALSE(judge({}).format);
}

TEST(Cells, CodesWithLeadingZerosAreWords) {
  EXPECT_EQ(judge({"01067", "80331", "20095"}).format->kind, CellKind::word);
  EXPECT_HAS(judge({"007", "12"}).reason, "leading zeros");
  EXPECT_EQ(judge({"0.5", "0", "-0.25"}).format->kind, CellKind::number);
  const CellSample words[] = {{"1", true}, {"2", true}};
  EXPECT_EQ(judge_cells("c", words, {}, "auto").format->kind, CellKind::word) << "strings of JSON";
}

TEST(Cells, IntegersThatANumberCannotHoldAreWords) {
  EXPECT_EQ(judge({"9007199254740992", "9007199254740994"}).format->kind, CellKind::number);
  EXPECT_EQ(judge({"9007199254740992", "9007199254740993"}).format->kind, CellKind::word);
  EXPECT_HAS(judge({"9007199254740992", "9007199254740993"}).reason, "1 of 2 values have more digits");
  EXPECT_EQ(judge({"1e300", "-2.5"}).format->kind, CellKind::number);
  std::vector<std::string> amounts;
  for (int i = 0; i < 60; ++i) amounts.push_back(std::to_string(1000 + 7 * i));
  amounts.push_back("1000000012345678901");
  EXPECT_EQ(judge(amounts).format->kind, CellKind::number) << "one large amount does not make codes of all";
}

TEST(Cells, HardSpacesAroundANumberDoNotCount) {
  const CellFormat number{CellKind::number};
  EXPECT_EQ(parse_cell("30.1\xC2\xA0", number), 30.1);
  EXPECT_EQ(parse_cell("\xE2\x80\xAF-30.1", number), -30.1);
  EXPECT_EQ(parse_cell("\xE2\x88\x92"
                       "30.1",
                       number),
            -30.1)
      << "a true minus sign";
  EXPECT_EQ(parse_cell("\xE2\x88\x92"
                       "-30.1",
                       number),
            std::nullopt);
  EXPECT_EQ(parse_cell("30.1 kg", number), std::nullopt);
  EXPECT_EQ(parse_cell("30.1 %", number), std::nullopt) << "a unit that the column does not have";
}

TEST(Cells, WordsThatLookLikeNumbers) {
  for (const char* text : {"12 kg", "(3.50)", "1.234,50", "14:05", "10-20", "~5", "1,23,456.00"})
    EXPECT_TRUE(resembles_number(text)) << text;
  for (const char* text : {"", "A100", "12 monkeys", "-", "x5"}) EXPECT_FALSE(resembles_number(text)) << text;
}

TEST(Cells, UnitsAndTruthValues) {
  EXPECT_EQ(judge({"5%", "7 %", "12%"}).format->unit, "%");
  EXPECT_EQ(judge({"$5", "-$7"}).format->unit, "$");
  EXPECT_EQ(judge({"yes", "No", "YES"}).format->kind, CellKind::boolean);
  EXPECT_EQ(judge({"t", "f"}).format->kind, CellKind::boolean);
  EXPECT_EQ(judge({"True", "False"}).format->kind, CellKind::boolean);
  EXPECT_EQ(judge({"1", "0"}).format->kind, CellKind::number);
  EXPECT_EQ(judge({"yes", "yes"}).format->kind, CellKind::word) << "the other value is not known";
  EXPECT_EQ(judge({"f", "m"}).format->kind, CellKind::word);
  EXPECT_EQ(judge({"yes", "false"}).format->kind, CellKind::word);
  EXPECT_EQ(judge({"yes", "no", "maybe"}).format->kind, CellKind::word);
}

TEST(Cells, TheOrderOfDayAndMonth) {
  const auto form = [](const std::vector<std::string>& texts, const std::string& dates = "auto") {
    const CellJudgement found = judge(texts, "c", dates);
    EXPECT_EQ(found.format->kind, CellKind::date);
    return std::pair(found.format->date, found.doubt.find("guess") != std::string::npos);
  };
  EXPECT_EQ(form({"1/2/2024", "13/2/2024"}), (std::pair{DateForm::day_first, false}));
  EXPECT_EQ(form({"1/2/2024", "2/13/2024"}), (std::pair{DateForm::month_first, false}));
  EXPECT_EQ(form({"1.2.2024", "2.3.2024"}), (std::pair{DateForm::day_first, true}));
  EXPECT_EQ(form({"1/2/2024", "2/3/2024"}), (std::pair{DateForm::month_first, true}));
  EXPECT_EQ(form({"01/02/2024", "01/03/2024"}), (std::pair{DateForm::day_first, true})) << "the first of each month";
  EXPECT_EQ(form({"1/2/2024", "2/3/2024"}, "day_first"), (std::pair{DateForm::day_first, false}));
  EXPECT_EQ(form({"2/1/2024", "3/1/2024"}), (std::pair{DateForm::month_first, true})) << "the first of each month";
  EXPECT_EQ(judge({"20240131", "20240201"}, "date").format->kind, CellKind::date);
  EXPECT_EQ(judge({"20240131", "20240201"}, "price").format->kind, CellKind::number);
}

// Dates in which one number counts to twelve, and the cells of `more` at the end.
std::vector<std::string> dates_like(const std::string& before, const std::string& between,
                                    const std::vector<std::string>& more) {
  std::vector<std::string> texts;
  for (int i = 0; i < 60; ++i)
    texts.push_back(before + std::to_string(i % 12 + 1) + between + std::to_string(2000 + i % 20));
  texts.insert(texts.end(), more.begin(), more.end());
  return texts;
}

// No single cell decides the order of day and month for all others, wherever it is.
TEST(Cells, OneWrongCellDoesNotDecideTheOrderOfDayAndMonth) {
  const auto chosen = [](std::vector<std::string> texts) {
    const CellJudgement found = judge(texts);
    std::rotate(texts.begin(), texts.end() - 1, texts.end());
    const CellJudgement other = judge(texts);
    EXPECT_EQ(found.format, other.format) << "the last cell is now the first one";
    EXPECT_EQ(found.format->kind, CellKind::date);
    EXPECT_HAS(found.doubt, "guess");
    return found.format->date;
  };
  for (const char* wrong : {"oops", "7/8/2024", "7-8-2024"})
    EXPECT_EQ(chosen(dates_like("3.", ".", {wrong})), DateForm::day_first) << "points, but for " << wrong;
  for (const char* wrong : {"oops", "2/3/2024", "2024"})
    EXPECT_EQ(chosen(dates_like("1/", "/", {wrong})), DateForm::day_first) << "the first of each month, but " << wrong;
  EXPECT_EQ(chosen(dates_like("", "/1/", {"13/1/2024"})), DateForm::month_first)
      << "the second number is the day, and there is no month 13";
  EXPECT_EQ(chosen(dates_like("3.", ".", {"2.13.2024"})), DateForm::day_first);
}

// Days above 12 are counted. The minority does not fit the format that follows, so these are bad cells.
TEST(Cells, MostDaysAbove12DecideTheOrder) {
  std::vector<std::string> texts(20, "25/3/2024");
  texts.push_back("3/25/2024");
  const CellJudgement clear = judge(texts);
  EXPECT_EQ(clear.format->date, DateForm::day_first);
  EXPECT_EQ(clear.doubt, "") << "one of 21 is the exception";
  EXPECT_HAS(clear.reason, "20 of 21 values are dates like 31/5/2024");
  EXPECT_FALSE(parse_cell("3/25/2024", *clear.format));
  std::vector<std::string> few;
  for (int i = 0; i < 60; ++i) few.push_back(std::to_string(i % 12 + 1) + "/" + std::to_string(i % 11 + 1) + "/2024");
  for (const char* more : {"25/3/2024", "26/3/2024", "3/25/2024"}) few.emplace_back(more);
  const CellJudgement mixed = judge(few);
  EXPECT_EQ(mixed.format->date, DateForm::day_first);
  EXPECT_HAS(mixed.doubt, "2 of 63 values can only have the day first, such as '25/3/2024', and 1 only the month");
  std::vector<std::string> halves(10, "25/3/2024");
  halves.insert(halves.end(), 10, "3/25/2024");
  EXPECT_EQ(judge(halves).format->kind, CellKind::word) << "no order fits nine of ten";
  EXPECT_HAS(judge(halves).doubt, "10 of 20 values can only have the day first, such as '25/3/2024', and 10 only");
}

TEST(Cells, ValuesThatContradictTheOrderOfTheJobAreNamed) {
  const std::vector<std::string> texts(20, "3/25/2024");
  const CellJudgement found = judge(texts, "c", "day_first");
  EXPECT_EQ(found.format->kind, CellKind::word);
  EXPECT_HAS(found.doubt, "data.table.dates is day_first, but 20 of 20 values can only have the month first");
  const auto cells = samples(texts);
  const CellJudgement declared = judge_declared(CellKind::date, cells, {}, "day_first");
  EXPECT_FALSE(declared.format);
  EXPECT_HAS(declared.doubt, "data.table.dates is day_first");
}

}  // namespace
}  // namespace sinew::data
