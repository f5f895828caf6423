// Tests for which sizes of its inputs a program counts as exported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/program.h"

namespace sinew::program {
namespace {

using testing::HasSubstr;

constexpr const char *kS = "Symbol('s', positive=True, integer=True)", *kT = "Symbol('t')";

Dim dim(const std::string& expression) {
  Dim made;
  made.expression = expression;
  return made;
}
Dim number_dim(int64_t size) {
  Dim made;
  made.fixed = size;
  return made;
}

Program program_of(const std::vector<std::vector<Dim>>& inputs, std::map<std::string, SymbolRange> ranges = {}) {
  Program program;
  program.ranges = std::move(ranges);
  for (const std::vector<Dim>& sizes : inputs) {
    InputSpec spec;
    spec.name = std::string(1, static_cast<char>('x' + program.inputs.size()));
    spec.value = static_cast<ValueId>(program.graph.values.size());
    TensorMeta meta;
    meta.sizes = sizes;
    program.graph.values.push_back({spec.name, ValueKind::tensor, meta});
    program.inputs.push_back(spec);
  }
  return program;
}

std::string problem(const std::string& expression, int64_t size, std::map<std::string, SymbolRange> ranges = {}) {
  return InputSizes(program_of({{dim(expression)}}, std::move(ranges))).problem({{size}});
}

TEST(InputSizes, TheRangeOfASymbolHolds) {
  const std::map<std::string, SymbolRange> upTo8 = {{"s", {0, 8}}}, from9 = {{"s", {9, std::nullopt}}};
  EXPECT_EQ(problem(kS, 8, upTo8), "");
  EXPECT_EQ(problem(kS, 9, upTo8),
            "input x has the size 9 in dimension 0, but the program was exported for s, where s is at most 8");
  EXPECT_EQ(problem(kS, 9, from9), "");
  EXPECT_THAT(problem(kS, 8, from9), HasSubstr("s is at least 9"));
  EXPECT_EQ(problem(kS, -1, from9), "") << "a size that is not known yet";
  EXPECT_EQ(problem(kS, 1, {{"s", {2, std::nullopt}}}), "") << "the exporter always excludes 0 and 1";
  EXPECT_EQ(problem(kS, 1, {{"t", {9, std::nullopt}}}), "");
}

TEST(InputSizes, ExpressionsAreSolved) {
  const std::string twice = std::string("Mul(Integer(2), ") + kS + ")";
  EXPECT_EQ(problem(twice, 6), "");
  EXPECT_EQ(problem(twice, 7), "input x has the size 7 in dimension 0, but the program was exported for 2*s");
  EXPECT_THAT(problem(twice, 10, {{"s", {0, 4}}}), HasSubstr("2*s, where s is at most 4"));
  const std::string more = std::string("Add(") + kS + ", Integer(3))";
  EXPECT_EQ(problem(more, 3), "");
  EXPECT_THAT(problem(more, 2), HasSubstr("exported for s + 3"));
  const std::string less = std::string("Add(Mul(Integer(-1), ") + kS + "), Integer(9))";
  EXPECT_EQ(problem(less, 9), "");
  EXPECT_THAT(problem(less, 10), HasSubstr("-1*s + 9"));
}

TEST(InputSizes, ASymbolHasOneValueInAllInputs) {
  const std::string more = std::string("Add(") + kS + ", Integer(1))";
  const Program pair = program_of({{dim("Symbol('b')"), dim(more)}, {dim("Symbol('b')"), dim(kS)}});
  const InputSizes sizes(pair);
  EXPECT_EQ(sizes.problem({{4, 6}, {4, 5}}), "");
  EXPECT_EQ(sizes.problem({{-1, 6}, {-1, 5}}), "");
  EXPECT_EQ(sizes.problem({{4, 6}, {4, 6}}),
            "input y has the size 6 in dimension 1, but the program was exported for s = 5");
  EXPECT_THAT(sizes.problem({{4, 6}, {3, 5}}), HasSubstr("input y has the size 3 in dimension 0"));
  EXPECT_THAT(sizes.problem({{4, 6, 1}, {4, 5}}), HasSubstr("input x has 3 dimensions instead of 2"));
  // The symbols of the first input follow from the second one.
  const std::string sum = std::string("Add(") + kS + ", " + kT + ")";
  const Program joined = program_of({{dim(sum)}, {dim(kS), dim(kT)}});
  EXPECT_EQ(InputSizes(joined).problem({{7}, {3, 4}}), "");
  EXPECT_THAT(InputSizes(joined).problem({{8}, {3, 4}}), HasSubstr("input x has the size 8"));
  const std::string half = std::string("FloorDiv(") + kS + ", Integer(2))";
  const Program halves = program_of({{dim(kS)}, {dim(half)}});
  EXPECT_EQ(InputSizes(halves).problem({{7}, {3}}), "");
  EXPECT_THAT(InputSizes(halves).problem({{7}, {4}}), HasSubstr("FloorDiv(s, 2) = 3"));
}

TEST(InputSizes, AreShownAsSums) {
  Program program = program_of({{dim(kS), dim(std::string("Add(Mul(Integer(2), ") + kS + "), Integer(1))"), dim("?")}});
  EXPECT_EQ(facts_of(program).at(0).text, "float32 [s, 2*s + 1, computed]");
}

TEST(InputSizes, FixedSizesHold) {
  const InputSizes sizes(program_of({{dim(kS), number_dim(6)}}));
  EXPECT_EQ(sizes.problem({{4, 6}}), "");
  EXPECT_EQ(sizes.problem({{4, 5}}), "input x has the size 5 in dimension 1 instead of 6");
}

// The file may hold any text. What the parser does not know is not compared.
TEST(InputSizes, OtherExpressionsAreNotCompared) {
  std::string deep = kS;
  for (int i = 0; i < 100; ++i) deep = "Max(" + deep + ", Integer(1))";
  const std::string largest = "Integer(9223372036854775807)";
  for (const std::string& text :
       {std::string(), std::string("Symbol("), std::string("Symbol('s'"), std::string("Integer(2"),
        std::string("Add()"), std::string("Add(Integer(1), )"), std::string("Pow(Symbol('s'), Integer(2))"),
        std::string("Rational(1, 2)"), std::string("Integer(99999999999999999999)"),
        "Mul(" + std::string(kS) + ", " + kS + ")", "Add(" + std::string(kS) + ", " + kT + ")", deep,
        "Add(" + largest + ", " + largest + ")", "Mul(" + largest + ", " + largest + ", " + kS + ")",
        std::string("FloorDiv(Integer(4), Integer(0))"),
        std::string("Mod(Integer(-9223372036854775808), Integer(-1))")})
    EXPECT_EQ(problem(text, 5), "") << text;
  EXPECT_NE(problem("Mul(Integer(-1), Symbol('s'))", 5), "");
  EXPECT_NE(problem("Add(Integer(-9223372036854775808), Symbol('s'))", 5), "");
  EXPECT_NE(problem("Mul(Integer(0), Symbol('s'))", 5), "");
}

}  // namespace
}  // namespace sinew::program
