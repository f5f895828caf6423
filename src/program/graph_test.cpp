// Tests that the readers of a graph and of its signature refuse every kind of mistake and name the place of it.
#include "program/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <functional>

#include "base/expected_error.h"
#include "program/pytree.h"
#include "program/sample_model.h"

namespace sinew::program {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Pointer = nlohmann::json_pointer<std::string>;

// A place in the model (a JSON pointer below graph_module), the value to put there, and the words that the refusal must
// contain.
struct Wrong {
  const char* place;
  const char* value;  // JSON; "" removes the place
  std::vector<const char*> mentions;
};

std::string refused(const std::function<void(Sample&)>& change) {
  Sample sample;
  change(sample);
  return error_of([&] { sample.read(); });
}

void expect_refused(ErrorCode code, const std::vector<Wrong>& all) {
  for (const Wrong& wrong : all) {
    const std::string refusal = refused([&](Sample& sample) {
      TestJson& module = sample.model["graph_module"];
      const Pointer place(wrong.place);
      ASSERT_TRUE(*wrong.value != '\0' || module.contains(place)) << wrong.place;
      TestJson& parent = module[place.parent_pointer()];
      if (*wrong.value != '\0')
        module[place] = json_of(wrong.value);
      else if (parent.is_array())
        parent.erase(std::stoul(place.back()));
      else
        parent.erase(place.back());
    });
    for (const char* mention : wrong.mentions) EXPECT_ERROR(refusal, code, mention);
    EXPECT_THAT(refusal, HasSubstr("net.pt2: models/model.json: graph_module"));
  }
}

TEST(Graph, RefusesNamesThatDoNotResolve) {
  expect_refused(
      "PROGRAM_BAD_GRAPH",
      {
          {"/graph/nodes/1/inputs/0/arg/as_tensor/name",
           R"("unknown")",
           {"graph.nodes[1].inputs[0].arg.as_tensor.name: names 'unknown'"}},
          {"/graph/nodes/1/inputs/0/arg/as_tensor/name", R"("getitem")", {"names 'getitem'"}},
          {"/graph/nodes/1/inputs/0/arg/as_tensor/name", R"("linear")", {"names 'linear'"}},
          {"/graph/nodes/1/inputs/0/arg/as_tensor/name", R"("k")", {"'k' is a symbolic integer"}},
          {"/graph/nodes/2/inputs/2/arg/as_sym_ints/0/as_name", R"("x")", {"'x' is a tensor"}},
          {"/graph/nodes/1/outputs/0/as_tensor/name", R"("x")", {"outputs[0].as_tensor.name: defines 'x'"}},
          {"/graph/nodes/1/outputs/0/as_tensor/name", R"("")", {"outputs[0].as_tensor.name"}},
          {"/graph/inputs/1/as_tensor/name", R"("p_w")", {"graph.inputs[1].as_tensor.name: defines 'p_w'"}},
          {"/graph/tensor_values/linear", "", {"defines 'linear', a tensor"}},
          {"/graph/sym_int_values/size", "", {"'size', a symbolic integer"}},
          {"/graph/outputs/0/as_tensor/name", R"("unknown")", {"graph.outputs[0].as_tensor.name: names 'unknown'"}},
          {"/graph/nodes/5/inputs/1/arg/as_graph/graph/nodes/0/inputs/0/arg/as_tensor/name",
           R"("y")",  // a value of the outer graph
           {"as_graph.graph.nodes[0].inputs[0].arg.as_tensor.name: names 'y'"}},
      });
}

TEST(Graph, RefusesKindsThatTheSchemaDoesNotHave) {
  expect_refused(
      "PROGRAM_BAD_SCHEMA",
      {
          {"/graph/nodes/0/inputs/1/arg", R"({"as_magic": 1})", {"nodes[0].inputs[1].arg: is 'as_magic'"}},
          {"/graph/nodes/0/inputs/1/arg", R"({"as_int": 1, "as_float": 1})", {"arg: should have one member"}},
          {"/graph/nodes/0/inputs/1/arg", R"({})", {"has 0"}},
          {"/graph/nodes/0/inputs/1/arg", "null", {"arg: should be an object, but is null"}},
          {"/graph/nodes/0/inputs/1/arg", R"({"as_int": 1.5})", {"as_int: should be an integer, but is a number"}},
          {"/graph/nodes/0/inputs/1/arg", R"({"as_int": true})", {"should be an integer, but is a boolean"}},
          {"/graph/nodes/0/inputs/1/arg", R"({"as_float": "much"})", {"as_float: should be a number, but is text"}},
          {"/graph/nodes/0/inputs/1/arg", R"({"as_ints": [1, "2"]})", {"as_ints[1]: should be an integer"}},
          {"/graph/nodes/0/inputs/1/arg", R"({"as_scalar_type": 99})", {"as_scalar_type: is 99"}},
          {"/graph/nodes/0/inputs/1/arg", R"({"as_memory_format": 0})", {"as_memory_format: is 0, but must be 1 to 4"}},
          {"/graph/nodes/0/inputs/1/arg", R"({"as_device": {"index": 0}})", {"as_device: lacks 'type'"}},
          {"/graph/nodes/0/inputs/1/arg", R"({"as_complex": {"real": 1}})", {"as_complex: lacks 'imag'"}},
          {"/graph/nodes/0/inputs/1/kind", "3", {"inputs[1].kind: is 3, but must be 0 to 2"}},
          {"/graph/nodes/0/outputs/0", R"({"as_int": 1})", {"outputs[0]: is 'as_int'"}},
          {"/graph/nodes/0/outputs/0", R"({"as_sym_int": {"as_int": 1}})", {"outputs[0].as_sym_int: is 'as_int'"}},
          {"/graph/nodes/0/target", "", {"graph.nodes[0]: lacks 'target'"}},
          {"/graph/nodes/0/color", "1", {"graph.nodes[0]: has 'color'"}},
          {"/graph/nodes/0/metadata/stack_trace", "1", {"metadata.stack_trace: should be text"}},
          {"/graph/nodes", "{}", {"graph.nodes: should be a list, but is an object"}},
          {"/graph/inputs/8", R"({"as_tensor": {"name": 1}})", {"graph.inputs[8].as_tensor.name: should be text"}},
      });
  expect_refused("PROGRAM_UNSUPPORTED",
                 {
                     {"/graph/nodes/0/inputs/1/arg", R"({"as_scalar_type": 30})", {"as_scalar_type: is the dtype 30"}},
                     {"/graph/nodes/0/inputs/1/arg", R"({"as_layout": 2})", {"layout 2", "to_dense"}},
                     {"/graph/nodes/0/inputs/1/arg",
                      R"({"as_custom_obj": {"name": "o", "class_fqn": "C"}})",
                      {"inputs[1].arg", "script objects"}},
                     {"/graph/custom_obj_values/o", "{}", {"custom_obj_values: holds 'o'"}},
                 });
  expect_refused("PROGRAM_BAD_GRAPH",
                 {
                     {"/graph/is_single_tensor_return", "true", {"graph.outputs: has 4 values"}},
                     {"/graph/inputs/8", R"({"as_tensors": []})", {"graph.inputs[8]: is 'as_tensors'"}},
                 });
}

TEST(Graph, RefusesShapesThatDoNotAgree) {
  expect_refused("PROGRAM_BAD_GRAPH", {{"/graph/tensor_values/x/sizes/0/as_expr/hint/as_int",
                                        "5",
                                        {"gives 's77' the value 4, but elsewhere its value is 5"}}});
  expect_refused(
      "PROGRAM_BAD_SCHEMA",
      {
          {"/graph/tensor_values/x/sizes/1/as_int", "-1", {"tensor_values.x.sizes[1].as_int: is -1"}},
          {"/graph/tensor_values/x/sizes/0/as_expr/hint", R"({"as_bool": true})", {"hint: should be as_int"}},
          {"/graph/tensor_values/x/sizes/0", R"({"as_float": 1})", {"sizes[0]", "'as_float'"}},
          {"/graph/tensor_values/x/strides", "[]", {"tensor_values.x.strides: has 0 numbers for 2 sizes"}},
          {"/graph/tensor_values/x/device/type", "7", {"tensor_values.x.device.type: should be text"}},
          {"/graph/tensor_values/x/requires_grad", "0", {"requires_grad: should be true or false"}},
          {"/graph/sym_bool_values/ge", R"({"as_int": 1})", {"sym_bool_values.ge: is 'as_int'"}},
      });
  expect_refused("PROGRAM_UNSUPPORTED",
                 {{"/graph/tensor_values/x/dtype", "33", {"tensor_values.x.dtype: is the dtype 33"}}});
  EXPECT_ERROR(refused([](Sample& s) { s.model["range_constraints"]["s77"]["max_val"] = 0; }), "PROGRAM_BAD_GRAPH",
               "range_constraints.s77");
}

TEST(Graph, LimitsTheDepthOfNestedGraphs) {
  const auto nested = [](int depth) {
    Sample sample;
    TestJson body = sample.node(5)["inputs"][1]["arg"]["as_graph"]["graph"];
    TestJson inner = body;
    for (int i = 1; i < depth; ++i) {
      TestJson outer = body;
      outer["nodes"][0]["inputs"].push_back(
          {{"name", ""}, {"arg", {{"as_graph", {{"name", "g"}, {"graph", inner}}}}}, {"kind", 1}});
      inner = outer;
    }
    sample.node(5)["inputs"][1]["arg"]["as_graph"]["graph"] = inner;
    return sample;
  };
  EXPECT_NO_THROW(nested(kMaxGraphDepth).read());
  EXPECT_ERROR(error_of([&] { nested(kMaxGraphDepth + 1).read(); }), "PROGRAM_TOO_LARGE", "17");
}

TEST(Signature, MustAgreeWithTheGraph) {
  expect_refused(
      "PROGRAM_BAD_GRAPH",
      {
          {"/signature/input_specs/0/parameter/arg/name", R"("p_t")", {"input_specs[0]"}},
          {"/signature/input_specs/1/parameter/parameter_name", R"("w")", {"input_specs[1]: names 'w'"}},
          {"/signature/input_specs/9", "", {"in_spec: has 4 leaves for 3 values"}},
          {"/signature/output_specs/0/buffer_mutation/buffer_name", R"("w")", {"output_specs[0]", "names 'w'"}},
          {"/signature/output_specs/1/user_output/arg/as_tensor/name", R"("linear")", {"output_specs[1]"}},
          {"/signature/output_specs/3", "", {"output_specs: has 3 entries for the graph's 4"}},
          {"/module_call_graph/0/signature/out_spec",
           R"("[1, {\"type\": null, \"context\": null, \"children_spec\": []}]")",
           {"out_spec: has 1 leaves for 3 values"}},
          {"/module_call_graph/0/signature/forward_arg_names", R"(["batch", "flag"])", {"in_spec", "'flag'"}},
      });
  expect_refused("PROGRAM_BAD_SCHEMA",
                 {
                     {"/signature/input_specs/0", R"({"magic": {}})", {"input_specs[0]: is 'magic'"}},
                     {"/signature/input_specs/9/constant_input/value", R"({"as_ints": []})", {"is 'as_ints'"}},
                     {"/module_call_graph/0/signature", "null", {"module_call_graph"}},
                     {"/module_call_graph/0/signature/in_spec",
                      R"("[1, {\"type\": null, \"context\": null, \"children_spec\": []}]")",
                      {"in_spec"}},
                 });
  expect_refused(
      "PROGRAM_UNSUPPORTED",
      {
          {"/signature/input_specs/0", R"({"token": {"arg": {"name": "p_w"}}})", {"input_specs[0]", "side effects"}},
          {"/signature/input_specs/0", R"({"custom_obj": {}})", {"custom class"}},
          {"/signature/output_specs/3", R"({"gradient_to_parameter": {}})", {"backward pass", "torch.export.export"}},
      });
  expect_refused("PROGRAM_UNSUPPORTED_VERSION",
                 {{"/module_call_graph/0/signature/in_spec", R"("[2, {}]")", {"in_spec: tree: [0]: is version 2"}}});
  expect_refused("PROGRAM_BAD_JSON",
                 {{"/module_call_graph/0/signature/in_spec", R"("[")", {"in_spec: tree: not JSON"}}});
  EXPECT_ERROR(refused([](Sample& s) { s.signature()["input_specs"].erase(8); }), "PROGRAM_BAD_GRAPH",
               "has 8 values for the graph's 9");
}

TEST(Signature, InputsWithoutNamesAreNamedByPosition) {
  Sample sample;
  sample.call()["forward_arg_names"] = nullptr;
  std::vector<std::string> names;
  for (const InputSpec& input : sample.read().inputs) names.push_back(input.name);
  names.erase(names.begin(), names.begin() + 6);
  EXPECT_THAT(names, ElementsAre("args.0.ids", "args.0.more.0", "args.1", "flag"));
}

TEST(Signature, AMutatedInputHasTheUsersName) {
  Sample sample;
  sample.signature()["output_specs"][0] =
      json_of(R"json({"user_input_mutation": {"arg": {"name": "add"}, "user_input_name": "y"}})json");
  EXPECT_EQ(sample.read().outputs[0].name, "batch.more.0");
  sample.signature()["output_specs"][0]["user_input_mutation"]["user_input_name"] = "p_w";
  EXPECT_ERROR(error_of([&] { sample.read(); }), "PROGRAM_BAD_GRAPH", "names 'p_w'");
}

TEST(Signature, NamesLeavesInClassesOfTheUser) {
  Sample sample;
  std::string tree = sample.call()["out_spec"];
  const auto leaf_names = [&](const std::string& from, const std::string& to) {
    Sample other;
    other.call()["out_spec"] = std::string(tree).replace(tree.find(from), from.size(), to);
    const Program program = other.read();
    return std::vector<std::string>{program.outputs[1].name, program.outputs[2].name, program.outputs[3].name};
  };
  EXPECT_THAT(leaf_names("Pair", "Unknown"), ElementsAre("0.logits", "0.extra", "1"));
  EXPECT_THAT(leaf_names("\"[[\\\"logits\\\"", "\"[[\\\"logits\\\", \\\"more\\\""),
              ElementsAre("left.0", "left.1", "right"));
  EXPECT_THAT(leaf_names("\"Out\", \"context\": \"[[\\\"logits\\\", \\\"extra\\\"], [\\\"loss\\\"]]\"",
                         "\"collections.defaultdict\", \"context\": {\"dict_context\": [\"a\", 7]}"),
              ElementsAre("left.a", "left.7", "right"));
  EXPECT_THROW(leaf_names("\"Out\"", "\"builtins.dict\""), Error);
}

// A tree may have millions of leaves below one long name. So leaves beyond those of the graph are counted but not
// named.
TEST(Signature, LeavesBeyondThoseOfTheGraphAreNotNamed) {
  const Document document = parse_json("{}", "tree");
  const JsonView view(document);
  Tree tree, inner;
  tree.kind = inner.kind = Tree::Kind::dict;
  inner.keys = {std::string(900, 'x')};
  inner.children.resize(1);
  inner.children[0].kind = Tree::Kind::list;
  inner.children[0].children.resize(1'000'000);
  tree.keys = {"a"};
  tree.children.push_back(std::move(inner));
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  EXPECT_ERROR(error_of([&] { output_names(view, tree, 3); }), "PROGRAM_BAD_GRAPH", "1000000 leaves for 3 values");
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 100 << 10) << "KiB";
}

TEST(NodePlace, IsTheUsersOwnLine) {
  EXPECT_EQ(innermost_line("  File \"/a/b.py\", line 3, in f\n    x\n  File \"<eval_with_key>.4\", line 1, in forward"),
            "b.py:3 in f");
  EXPECT_EQ(innermost_line("File \"torch/fx/x.py\", line 3, in f"), "");
  EXPECT_EQ(innermost_line("nonsense\nFile \"x"), "");
  EXPECT_EQ(innermost_module("L__self__,,__main__.Net"), "Net");
  EXPECT_EQ(innermost_module("a,,N;b,layers.0,torch.nn.Linear"), "layers.0 (Linear)");
  EXPECT_EQ(innermost_module("nonsense"), "");
}

}  // namespace
}  // namespace sinew::program
