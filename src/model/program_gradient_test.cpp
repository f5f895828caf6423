// Tests where the gradient of an output of a plan may flow, and the remarks about random operators.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/program_plan.h"

namespace sinew::model {
namespace {

Operand value(Slot slot) {
  Operand operand;
  operand.kind = Operand::Kind::slot;
  operand.slot = slot;
  return operand;
}

// Inputs: slot 0 is the sample, slot 1 a weight.
Plan two_inputs() {
  Plan plan;
  plan.inputs = {0, 1};
  plan.slots = 2;
  return plan;
}

// Appends an instruction, and returns the slot of its result.
Slot add(Plan& plan, const std::string& name, const std::string& overload, std::vector<Operand> operands) {
  Instruction made;
  made.name = made.target = "aten::" + name;
  made.op = c10::Dispatcher::singleton().findSchema({"aten::" + name, overload});
  made.operands = std::move(operands);
  made.results.resize(1);
  made.results[0].slot = static_cast<Slot>(plan.slots++);
  plan.instructions.push_back(made);
  return made.results[0].slot;
}

bool reaches(Plan& plan, Slot output) {
  plan.outputs = {value(output)};
  return gradient_reaches(plan, {false, true}, 0);
}

TEST(ProgramGradient, EndsAtDetach) {
  Plan plan = two_inputs();
  const Slot product = add(plan, "mm", "", {value(0), value(1)});
  EXPECT_TRUE(reaches(plan, product));
  EXPECT_FALSE(reaches(plan, 0));
  const Slot detached = add(plan, "detach", "", {value(product)});
  EXPECT_FALSE(reaches(plan, detached));
  const Slot sum = add(plan, "add", "Tensor", {value(detached), value(product)});
  EXPECT_TRUE(reaches(plan, sum));
  Operand list;
  list.kind = Operand::Kind::list;
  list.items = {value(0), value(product)};
  EXPECT_TRUE(reaches(plan, add(plan, "cat", "", {list})));
}

TEST(ProgramGradient, AWriteMayReachAnyView) {
  Plan plan = two_inputs();
  const Slot made = add(plan, "zeros_like", "", {value(0)}), part = add(plan, "select", "int", {value(made)});
  EXPECT_FALSE(reaches(plan, made));
  add(plan, "copy_", "", {value(part), value(1)});
  EXPECT_TRUE(reaches(plan, made));
}

TEST(ProgramGradient, EndsAtNoGrad) {
  Plan plan = two_inputs();
  Instruction block;
  block.target = "torch.ops.higher_order.wrap_with_set_grad_enabled";
  block.higher = std::make_shared<HigherOrder>();
  Operand off;
  off.constant = false;
  block.operands = {off, value(1)};
  block.results.resize(1);
  block.results[0].slot = 2;
  plan.slots = 3;
  plan.instructions = {block};
  EXPECT_FALSE(reaches(plan, 2));
  plan.instructions[0].operands[0].constant = true;
  EXPECT_TRUE(reaches(plan, 2));
}

TEST(ProgramRemarks, RandomOperatorsThatStayOnInEvaluation) {
  Plan plan = two_inputs();
  add(plan, "dropout", "", {value(0)});
  EXPECT_TRUE(random_in_evaluation(plan).empty());
  add(plan, "rand_like", "", {value(0)});
  add(plan, "bernoulli", "p", {value(0)});
  ASSERT_EQ(random_in_evaluation(plan).size(), 1U);
  EXPECT_THAT(random_in_evaluation(plan)[0],
              testing::AllOf(testing::HasSubstr("node aten::rand_like"), testing::HasSubstr("like 1 others")));
}

}  // namespace
}  // namespace sinew::model
