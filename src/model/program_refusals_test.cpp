#include "model/program_refusals.h"

#include <gtest/gtest.h>

namespace sinew::model {
namespace {

// Makes a program whose parameters are overlapping views of one memory.
program::Program program_of_views(int count) {
  program::Program program;
  program.path = "net.pt2";
  for (int i = 0; i < count; ++i) {
    const std::string name = "w" + std::to_string(i);
    program.graph.values.push_back({name, program::ValueKind::tensor, {}});
    program::InputSpec spec;
    spec.kind = program::InputSpec::Kind::parameter;
    spec.name = name;
    spec.value = static_cast<program::ValueId>(i);
    program.inputs.push_back(spec);
    program::StoredTensor stored;
    stored.member = "memory";
    stored.sizes = {1000};
    stored.strides = {1};
    stored.offset = i;
    stored.is_parameter = true;
    program.weights[name] = stored;
  }
  return program;
}

TEST(ProgramRefusals, AreAFewAlsoForAHostileFile) {
  const auto count = [](int views) {
    const program::Program program = program_of_views(views);
    Plan plan;
    plan.written.assign(program.inputs.size(), false);
    plan.overwritten = plan.written;
    const std::vector<Error> refused = refusals(program, plan);
    for (const Error& error : refused) EXPECT_EQ(error.code, ErrorCode("MODEL_SHARED_MEMORY"));
    return refused.size();
  };
  EXPECT_EQ(count(1), 0U);
  EXPECT_EQ(count(3), 3U);
  EXPECT_EQ(count(1000), 20U);
}

}  // namespace
}  // namespace sinew::model
