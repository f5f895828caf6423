// For the tests of program/: a small program that uses every kind of input, output and argument. A test can change its
// JSON before the program is packed.
#pragma once

#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>

#include "program/sample.h"

namespace sinew::program {

inline TestJson json_of(const char* text) {
  return TestJson::parse(text);
}

inline TestJson named(const std::string& name) {
  return {{"name", name}};
}
inline TestJson tensor(const std::string& name) {
  return {{"as_tensor", named(name)}};
}

inline TestJson symbol() {
  return json_of(
      R"json({"as_expr": {"expr_str": "Symbol('s77', positive=True, integer=True)", "hint": {"as_int": 4}}})json");
}

// A size of -1 stands for the symbol s77, which was 4 in the example.
inline TestJson tensor_meta(int dtype, const std::vector<int64_t>& sizes, std::vector<int64_t> strides = {},
                            int64_t offset = 0) {
  if (strides.empty()) {
    strides.resize(sizes.size(), 1);
    for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<int64_t>(sizes[d], 1);
  }
  TestJson size_list = TestJson::array(), stride_list = TestJson::array();
  for (const int64_t size : sizes) size_list.push_back(size < 0 ? symbol() : TestJson{{"as_int", size}});
  for (const int64_t stride : strides) stride_list.push_back({{"as_int", stride}});
  return {{"dtype", dtype},
          {"sizes", size_list},
          {"requires_grad", dtype == 7},
          {"device", {{"type", "cpu"}, {"index", nullptr}}},
          {"strides", stride_list},
          {"storage_offset", {{"as_int", offset}}},
          {"layout", 7}};
}

inline TestJson payload(const std::string& path, bool parameter, TestJson meta) {
  return {{"path_name", path}, {"is_param", parameter}, {"use_pickle", false}, {"tensor_meta", std::move(meta)}};
}

template <typename T>
std::string packed(std::initializer_list<T> numbers) {
  std::string bytes(numbers.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), std::data(numbers), bytes.size());
  return bytes;
}

// The program of forward(self, batch, k, flag). The weight w and its transpose t share weight_0. v is the lower right
// 2x2 part of the 3x3 weight_2.
struct Sample {
  TestJson model, weights, constants;
  Zip zip;
  std::string root = "net";

  Sample();
  TestJson& graph() { return model["graph_module"]["graph"]; }
  TestJson& node(size_t i) { return graph()["nodes"][i]; }
  TestJson& signature() { return model["graph_module"]["signature"]; }
  TestJson& call() { return model["graph_module"]["module_call_graph"][0]["signature"]; }

  std::string bytes() const {
    Zip all = zip;
    all[root + "/data/weights/model_weights_config.json"] = weights.dump();
    all[root + "/data/constants/model_constants_config.json"] = constants.dump();
    all[root + "/models/model.json"] = model.dump();
    return all.bytes();
  }
  Program read() const {
    MemoryDisk disk;
    disk.put("net.pt2", bytes());
    return read_program(disk, "net.pt2");
  }
};

