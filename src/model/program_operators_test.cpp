// Tests which operators a program may name, and what these operators do with hostile operands.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/expected_error.h"
#include "model/makers.h"
#include "model/model.h"
#include "model/program_plan.h"

namespace sinew::model {
namespace {

using c10::IValue;

std::string refusal_of(const std::string& name, const std::string& overload = "") {
  return error_of([&] { allowed_operator({name, overload}); });
}

c10::OperatorName name_of(std::string_view listed) {
  const size_t dot = listed.find('.');
  return {"aten::" + std::string(listed.substr(0, dot)),
          dot == std::string_view::npos ? "" : std::string(listed.substr(dot + 1))};
}

TEST(AllowedOperators, AreSortedAndExistInLibtorch) {
  install_keyed_random();
  const auto& all = allowed_operators();
  EXPECT_GT(all.size(), 1000U);
  EXPECT_TRUE(std::ranges::is_sorted(all));
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end()) << "twice";
  for (const std::string_view listed : all) {
    const auto op = c10::Dispatcher::singleton().findSchema(name_of(listed));
    ASSERT_TRUE(op) << listed;
    EXPECT_EQ(why_refused("aten::" + std::string(listed)), "") << listed;
    EXPECT_EQ(refusal_of(name_of(listed).name, name_of(listed).overload_name), "") << listed;
  }
}

// Keeps new kinds of operators out of the list. No operator on it writes a result into an `out` argument, or takes a
// file, a storage, a stream or a generator.
TEST(AllowedOperators, TakeNeitherFilesNorStorages) {
  for (const std::string_view listed : allowed_operators()) {
    const auto op = c10::Dispatcher::singleton().findSchema(name_of(listed));
    ASSERT_TRUE(op) << listed;
    for (const c10::Argument& argument : op->schema().arguments()) {
      const std::string type = argument.type()->str();
      EXPECT_EQ(type.find("Storage"), std::string::npos) << listed;
      EXPECT_EQ(type.find("Stream"), std::string::npos) << listed;
      EXPECT_NE(argument.name(), "filename") << listed;
      const bool writes = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
      EXPECT_FALSE(argument.kwarg_only() && writes) << listed;
    }
  }
}

// A program may name every operator of core ATen except those in left_out and backward operators.
TEST(AllowedOperators, IncludeCoreAten) {
  const std::vector<std::string> left_out = {"aten::atan2.out", "aten::resize_"};
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (name.getNamespace() != "aten" || !op || !op->hasTag(at::Tag::core)) continue;
    const std::string full = c10::toString(name);
    if (full.find("backward") != std::string::npos || std::ranges::find(left_out, full) != left_out.end()) continue;
    EXPECT_EQ(refusal_of(name.name, name.overload_name), "");
  }
}

TEST(AllowedOperators, OthersAreRefusedWithTheReason) {
  install_keyed_random();
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"aten::from_file", "", "is not on the list"},
      {"aten::add", "out", "writes its result into an argument"},
      {"aten::set_", "source_Tensor_storage_offset", "is not on the list"},
      {"aten::resize_", "", "is not on the list"},
      {"aten::_foobar", "", "is not on the list"},
      {"aten::no_such_operator", "", "is not on the list"},
      {"aten::convolution_backward", "", "is not on the list"},
      {"torchvision::nms", "", "only operators of PyTorch itself"},
      {"prim::device", "", "only operators of PyTorch itself"},
      {"quantized::linear", "", "only operators of PyTorch itself"},
      {"", "", "only operators of PyTorch itself"},
  };
  for (const auto& [name, overload, why] : cases)
    EXPECT_ERROR(refusal_of(name, overload), "MODEL_OPERATOR_NOT_ALLOWED", why) << name;
  EXPECT_ERROR(refusal_of("aten::multinomial"), "MODEL_OPERATOR_UNSUPPORTED", "would not repeat");
}

// ---- guards --------------------------------------------------------------------------------------------------------

