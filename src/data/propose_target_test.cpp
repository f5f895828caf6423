#include "data/propose_target.h"

#include "data/fixtures.h"

namespace sinew::data {
namespace {

using Kind = ColumnKind;

ColumnSketch number(const std::string& name) {
  return {name, Kind::number, 500};
}
ColumnSketch classes(const std::string& name, int64_t different = 3) {
  return {name, Kind::category, different};
}

std::string choice(const std::vector<ColumnSketch>& columns) {
  return judge_target(columns, "").name;
}

TEST(Target, IsFoundByItsName) {
  EXPECT_EQ(choice({number("a"), number("label"), number("b")}), "label");
  EXPECT_EQ(choice({classes("Survived", 2), classes("class"), number("age"), classes("alone", 2)}), "Survived");
  EXPECT_EQ(choice({number("carat"), classes("cut"), number("price"), number("x"), number("y"), number("z")}), "price")
      << "x, y and z are coordinates";
  EXPECT_EQ(choice({number("x"), number("y")}), "y");
  EXPECT_EQ(choice({number("mpg"), number("weight"), {"name", Kind::identifier, 300}}), "mpg");
  EXPECT_EQ(choice({number("rooms"), number("house_price")}), "house_price");
}

TEST(Target, IsFoundByItsKindAndPosition) {
  EXPECT_EQ(choice({number("a"), number("b"), number("c"), classes("d")}), "d");
  EXPECT_EQ(choice({{"id", Kind::identifier, 500}, number("b"), {"when", Kind::date, 500}}), "b");
}

TEST(Target, IsNotGuessed) {
  const auto unclear = [](const std::vector<ColumnSketch>& columns) {
    const TargetChoice found = judge_target(columns, "");
    EXPECT_EQ(found.name, "");
    EXPECT_NE(found.example, "");
    return found.reason;
  };
  EXPECT_HAS(unclear({number("a"), number("b"), number("c")}), "'c' (it is the last column)");
  EXPECT_HAS(unclear({number("target"), number("label"), number("c")}), "'label'");
  EXPECT_HAS(unclear({classes("a"), number("b"), classes("c")}), "'a' (it is the first column)");
  EXPECT_HAS(unclear({{"when", Kind::date, 9}, {"note", Kind::text, 9}}), "no column looks like one to predict");
  std::vector<ColumnSketch> many;
  for (int i = 0; i < 30; ++i) many.push_back(number("c" + std::to_string(i)));
  EXPECT_HAS(unclear(many), "and 25 more");
}

TEST(Target, TheUserDecides) {
  const std::vector<ColumnSketch> columns = {number("amount"), number("label")};
  EXPECT_EQ(judge_target(columns, "amount").name, "amount");
  EXPECT_ERROR(error_of([&] { judge_target(columns, "amuont"); }), "DATA_UNKNOWN_COLUMN", "did you mean 'amount'?");
}

}  // namespace
}  // namespace sinew::data