inline TestJson sample_graph() {
  TestJson graph = json_of(R"json({
    "inputs": [], "is_single_tensor_return": false, "custom_obj_values": {}, "sym_float_values": {},
    "outputs": [{"as_tensor": {"name": "add"}}, {"as_tensor": {"name": "getitem"}}, {"as_none": true},
     {"as_tensor": {"name": "cond"}}],
    "sym_int_values": {"k": {"as_expr": {"expr_str": "Symbol('s1', integer=True)", "hint": {"as_int": 3}}}},
    "sym_bool_values": {"ge": {"as_expr": {"expr_str": "Ge(Symbol('s1'), 1)"}}}})json");
  graph["sym_int_values"]["size"] = symbol();
  for (const char* name : {"p_w", "p_t", "p_v", "b_n", "b_u", "c_c", "x", "y"}) graph["inputs"].push_back(tensor(name));
  graph["inputs"].push_back(json_of(R"json({"as_sym_int": {"as_name": "k"}})json"));
  graph["inputs"].push_back(json_of(R"json({"as_none": true})json"));
  graph["tensor_values"] = {{"p_w", tensor_meta(7, {2, 3})},         {"p_t", tensor_meta(7, {3, 2}, {1, 3})},
                            {"p_v", tensor_meta(7, {2, 2}, {3, 1})}, {"b_n", tensor_meta(5, {})},
                            {"b_u", tensor_meta(7, {4}, {0})},       {"c_c", tensor_meta(12, {2})},
                            {"x", tensor_meta(7, {-1, 3})},          {"y", tensor_meta(7, {-1, 3})},
                            {"linear", tensor_meta(7, {-1, 2})},     {"add", tensor_meta(5, {})},
                            {"getitem", tensor_meta(7, {-1, 1})},    {"getitem_1", tensor_meta(7, {-1, 1})},
                            {"cond", tensor_meta(7, {-1, 3})}};
  graph["nodes"] = json_of(R"json([
    {"target": "torch.ops.aten.sym_size.int", "name": "size", "is_hop_single_tensor_return": null, "metadata": {},
     "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "x"}}, "kind": 1}, {"name": "dim", "arg": {"as_int": 0}, "kind": 1}],
     "outputs": [{"as_sym_int": {"as_name": "size"}}]},
    {"target": "torch.ops.aten.linear.default", "name": "linear", "metadata": {
      "stack_trace": "  File \"/home/me/model.py\", line 17, in forward\n    x\n  File \"/a/site-packages/torch/nn/modules/linear.py\", line 134, in forward\n    y",
      "nn_module_stack": "L__self__,,__main__.Net;L__self__fc,enc.fc,torch.nn.modules.linear.Linear"},
     "inputs": [{"name": "input", "arg": {"as_tensor": {"name": "x"}}, "kind": 1}, {"name": "weight", "arg": {"as_tensor": {"name": "p_w"}}, "kind": 1}],
     "outputs": [{"as_tensor": {"name": "linear"}}]},
    {"target": "torch.ops.aten.split.Tensor", "metadata": {},
     "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "linear"}}, "kind": 1}, {"name": "split_size", "arg": {"as_ints": [1]}, "kind": 1},
      {"name": "shape", "arg": {"as_sym_ints": [{"as_name": "size"}, {"as_int": -1}]}, "kind": 2}],
     "outputs": [{"as_tensors": [{"name": "getitem"}, {"name": "getitem_1"}]}]},
    {"target": "torch.ops.aten.add.Tensor", "name": "add", "metadata": {},
     "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "b_n"}}, "kind": 1}, {"name": "alpha", "arg": {"as_float": "-Infinity"}, "kind": 2}],
     "outputs": [{"as_tensor": {"name": "add"}}]},
    {"target": "_operator.ge", "name": "ge", "metadata": {},
     "inputs": [{"name": "a", "arg": {"as_sym_int": {"as_name": "k"}}, "kind": 1}, {"name": "b", "arg": {"as_int": 1}, "kind": 1}],
     "outputs": [{"as_sym_bool": {"as_name": "ge"}}]}])json");
  TestJson body = json_of(
      R"json({"inputs": [{"as_tensor": {"name": "x"}}, {"as_int": 3}], "outputs": [{"as_tensor": {"name": "sin"}}],
    "nodes": [{"target": "torch.ops.aten.sin.default", "name": "sin", "metadata": {}, "outputs": [{"as_tensor": {"name": "sin"}}],
      "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "x"}}, "kind": 1}]}],
    "sym_int_values": {}, "sym_bool_values": {}, "is_single_tensor_return": true})json");
  body["tensor_values"] = {{"x", tensor_meta(7, {-1, 3})}, {"sin", tensor_meta(7, {-1, 3})}};
  TestJson cond = json_of(
      R"json({"target": "torch.ops.higher_order.cond", "name": "cond", "metadata": {}, "is_hop_single_tensor_return": false,
    "inputs": [{"name": "", "arg": {"as_sym_bool": {"as_name": "ge"}}, "kind": 1}, {"name": "", "arg": {"as_graph": {"name": "body"}}, "kind": 1},
     {"name": "", "arg": {"as_tensors": [{"name": "x"}, {"name": "k"}]}, "kind": 1}],
    "outputs": [{"as_tensor": {"name": "cond"}}]})json");
  cond["inputs"][1]["arg"]["as_graph"]["graph"] = body;
  graph["nodes"].push_back(cond);
  return graph;
}

