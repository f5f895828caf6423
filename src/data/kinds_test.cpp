#include "data/kinds.h"

#include "data/fixtures.h"

namespace sinew::data {
namespace {

// A column of 1,000 rows.
ColumnStats stats(const std::string& name, CellKind cells, int64_t different, int64_t missing = 0, double words = 1) {
  ColumnStats made{name, cells, 1000, missing, different};
  made.words_per_value = words;
  return made;
}

ColumnKind kind(const ColumnStats& stats, std::optional<ColumnKind> declared = std::nullopt, bool listed = false) {
  const KindChoice choice = judge_kind(stats, declared, listed);
  if (stats.cells == CellKind::word || stats.cells == CellKind::number) {
    EXPECT_NE(choice.reason, "");
  }
  EXPECT_EQ(kind_named(to_string(choice.kind)), choice.kind);
  return choice.kind;
}

TEST(Kinds, Words) {
  EXPECT_EQ(kind(stats("town", CellKind::word, 40)), ColumnKind::category);
  EXPECT_EQ(kind(stats("town", CellKind::word, 900)), ColumnKind::identifier);
  EXPECT_EQ(kind(stats("town", CellKind::word, 900), std::nullopt, true), ColumnKind::category) << "the user lists it";
  EXPECT_EQ(kind(stats("note", CellKind::word, 900, 0, 6)), ColumnKind::text);
  EXPECT_EQ(kind(stats("note", CellKind::word, 300, 0, 20)), ColumnKind::text);
  EXPECT_EQ(kind(stats("note", CellKind::word, 40, 0, 20)), ColumnKind::category) << "forty long answers";
  ColumnStats few = stats("id", CellKind::word, 5);
  few.rows = 5;
  EXPECT_EQ(kind(few), ColumnKind::identifier) << "the name and five different values of five";
  few.name = "colour";
  EXPECT_EQ(kind(few), ColumnKind::category);
}

TEST(Kinds, Numbers) {
  EXPECT_EQ(kind(stats("age", CellKind::number, 60)), ColumnKind::number);
  EXPECT_EQ(kind(stats("user_id", CellKind::number, 1000)), ColumnKind::identifier);
  EXPECT_EQ(kind(stats("PassengerId", CellKind::number, 1000)), ColumnKind::identifier);
  EXPECT_EQ(kind(stats("fluid", CellKind::number, 1000)), ColumnKind::number) << "ends in id, but is another word";
  EXPECT_EQ(kind(stats("user_id", CellKind::number, 1000), ColumnKind::number), ColumnKind::number);
  EXPECT_EQ(kind(stats("store_id", CellKind::number, 30)), ColumnKind::code);
  EXPECT_EQ(kind(stats("zip", CellKind::number, 30)), ColumnKind::code);
  EXPECT_EQ(kind(stats("zip", CellKind::number, 900)), ColumnKind::number) << "too many for one input each";
  EXPECT_EQ(kind(stats("rooms", CellKind::number, 8)), ColumnKind::number);
  ColumnStats flags = stats("alone", CellKind::number, 2);
  flags.zero_or_one = true;
  EXPECT_EQ(kind(flags), ColumnKind::boolean);
  ColumnStats halves = stats("zip", CellKind::number, 30);
  halves.whole = false;
  EXPECT_EQ(kind(halves), ColumnKind::number);
}

TEST(Kinds, ColumnsWithoutInformationAreLeftOut) {
  EXPECT_EQ(kind(stats("x", CellKind::number, 0, 1000)), ColumnKind::empty);
  EXPECT_EQ(kind(stats("x", CellKind::number, 1)), ColumnKind::constant);
  EXPECT_EQ(kind(stats("x", CellKind::word, 1), ColumnKind::category), ColumnKind::constant);
  EXPECT_EQ(kind(stats("x", CellKind::word, 1, 10)), ColumnKind::category) << "whether it is missing is information";
  for (const ColumnKind left_out : {ColumnKind::identifier, ColumnKind::constant, ColumnKind::empty})
    EXPECT_TRUE(is_left_out(left_out));
  EXPECT_FALSE(is_left_out(ColumnKind::text));
}

// The encoder relies on this: a kind that it takes for numbers is never made of words.
TEST(Kinds, AreMadeOfTheCellsThatTheyAreJudgedBy) {
  for (const CellKind cells : {CellKind::number, CellKind::boolean, CellKind::date, CellKind::word}) {
    for (const int64_t different : {2, 30, 900}) {
      for (const char* name : {"x", "zip", "id"})
        EXPECT_TRUE(can_be_made_of(judge_kind(stats(name, cells, different), std::nullopt, false).kind, cells));
    }
  }
  EXPECT_FALSE(can_be_made_of(ColumnKind::code, CellKind::word));
  EXPECT_FALSE(can_be_made_of(ColumnKind::date, CellKind::number));
  EXPECT_FALSE(can_be_made_of(ColumnKind::category, CellKind::number));
}

TEST(Kinds, Names) {
  for (const char* name : {"id", "ID", "user_id", "userId", "Order ID", "index", "uuid"})
    EXPECT_TRUE(names_identifier(name)) << name;
  for (const char* name : {"paid", "valid", "indexed", "identity", ""}) EXPECT_FALSE(names_identifier(name)) << name;
  EXPECT_TRUE(names_code("product_code"));
  EXPECT_TRUE(names_code("productType"));
  EXPECT_FALSE(names_code("decode"));
}

}  // namespace
}  // namespace sinew::data