// Runs one operator as a node of a program does. Without its guard, each call in these tests ended the process.
std::string failure(const std::string& name, const std::string& overload, std::vector<IValue> operands) {
  Instruction instruction;
  instruction.name = "node";
  instruction.op = allowed_operator({name, overload});
  instruction.target = c10::toString(c10::OperatorName(name, overload));
  instruction.guard = guard_of(instruction.target);
  for (IValue& value : operands) {
    Operand operand;
    operand.constant = std::move(value);
    instruction.operands.push_back(std::move(operand));
  }
  Plan plan;
  plan.instructions.push_back(std::move(instruction));
  return error_of([&] { run_plan(plan, {}, true); });
}

using Ints = std::vector<int64_t>;
const torch::Tensor kNone;

TEST(Guards, RefuseOperandsThatLibtorchDoesNotCheck) {
  const torch::Tensor x = torch::ones({2, 3}), nothing = torch::ones({0, 5, 0, 0});
  const auto refused = [&](const char* name, const char* overload, std::vector<IValue> operands, const char* why) {
    EXPECT_ERROR(failure(std::string("aten::") + name, overload, std::move(operands)), "MODEL_OPERATOR_FAILED", why);
  };
  refused("_fft_r2c", "", {x, Ints{int64_t{1} << 40}, 0, true}, "has no dimension");
  refused("_fft_r2c", "", {x, Ints{}, 0, true}, "expects a tensor and its dimensions");
  refused("_fft_c2c", "", {x, Ints{1, 1}, 0, true}, "twice");
  refused("native_batch_norm", "", {x, nothing, kNone, kNone, kNone, false, 0.1, 1e-5}, "running_mean");
  refused("native_batch_norm", "", {x, nothing, kNone, kNone, kNone, true, 0.1, 1e-5}, "weight has the shape");
  refused("_native_batch_norm_legit", "no_stats", {torch::ones({4}), kNone, kNone, true, 0.1, 1e-5}, "two dimensions");
  refused("_pdist_forward", "", {torch::ones({3, 2, 0}), 2.0}, "expects a matrix");
  refused("_weight_norm", "", {x, nothing, 0}, "has a scale of the shape");
  refused("_weight_norm", "", {x, torch::ones({2, 1}), 77}, "cannot keep dimension 77");
  refused("linalg_matrix_power", "", {torch::eye(2), std::numeric_limits<int64_t>::min()}, "exponent");
  const torch::Tensor least = torch::full({17}, std::numeric_limits<int64_t>::min(), torch::kInt64);
  refused("div", "Tensor_mode", {least, torch::full({17}, -1, torch::kInt64), "trunc"}, "by -1");
  refused("div", "Scalar_mode", {least, -1, "trunc"}, "by -1");
  refused("lstm", "input",
          {torch::ones({2, 1, 3}), c10::List<at::Tensor>({torch::ones({4, 1, 2}), torch::ones({4, 1, 2})}),
           c10::List<at::Tensor>(), false, 4, 0.0, false, false, false},
          "has 0 weights");
  refused("repeat_interleave", "self_Tensor",
          {torch::ones({4}), torch::full({1}, int64_t{1} << 62, torch::kInt64), IValue(), IValue()}, "times in all");
  refused("scaled_dot_product_attention", "",
          {torch::ones({2, 5, 4}), torch::ones({0, 0, 2}), torch::ones({3, 5, 2}), kNone, 0.0, false, IValue(), true},
          "key has no heads");
  const torch::Tensor long_one = torch::zeros({1}).expand({int64_t{1} << 40});
  refused("unbind", "int", {long_one, 0}, "tensors");
  refused("split", "Tensor", {long_one, 1, 0}, "tensors");
  refused("chunk", "", {long_one, int64_t{1} << 40, 0}, "tensors");
  refused("tensor_split", "sections", {long_one, int64_t{1} << 40, 0}, "tensors");
}