inline Sample::Sample() {
  model = json_of(
      R"json({"graph_module": {"metadata": {}, "treespec_namedtuple_fields": {"Pair": {"field_names": ["left", "right"]}},
    "module_call_graph": [{"fqn": "", "signature": {"inputs": [], "outputs": [], "forward_arg_names": ["batch", "k", "flag"]}}, {"fqn": "fc", "signature": null}],
    "signature": {"input_specs": [
     {"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}}, {"parameter": {"arg": {"name": "p_t"}, "parameter_name": "t"}},
     {"parameter": {"arg": {"name": "p_v"}, "parameter_name": "v"}},
     {"buffer": {"arg": {"name": "b_n"}, "buffer_name": "n", "persistent": true}},
     {"buffer": {"arg": {"name": "b_u"}, "buffer_name": "u", "persistent": false}},
     {"tensor_constant": {"arg": {"name": "c_c"}, "tensor_constant_name": "c"}},
     {"user_input": {"arg": {"as_tensor": {"name": "x"}}}}, {"user_input": {"arg": {"as_tensor": {"name": "y"}}}},
     {"user_input": {"arg": {"as_sym_int": {"as_name": "k"}}}}, {"constant_input": {"name": "flag", "value": {"as_none": true}}}],
    "output_specs": [{"buffer_mutation": {"arg": {"name": "add"}, "buffer_name": "n"}},
     {"user_output": {"arg": {"as_tensor": {"name": "getitem"}}}}, {"user_output": {"arg": {"as_none": true}}},
     {"loss_output": {"arg": {"name": "cond"}}}]}},
    "opset_version": {"aten": 10}, "range_constraints": {"s77": {"min_val": 1, "max_val": null}},
    "schema_version": {"major": 8, "minor": 20}, "verifiers": ["TRAINING"], "torch_version": "2.13.0", "guards_code": []})json");
  graph() = sample_graph();
  call()["in_spec"] =
      R"json([1, {"type": "builtins.tuple", "context": "null", "children_spec": [
      {"type": "builtins.tuple", "context": "null", "children_spec": [
        {"type": "builtins.dict", "context": "[\"ids\", \"more\"]", "children_spec": [
          {"type": null, "context": null, "children_spec": []},
          {"type": "builtins.list", "context": "null", "children_spec": [{"type": null, "context": null, "children_spec": []}]}]},
        {"type": null, "context": null, "children_spec": []}]},
      {"type": "builtins.dict", "context": "[\"flag\"]", "children_spec": [{"type": null, "context": null, "children_spec": []}]}]}])json";
  call()["out_spec"] =
      R"json([1, {"type": "collections.namedtuple", "context": "Pair", "children_spec": [
      {"type": "Out", "context": "[[\"logits\", \"extra\"], [\"loss\"]]", "children_spec": [
        {"type": null, "context": null, "children_spec": []}, {"type": null, "context": null, "children_spec": []}]},
      {"type": null, "context": null, "children_spec": []}]}])json";
  weights["config"] = {{"w", payload("weight_0", true, tensor_meta(7, {2, 3}))},
                       {"t", payload("weight_0", true, tensor_meta(7, {3, 2}, {1, 3}))},
                       {"v", payload("weight_2", true, tensor_meta(7, {2, 2}, {3, 1}, 4))},
                       {"n", payload("weight_1", false, tensor_meta(5, {}))}};
  constants["config"] = {{"u", payload("tensor_0", false, tensor_meta(7, {4}, {0}))},
                         {"c", payload("tensor_1", false, tensor_meta(12, {2}))}};
  zip.add("net/data/weights/weight_0", packed<float>({1, 2, 3, 4, 5, 6}));
  zip.add("net/data/weights/weight_1", packed<int64_t>({7}));
  zip.add("net/data/weights/weight_2", packed<float>({0, 1, 2, 3, 4, 5, 6, 7, 8}));
  zip.add("net/data/constants/tensor_0", packed<float>({2.5}));
  zip.add("net/data/constants/tensor_1", packed<bool>({true, false}));
  zip.add("net/archive_format", "pt2");
  zip.add("net/archive_version", "0");
  zip.add("net/byteorder", "little");
}

}  // namespace sinew::program
