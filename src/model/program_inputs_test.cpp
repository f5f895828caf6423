// Tests which part of the data each input of a program receives, and the errors if the two do not fit.
#include "model/program_inputs.h"

#include <gtest/gtest.h>

#include "base/expected_error.h"

namespace sinew::model {
namespace {

using program::Dim;
using program::ScalarType;

Dim fixed(int64_t size) {
  Dim dim;
  dim.fixed = size;
  return dim;
}

struct Maker {
  program::Program program;
  Maker() { program.path = "net.pt2"; }

  program::ValueId tensor(const std::string& name, ScalarType dtype, const std::vector<int64_t>& sample,
                          bool batched = true) {
    program::TensorMeta meta;
    meta.dtype = dtype;
    if (batched) meta.sizes.emplace_back();  // any batch size
    for (const int64_t size : sample) meta.sizes.push_back(fixed(size));
    program.graph.values.push_back({name, program::ValueKind::tensor, meta});
    return static_cast<program::ValueId>(program.graph.values.size()) - 1;
  }
  void input(const std::string& name, ScalarType dtype, const std::vector<int64_t>& sample) {
    program::InputSpec spec;
    spec.kind = program::InputSpec::Kind::user;
    spec.name = name;
    spec.value = tensor(name, dtype, sample);
    program.inputs.push_back(spec);
  }
  void output(const std::vector<int64_t>& sample, bool batched = true) {
    program::OutputSpec spec;
    spec.value.value = program::ValueRef{tensor("out", ScalarType::f32, sample, batched)};
    program.outputs = {spec};
  }
};

data::DataInfo columns() {
  data::DataInfo info;
  info.input_shape = {4};
  info.input_names = {"age", "income", "user", "item"};
  info.classes = 3;
  return info;
}
data::DataInfo images() {
  data::DataInfo info;
  info.input_shape = {1, 28, 28};
  info.classes = 10;
  return info;
}

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return to_string(error) + " / " + error.hint;
  }
  return "accepted";
}

TEST(ProgramInputs, OneInputIsTheSample) {
  Maker maker;
  maker.input("x", ScalarType::f32, {1, 28, 28});
  const auto bindings = bind_inputs(maker.program, {}, images());
  ASSERT_EQ(bindings.size(), 1u);
  const torch::Tensor input = torch::ones({5, 1, 28, 28});
  EXPECT_TRUE(bound(bindings[0], input, {}).is_same(input));
}

TEST(ProgramInputs, TheSecondInputIsTheTarget) {
  Maker maker;
  maker.input("x", ScalarType::f32, {4});
  maker.input("y", ScalarType::i64, {});
  const auto bindings = bind_inputs(maker.program, {}, columns());
  const torch::Tensor target = torch::tensor({1, 2});
  EXPECT_TRUE(bound(bindings[1], torch::ones({2, 4}), target).is_same(target));
  EXPECT_NE(refusal([&] {
              bound(bindings[1], torch::ones({2, 4}), {});
            }).find("[MODEL_NEEDS_TARGET]"),
            std::string::npos);
}

TEST(ProgramInputs, BindsColumnsByNameAndByRange) {
  Maker maker;
  maker.input("numbers", ScalarType::f32, {2});
  maker.input("user", ScalarType::i64, {});
  maker.input("item", ScalarType::i64, {1});
  const auto bindings = bind_inputs(maker.program, {"item=item", "numbers=0:2", "user=user"}, columns());
  const torch::Tensor rows = torch::tensor({{0.5, 1.5, 7.0, 3.0}, {2.5, 3.5, 8.0, 4.0}});
  EXPECT_TRUE(torch::equal(bound(bindings[0], rows, {}), rows.slice(1, 0, 2)));
  EXPECT_TRUE(torch::equal(bound(bindings[1], rows, {}), torch::tensor({7, 8})));
  EXPECT_TRUE(torch::equal(bound(bindings[2], rows, {}), torch::tensor({3, 4}).unsqueeze(1)));
  const auto halves = bind_inputs(maker.program, {"user=age", "numbers=0:2", "item=item"}, columns());
  EXPECT_NE(refusal([&] { bound(halves[1], rows, {}); }).find("[MODEL_INPUT_MISMATCH]"), std::string::npos);
}