TEST(Guards, LetOrdinaryOperandsPass) {
  const torch::Tensor x = torch::ones({2, 3}), number = torch::full({3}, 7, torch::kInt64);
  EXPECT_EQ(failure("aten::_fft_r2c", "", {x, Ints{1}, 0, true}), "");
  EXPECT_EQ(failure("aten::native_batch_norm", "", {x, torch::ones({3}), kNone, kNone, kNone, true, 0.1, 1e-5}), "");
  EXPECT_EQ(failure("aten::_weight_norm", "", {x, torch::ones({2, 1}), 0}), "");
  EXPECT_EQ(failure("aten::div", "Tensor_mode", {number, torch::full({3}, -1, torch::kInt64), "trunc"}), "");
  EXPECT_EQ(failure("aten::linalg_matrix_power", "", {torch::eye(2), -3}), "");
  EXPECT_EQ(failure("aten::split", "Tensor", {x, 1, 1}), "");
  EXPECT_EQ(
      failure("aten::lstm", "input",
              {torch::ones({2, 1, 3}), c10::List<at::Tensor>({torch::ones({1, 1, 2}), torch::ones({1, 1, 2})}),
               c10::List<at::Tensor>({torch::ones({8, 3}), torch::ones({8, 2})}), false, 1, 0.0, false, false, false}),
      "");
}

// With a dtype that does not exist, a kernel would read outside of its tables.
TEST(Arguments, EnumerationsMustBeOfTheirKind) {
  const auto refusal = [](const char* target, const char* argument, program::Argument value) {
    program::Program file;
    program::Node node;
    node.name = "node";
    node.target = std::string("torch.ops.aten.") + target;
    node.inputs.push_back({argument, std::move(value)});
    if (node.target.ends_with("arange.default")) node.inputs.push_back({"end", {int64_t{3}}});
    file.graph.nodes.push_back(node);
    return error_of([&] { compile_graph(file, file.graph); });
  };
  EXPECT_EQ(refusal("arange.default", "dtype", {program::ScalarType::i32}), "");
  EXPECT_EQ(refusal("arange.default", "dtype", {program::None{}}), "");
  EXPECT_ERROR(refusal("arange.default", "dtype", {int64_t{-7}}), "MODEL_OPERATOR_UNSUPPORTED", "argument 'dtype'");
  EXPECT_ERROR(refusal("arange.default", "layout", {int64_t{99}}), "MODEL_OPERATOR_UNSUPPORTED", "argument 'layout'");
  EXPECT_ERROR(refusal("arange.default", "device", {std::string("cuda")}), "MODEL_OPERATOR_UNSUPPORTED", "'device'");
  EXPECT_ERROR(refusal("from_file.default", "filename", {std::string("/tmp/x")}), "MODEL_OPERATOR_NOT_ALLOWED",
               "node node (torch.ops.aten.from_file.default)");
}

// ---- memory --------------------------------------------------------------------------------------------------------

TEST(Memory, ATensorThatIsTooLargeIsAnErrorOfItsNode) {
  const auto zeros = [](int64_t size) {
    return failure("aten::zeros", "", {Ints{size}, IValue(), IValue(), IValue(), IValue()});
  };
  EXPECT_EQ(zeros(1000), "");
  EXPECT_ERROR(zeros(1'000'000'000'000'000), "MODEL_OUT_OF_MEMORY", "node node (aten::zeros)");
  EXPECT_ERROR(zeros(std::numeric_limits<int64_t>::max()), "MODEL_OPERATOR_FAILED", "node node (aten::zeros)");
  EXPECT_ERROR(zeros(-1), "MODEL_OPERATOR_FAILED", "node node (aten::zeros)");
}

TEST(Memory, TheFreeMemoryIsThatOfTheMachineOrOfItsGroup) {
  const std::string machine = "MemTotal: 9000 kB\nMemAvailable:    1000 kB\nSwapFree:  24 kB\n";
  EXPECT_EQ(free_memory(machine, "", "", ""), 1024U * 1024);
  EXPECT_EQ(free_memory(machine, "max\n", "5000\n", ""), 1024U * 1024);
  EXPECT_EQ(free_memory(machine, "9000\n", "5000\n", "active_file 7\ninactive_file 2000\n"), 6000U);
  EXPECT_EQ(free_memory(machine, "4000\n", "5000\n", ""), 0U);
  EXPECT_EQ(free_memory("", "", "", ""), UINT64_MAX) << "unknown: allocate";
}

TEST(Memory, TheLimitLeavesSmallTensorsAndBitsAlone) {
  limit_allocations();
  const torch::Tensor made = torch::ones({1000}).mul(2).clone();
  EXPECT_EQ(made.sum().item<double>(), 2000);
  EXPECT_THROW(torch::empty({int64_t{1} << 45}), c10::OutOfMemoryError);
}

}  // namespace
}  // namespace sinew::model
