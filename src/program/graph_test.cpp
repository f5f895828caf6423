// The graph and its signature: each thing that can be wrong is refused, with its place.
#include "program/graph.h"

#include <sys/resource.h>

#include <functional>

#include "program/pytree.h"
#include "program/refusal.h"
#include "program/sample_model.h"

namespace sinew::program {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Pointer = nlohmann::json_pointer<std::string>;

// A place in the model (a JSON pointer below graph_module), what to put there, what must be said.
struct Wrong {
  const char* place;
  const char* value;  // JSON; "" takes the place away
  std::vector<const char*> says;
};

std::string refused(const std::function<void(Sample&)>& change) {
  Sample sample;
  change(sample);
  return refusal([&] { sample.read(); });
}

void expect_refused(const std::vector<Wrong>& all) {
  for (const Wrong& wrong : all) {
    const std::string said = refused([&](Sample& sample) {
      Made& module = sample.model["graph_module"];
      const Pointer place(wrong.place);
      ASSERT_TRUE(*wrong.value != '\0' || module.contains(place)) << wrong.place;
      Made& parent = module[place.parent_pointer()];
      if (*wrong.value != '\0')
        module[place] = made(wrong.value);
      else if (parent.is_array())
        parent.erase(std::stoul(place.back()));
      else
        parent.erase(place.back());
    });
    for (const char* words : wrong.says) EXPECT_THAT(said, HasSubstr(words)) << wrong.place;
    EXPECT_THAT(said, HasSubstr("net.pt2: models/model.json: graph_module"));
  }
}

TEST(Graph, RefusesNamesThatDoNotResolve) {
  expect_refused({
      {"/graph/nodes/1/inputs/0/arg/as_tensor/name",
       R"("nobody")",
       {"graph.nodes[1].inputs[0].arg.as_tensor.name: names 'nobody', which nothing before it makes"}},
      {"/graph/nodes/1/inputs/0/arg/as_tensor/name", R"("getitem")", {"names 'getitem', which nothing before"}},
      {"/graph/nodes/1/inputs/0/arg/as_tensor/name", R"("linear")", {"names 'linear', which nothing before"}},
      {"/graph/nodes/1/inputs/0/arg/as_tensor/name", R"("k")", {"should be a tensor, but 'k' is a symbolic integer"}},
      {"/graph/nodes/2/inputs/2/arg/as_sym_ints/0/as_name", R"("x")", {"symbolic integer, but 'x' is a tensor"}},
      {"/graph/nodes/1/outputs/0/as_tensor/name", R"("x")", {"outputs[0].as_tensor.name: makes 'x' a second time"}},
      {"/graph/nodes/1/outputs/0/as_tensor/name", R"("")", {"a value without a name"}},
      {"/graph/inputs/1/as_tensor/name", R"("p_w")", {"graph.inputs[1].as_tensor.name: makes 'p_w' a second time"}},
      {"/graph/tensor_values/linear", "", {"makes 'linear', a tensor that the graph's table does not have"}},
      {"/graph/sym_int_values/size", "", {"a symbolic integer that the graph's table does not have"}},
      {"/graph/outputs/0/as_tensor/name", R"("nobody")", {"graph.outputs[0].as_tensor.name: names 'nobody'"}},
      {"/graph/nodes/5/inputs/1/arg/as_graph/graph/nodes/0/inputs/0/arg/as_tensor/name",
       R"("y")",  // of the outer graph
       {"as_graph.graph.nodes[0].inputs[0].arg.as_tensor.name: names 'y', which nothing before it makes"}},
  });
}

TEST(Graph, RefusesWhatTheSchemaDoesNotHave) {
  expect_refused({
      {"/graph/nodes/0/inputs/1/arg", R"({"as_magic": 1})", {"nodes[0].inputs[1].arg: is 'as_magic'", "schema 8"}},
      {"/graph/nodes/0/inputs/1/arg", R"({"as_int": 1, "as_float": 1})", {"should have one member, but has 2"}},
      {"/graph/nodes/0/inputs/1/arg", R"({})", {"should have one member, but has 0"}},
      {"/graph/nodes/0/inputs/1/arg", "null", {"arg: should be an object, but is null"}},
      {"/graph/nodes/0/inputs/1/arg", R"({"as_int": 1.5})", {"as_int: should be an integer, but is a number"}},
      {"/graph/nodes/0/inputs/1/arg", R"({"as_int": true})", {"should be an integer, but is a boolean"}},
      {"/graph/nodes/0/inputs/1/arg", R"({"as_float": "much"})", {"as_float: should be a number, but is text"}},
      {"/graph/nodes/0/inputs/1/arg", R"({"as_ints": [1, "2"]})", {"as_ints[1]: should be an integer, but is text"}},
      {"/graph/nodes/0/inputs/1/arg", R"({"as_scalar_type": 99})", {"as_scalar_type: is 99, which is no dtype"}},
      {"/graph/nodes/0/inputs/1/arg", R"({"as_scalar_type": 30})", {"float of 8 bits"}},
      {"/graph/nodes/0/inputs/1/arg", R"({"as_layout": 2})", {"layout 2", "to_dense"}},
      {"/graph/nodes/0/inputs/1/arg", R"({"as_memory_format": 0})", {"as_memory_format: is 0, but must be 1 to 4"}},
      {"/graph/nodes/0/inputs/1/arg", R"({"as_device": {"index": 0}})", {"as_device: lacks 'type'"}},
      {"/graph/nodes/0/inputs/1/arg",
       R"({"as_custom_obj": {"name": "o", "class_fqn": "C"}})",
       {"custom class", "script objects"}},
      {"/graph/nodes/0/inputs/1/arg", R"({"as_complex": {"real": 1}})", {"as_complex: lacks 'imag'"}},
      {"/graph/nodes/0/inputs/1/kind", "3", {"inputs[1].kind: is 3, but must be 0 to 2"}},
      {"/graph/nodes/0/outputs/0", R"({"as_int": 1})", {"outputs[0]: is 'as_int', which no node can make"}},
      {"/graph/nodes/0/outputs/0", R"({"as_sym_int": {"as_int": 1}})", {"but what a node makes has a name"}},
      {"/graph/nodes/0/target", "", {"graph.nodes[0]: lacks 'target'"}},
      {"/graph/nodes/0/color", "1", {"graph.nodes[0]: has 'color', which the schema does not know"}},
      {"/graph/nodes/0/metadata/stack_trace", "1", {"metadata.stack_trace: should be text"}},
      {"/graph/nodes", "{}", {"graph.nodes: should be a list, but is an object"}},
      {"/graph/custom_obj_values/o", "{}", {"custom_obj_values: holds 'o', an object of a custom class"}},
      {"/graph/is_single_tensor_return", "true", {"graph.outputs: has 4 values, but the graph returns a single one"}},
      {"/graph/inputs/8", R"({"as_tensors": []})", {"graph.inputs[8]: is 'as_tensors', which can not be an input"}},
      {"/graph/inputs/8", R"({"as_tensor": {"name": 1}})", {"graph.inputs[8].as_tensor.name: should be text"}},
  });
}

TEST(Graph, RefusesShapesThatDoNotAgree) {
  expect_refused({
      {"/graph/tensor_values/x/sizes/0/as_expr/hint/as_int", "5", {"gives 's77' the number 4, but elsewhere it has 5"}},
      {"/graph/tensor_values/x/sizes/1/as_int",
       "-1",
       {"tensor_values.x.sizes[1].as_int: is -1, but must be 0 or more"}},
      {"/graph/tensor_values/x/sizes/0/as_expr/hint", R"({"as_bool": true})", {"hint: should be as_int"}},
      {"/graph/tensor_values/x/sizes/0", R"({"as_float": 1})", {"is neither as_int nor as_expr, but 'as_float'"}},
      {"/graph/tensor_values/x/strides", "[]", {"tensor_values.x.strides: has 0 numbers for 2 sizes"}},
      {"/graph/tensor_values/x/dtype", "33", {"tensor_values.x.dtype: is the dtype 33"}},
      {"/graph/tensor_values/x/device/type", "7", {"tensor_values.x.device.type: should be text"}},
      {"/graph/tensor_values/x/requires_grad", "0", {"requires_grad: should be true or false, but is an integer"}},
      {"/graph/sym_bool_values/ge", R"({"as_int": 1})", {"sym_bool_values.ge: is 'as_int', which is not a symbolic"}},
  });
  EXPECT_THAT(refused([](Sample& s) { s.model["range_constraints"]["s77"]["max_val"] = 0; }),
              HasSubstr("range_constraints.s77: is a range from more to less"));
}

TEST(Graph, BoundsGraphsInsideGraphs) {
  const auto nested = [](int depth) {
    Sample sample;
    Made body = sample.node(5)["inputs"][1]["arg"]["as_graph"]["graph"];
    Made inner = body;
    for (int i = 1; i < depth; ++i) {
      Made outer = body;
      outer["nodes"][0]["inputs"].push_back(
          {{"name", ""}, {"arg", {{"as_graph", {{"name", "g"}, {"graph", inner}}}}}, {"kind", 1}});
      inner = outer;
    }
    sample.node(5)["inputs"][1]["arg"]["as_graph"]["graph"] = inner;
    return sample;
  };
  EXPECT_NO_THROW(nested(kDeepestGraph).read());
  EXPECT_THAT(refusal([&] { nested(kDeepestGraph + 1).read(); }), HasSubstr("is a graph inside a graph, 17 deep"));
}

TEST(Signature, MustAgreeWithTheGraph) {
  expect_refused({
      {"/signature/input_specs/0/parameter/arg/name", R"("p_t")", {"input_specs[0]: is not the graph's input of"}},
      {"/signature/input_specs/1/parameter/parameter_name", R"("w")", {"input_specs[1]: names 'w' a second time"}},
      {"/signature/input_specs/9", "", {"in_spec: has 4 leaves for 3 values of the user's input"}},
      {"/signature/input_specs/0",
       R"({"token": {"arg": {"name": "p_w"}}})",
       {"input_specs[0]: is an effect token", "side effects"}},
      {"/signature/input_specs/0", R"({"custom_obj": {}})", {"object of a custom class"}},
      {"/signature/input_specs/0", R"({"magic": {}})", {"is 'magic', a kind of input that schema 8"}},
      {"/signature/input_specs/9/constant_input/value", R"({"as_ints": []})", {"which no constant can be"}},
      {"/signature/output_specs/0/buffer_mutation/buffer_name", R"("w")", {"names 'w', which is no buffer among"}},
      {"/signature/output_specs/1/user_output/arg/as_tensor/name", R"("linear")", {"not the graph's output of that"}},
      {"/signature/output_specs/3", "", {"has 3 entries for the graph's 4 outputs"}},
      {"/signature/output_specs/3", R"({"gradient_to_parameter": {}})", {"backward pass", "torch.export.export"}},
      {"/module_call_graph/0/signature", "null", {"module_call_graph: has no signature of the module itself"}},
      {"/module_call_graph/0/signature/in_spec", R"("[2, {}]")", {"in_spec: tree: [0]: is version 2 of trees"}},
      {"/module_call_graph/0/signature/in_spec", R"("[")", {"in_spec: tree: not JSON"}},
      {"/module_call_graph/0/signature/in_spec",
       R"("[1, {\"type\": null, \"context\": null, \"children_spec\": []}]")",
       {"in_spec: should be a pair of arguments and keyword arguments"}},
      {"/module_call_graph/0/signature/out_spec",
       R"("[1, {\"type\": null, \"context\": null, \"children_spec\": []}]")",
       {"out_spec: has 1 leaves for 3 values of the user's output"}},
      {"/module_call_graph/0/signature/forward_arg_names",
       R"(["batch", "flag"])",
       {"in_spec: gives two inputs one name"}},
  });
  EXPECT_THAT(refused([](Sample& s) { s.signature()["input_specs"].erase(8); }),
              HasSubstr("has 8 values for the graph's 9"));
}

TEST(Signature, InputsWithoutNamesGoByTheirPlaces) {
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
      made(R"json({"user_input_mutation": {"arg": {"name": "add"}, "user_input_name": "y"}})json");
  EXPECT_EQ(sample.read().outputs[0].name, "batch.more.0");
  sample.signature()["output_specs"][0]["user_input_mutation"]["user_input_name"] = "p_w";
  EXPECT_THAT(refusal([&] { sample.read(); }), HasSubstr("names 'p_w', which is no input of the user's"));
}

TEST(Signature, TreesOfTheUsersOwn) {
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

// A tree may have millions of leaves below one long name: those beyond what the graph gives are counted, not named.
TEST(Signature, LeavesNobodyAskedForAreNotNamed) {
  const Document document = parse_json("{}", "tree");
  const Spot spot(document);
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
  EXPECT_THAT(refusal([&] { output_names(spot, tree, 3); }),
              HasSubstr("has 1000000 leaves for 3 values of the user's output"));
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