// float32 turns 16777217 into 16777216, so two users would become one.
TEST(ProgramInputs, RefusesIdsThatFloat32CannotTellApart) {
  Maker maker;
  maker.input("user", ScalarType::i64, {});
  maker.input("item", ScalarType::i32, {});
  const auto bindings = bind_inputs(maker.program, {"user=user", "item=item"}, columns());
  const auto rows = [](float user) { return torch::tensor({{0.5F, 1.5F, user, 3.0F}, {2.5F, 3.5F, 8.0F, 4.0F}}); };
  EXPECT_TRUE(torch::equal(bound(bindings[0], rows(16777215), {}), torch::tensor({16777215, 8})));
  EXPECT_TRUE(torch::equal(bound(bindings[0], rows(-16777215), {}), torch::tensor({-16777215, 8})));
  for (const float user : {16777217.0F, -16777217.0F, 3e9F}) {
    const std::string text = refusal([&] { bound(bindings[0], rows(user), {}); });
    EXPECT_NE(text.find("[MODEL_INPUT_MISMATCH]"), std::string::npos) << text;
    EXPECT_NE(text.find("'user' has numbers of 16777216"), std::string::npos) << text;
  }
  EXPECT_NE(refusal([&] { bound(bindings[0], rows(INFINITY), {}); }).find("[MODEL_INPUT_MISMATCH]"), std::string::npos);
  EXPECT_EQ(bound(bindings[0], rows(1).slice(0, 0, 0), {}).numel(), 0);
  Binding narrow;  // int64 labels into int32
  narrow.name = "label";
  narrow.source = Binding::Source::target;
  narrow.dtype = at::kInt;
  EXPECT_TRUE(torch::equal(bound(narrow, {}, torch::tensor({3L})), torch::tensor({3}, at::kInt)));
  EXPECT_NE(refusal([&] { bound(narrow, {}, torch::tensor({1L << 33})); }).find("[MODEL_INPUT_MISMATCH]"),
            std::string::npos);
}

TEST(ProgramInputs, ErrorsGiveBothShapesAndTheChoices) {
  Maker maker;
  maker.input("x", ScalarType::f32, {3, 32, 32});
  const std::string shapes = refusal([&] { bind_inputs(maker.program, {}, images()); });
  EXPECT_NE(shapes.find("net.pt2: input x takes float32 [batch, 3, 32, 32], but 'input' of the data is float32 [batch, "
                        "1, 28, 28] [MODEL_INPUT_MISMATCH]"),
            std::string::npos)
      << shapes;
  Maker tokens;
  tokens.input("ids", ScalarType::i64, {1, 28, 28});
  EXPECT_NE(refusal([&] { bind_inputs(tokens.program, {}, images()); }).find("takes int64 [batch, 1, 28, 28]"),
            std::string::npos);
  Maker exact;
  exact.input("x", ScalarType::f32, {4});
  exact.program.graph.values[0].meta->sizes[0] = fixed(8);
  EXPECT_NE(refusal([&] { bind_inputs(exact.program, {}, columns()); }).find("exactly 8 [MODEL_NOT_BATCHED]"),
            std::string::npos);
  Maker bytes;
  bytes.input("x", ScalarType::u8, {4});
  EXPECT_NE(refusal([&] { bind_inputs(bytes.program, {}, columns()); }).find("takes uint8 [batch, 4]"),
            std::string::npos);
  Maker two;
  two.input("a", ScalarType::f32, {4});
  two.input("b", ScalarType::f32, {4});
  EXPECT_NE(refusal([&] { bind_inputs(two.program, {"c=input"}, columns()); }).find("its inputs are a, b"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              bind_inputs(two.program, {"a=input"}, columns());
            }).find("input b has no source [MODEL_INPUTS_INVALID]"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              bind_inputs(two.program, {"a=input", "a=input"}, columns());
            }).find("'a' twice [MODEL_INPUTS_INVALID]"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              bind_inputs(two.program, {"a=wages", "b=input"}, columns());
            }).find("column of the data [MODEL_INPUTS_INVALID]"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              bind_inputs(two.program, {"a=2:9", "b=input"}, columns());
            }).find("a sample has 4 [MODEL_INPUTS_INVALID]"),
            std::string::npos);
}

