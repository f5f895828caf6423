#include <gtest/gtest.h>

#include "base/error.h"
#include "onnx/onnx.h"

namespace sinew::onnx {
namespace {

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    text += digits;
  }
  return text;
}

// tests/export/export_test.py has the Python package onnx check whole models.
TEST(Bytes, ASmallModelHasTheFieldsOfOnnxProto3) {
  Model model;
  model.name = "g";
  Builder builder(model);
  const std::string x = builder.input("x", Element::f32, {2}, "");
  builder.output("y", x, Element::f32, {2}, "");
  const std::string made = hex(bytes_of(model));
  EXPECT_TRUE(
      made.starts_with("0808"
                       "120573696e6577"))
      << made;  // IR version 8, producer sinew
  EXPECT_NE(made.find("0a0178"
                      "120179"
                      "1a0179"
                      "22084964656e74697479"),
            std::string::npos)
      << made;
  // The input x: float32 [batch, 2].
  EXPECT_NE(made.find("0a0178"
                      "1213"
                      "0a11"
                      "0801"
                      "120d"
                      "0a07"
                      "12056261746368"
                      "0a02"
                      "0802"),
            std::string::npos)
      << made;
  EXPECT_TRUE(
      made.ends_with("42"
                     "04"
                     "0a00"
                     "1012"))
      << made;  // the default operators, version 18
}

TEST(Bytes, ATensorHasItsShapeTypeNameAndBytes) {
  Model model;
  model.name = "g";
  Builder builder(model);
  builder.weight("w", floats({2}, {1.0F, -2.0F}));
  EXPECT_NE(hex(bytes_of(model))
                .find("2a12"
                      "0a0102"
                      "1001"
                      "420177"
                      "4a08"
                      "0000803f"
                      "000000c0"),
            std::string::npos)
      << hex(bytes_of(model));
}

TEST(Builder, NoNameOccursTwice) {
  Model model;
  Builder builder(model);
  builder.input("label", Element::f64, {}, "");
  EXPECT_THROW(builder.input("label", Element::f64, {}, ""), Error);
  EXPECT_THROW(builder.input("", Element::f64, {}, ""), Error);
  EXPECT_EQ(builder.output("label", "label", Element::f64, {}, ""), "label_");
  EXPECT_NE(builder.weight("w", floats({}, {1})), builder.weight("w", floats({}, {2})));
}

data::PreparedColumn words_with(int64_t number_of_places) {
  data::PreparedColumn column;
  column.name = "colour";
  column.kind = data::PreparedColumn::Kind::value;
  column.cells = data::PreparedColumn::Cells::word;
  for (int64_t i = 0; i < number_of_places; ++i) column.places.emplace_back("c" + std::to_string(i), i);
  return column;
}

TEST(TableInputs, EachInputOfTheModelHasOneColumn) {
  Model model;
  Builder builder(model);
  EXPECT_THROW(table_inputs(builder, {words_with(2)}, 3), Error);  // one input has no column
  Model other;
  Builder again(other);
  data::PreparedColumn second = words_with(2);
  second.name = "shade";
  EXPECT_THROW(table_inputs(again, {words_with(2), second}, 4), Error);  // two columns have the same input
}

TEST(TableInputs, FreeTextIsRefusedByName) {
  Model model;
  Builder builder(model);
  data::PreparedColumn column;
  column.name = "note";
  column.kind = data::PreparedColumn::Kind::text;
  column.cells = data::PreparedColumn::Cells::word;
  try {
    table_inputs(builder, {column}, 64);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode("EXPORT_UNSUPPORTED"));
    EXPECT_NE(std::string(error.what()).find("'note'"), std::string::npos);
  }
}

}  // namespace
}  // namespace sinew::onnx