// The exporter follows the branches of the model's code, so its graph is right only for some sizes.
TEST(ProgramInputs, TheSamplesMustHaveSizesForWhichTheProgramWasExported) {
  Maker maker;
  maker.input("x", ScalarType::f32, {4});
  maker.input("y", ScalarType::f32, {4});
  program::TensorMeta &x = *maker.program.graph.values[0].meta, &y = *maker.program.graph.values[1].meta;
  x.sizes[0].expression = y.sizes[0].expression = "Mul(Integer(2), Symbol('h'))";
  x.sizes[1].fixed = y.sizes[1].fixed = std::nullopt;
  x.sizes[1].expression = y.sizes[1].expression = "Symbol('t')";
  const std::vector<std::string> both = {"x=input", "y=input"}, parts = {"x=input", "y=0:3"};
  const auto bindings = bind_inputs(maker.program, both, columns());
  EXPECT_EQ(shapes_of(bindings, 5), (std::vector<Shape>{{5, 4}, {5, 4}}));
  EXPECT_ERROR(error_of([&] { bind_inputs(maker.program, parts, columns()); }), "MODEL_INPUT_MISMATCH",
               "input y has the size 3 in dimension 1, but the program was exported for t = 4");
  maker.program.ranges["t"] = {9, std::nullopt};
  EXPECT_ERROR(error_of([&] { bind_inputs(maker.program, both, columns()); }), "MODEL_INPUT_MISMATCH",
               "t is at least 9");
}

TEST(ProgramInputs, TheFirstOutputMustBeATensorOfRealNumbers) {
  Maker maker;
  maker.output({3});
  EXPECT_FALSE(output_problem(maker.program));
  EXPECT_EQ(first_output(maker.program), 0U);
  maker.program.graph.values.back().meta->dtype = ScalarType::bf16;
  EXPECT_FALSE(output_problem(maker.program));
  for (const ScalarType type : {ScalarType::i64, ScalarType::boolean, ScalarType::c64}) {
    maker.program.graph.values.back().meta->dtype = type;
    EXPECT_NE(std::string(output_problem(maker.program)->what()).find("takes real numbers"), std::string::npos);
  }
  for (const program::Argument& value : {program::Argument{int64_t{3}}, program::Argument{program::None{}}}) {
    maker.program.outputs[0].value = value;
    EXPECT_NE(std::string(output_problem(maker.program)->what()).find("is not a tensor"), std::string::npos);
  }
}

TEST(ProgramInputs, TheFirstOutputMustBeWhatTheLossTakes) {
  Maker maker;
  maker.output({10});
  check_output(maker.program, images(), 10);
  EXPECT_NE(refusal([&] {
              check_output(maker.program, columns(), 3);
            }).find("but the loss takes float32 [batch, 3] [MODEL_OUTPUT_MISMATCH]"),
            std::string::npos);
  EXPECT_NE(refusal([&] { check_output(maker.program, columns(), 0); }).find("[MODEL_OUTPUT_MISMATCH]"),
            std::string::npos);
  maker.output({}, /*batched=*/false);
  check_output(maker.program, columns(), 0);
  EXPECT_NE(
      refusal([&] { check_output(maker.program, columns(), 3); }).find("[MODEL_OUTPUT_MISMATCH] / set loss: program"),
      std::string::npos);
}

}  // namespace
}  // namespace sinew::model
