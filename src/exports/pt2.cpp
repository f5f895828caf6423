// Translates the graph of a TorchScript module into a program of torch.export, schema 8 (docs/formats/pt2.md).
//
// Both formats name the same operators. A program also says the shape of every value. So the graph runs on two batches
// of different sizes, and a size that differs between the two runs is a multiple of the batch.
#include "exports/pt2.h"

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/passes/lower_tuples.h>
#include <torch/version.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/json_text.h"

namespace sinew::exports {
namespace {

using Json = nlohmann::ordered_json;
using JitValue = torch::jit::Value;
using JitNode = torch::jit::Node;

constexpr const char* kBatchSymbol = "s0";
constexpr int64_t kSmallBatch = 2;

// The numbers of torch._export.serde.schema.ScalarType.
int64_t number_in_schema(torch::ScalarType type) {
  static const std::map<torch::ScalarType, int64_t> numbers = {
      {torch::kUInt8, 1},   {torch::kInt8, 2},    {torch::kInt16, 3},   {torch::kInt32, 4}, {torch::kInt64, 5},
      {torch::kFloat16, 6}, {torch::kFloat32, 7}, {torch::kFloat64, 8}, {torch::kBool, 12}, {torch::kBFloat16, 13}};
  return numbers.at(type);
}

bool has_kind(const JitNode* node, const char* name) {
  return std::string_view(node->kind().toQualString()) == name;
}

// Returns the dotted name of an attribute of nested modules.
std::string attribute_name(const JitValue* value) {
  const JitNode* node = value->node();
  if (!has_kind(node, "prim::GetAttr")) return "";
  const std::string outer = attribute_name(node->input());
  return outer + (outer.empty() ? "" : ".") + node->s(c10::Symbol::attr("name"));
}

// Returns the tensor of this dotted name.
torch::Tensor attribute_of(const torch::jit::Module& module, const std::string& name) {
  const size_t dot = name.find('.');
  if (dot == std::string::npos) return module.attr(name).toTensor();
  return attribute_of(module.attr(name.substr(0, dot)).toModule(), name.substr(dot + 1));
}

// Returns whether a node that makes a list makes one of tensors. The module's other lists are of whole numbers.
bool makes_tensors(const JitNode* list) {
  return list->output()->type()->isSubtypeOf(*c10::ListType::ofTensors());
}

c10::IValue list_from(const torch::jit::Stack& items, bool tensors) {
  if (tensors) {
    c10::List<torch::Tensor> list;
    for (const c10::IValue& item : items) list.push_back(item.toTensor());
    return list;
  }
  c10::List<int64_t> list;
  for (const c10::IValue& item : items) list.push_back(item.toInt());
  return list;
}

using Run = std::map<const JitValue*, c10::IValue>;

// Runs the nodes of a graph without branches, and returns all its values.
Run values_of_run(const torch::jit::Graph& graph, const torch::jit::Module& module, const torch::Tensor& input) {
  const torch::NoGradGuard no_grad;
  Run values;
  values[graph.inputs().at(1)] = input;
  for (const JitNode* node : graph.nodes()) {
    if (has_kind(node, "prim::GetAttr")) {
      if (node->output()->type()->isSubtypeOf(*c10::TensorType::get()))
        values[node->output()] = attribute_of(module, attribute_name(node->output()));
      continue;
    }
    if (const auto constant = has_kind(node, "prim::Constant") ? torch::jit::toIValue(node->output()) : std::nullopt) {
      values[node->output()] = *constant;
      continue;
    }
    torch::jit::Stack stack;
    for (const JitValue* given : node->inputs()) stack.push_back(values.at(given));
    if (has_kind(node, "prim::ListConstruct")) {
      stack = {list_from(stack, makes_tensors(node))};
    } else {
      node->getOperation()(stack);
    }
    for (size_t i = 0; i < node->outputs().size(); ++i) values[node->output(i)] = stack.at(i);
  }
  return values;
}

Json named(const std::string& name) {
  return {{"name", name}};
}
Json tensor_named(const std::string& name) {
  return {{"as_tensor", named(name)}};
}

// How the user calls the program: one tensor in, one tensor out.
Json call_of_whole() {
  constexpr const char* kLeaf = R"({"type": null, "context": null, "children_spec": []})";
  const std::string arguments = std::string(R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": [)") +
                                R"({"type": "builtins.tuple", "context": "null", "children_spec": [)" + kLeaf + "]}, " +
                                R"({"type": "builtins.dict", "context": "[]", "children_spec": []}]}])";
  return {{"fqn", ""},
          {"signature",
           {{"inputs", Json::array()},
            {"outputs", Json::array()},
            {"in_spec", arguments},
            {"out_spec", std::string("[1, ") + kLeaf + "]"},
            {"forward_arg_names", Json::array({"x"})}}}};
}

// Returns the graph of forward without calls and tuples.
std::shared_ptr<torch::jit::Graph> flat_graph(const torch::jit::Module& module) {
  auto graph = module.get_method("forward").graph()->copy();
  torch::jit::Inline(*graph);
  torch::jit::LowerSimpleTuples(graph);
  torch::jit::EliminateDeadCode(graph);
  return graph;
}

// The values of a graph in two batches of different sizes.
class TwoRuns {
 public:
  TwoRuns(const torch::jit::Graph& graph, const torch::jit::Module& module, const torch::Tensor& example)
      : batch_(example.size(0)),
        large_(values_of_run(graph, module, example)),
        small_(values_of_run(graph, module, example.narrow(0, 0, kSmallBatch))) {
    SINEW_CHECK(batch_ > kSmallBatch, batch_);
  }

  const c10::IValue& constant(const JitValue* value) const { return large_.at(value); }
  Json integer(const JitValue* value) const { return size_text(large_.at(value).toInt(), small_.at(value).toInt()); }
  Json tensor(const JitValue* value) const {
    return description(large_.at(value).toTensor(), small_.at(value).toTensor(), /*parameter=*/false);
  }
  Json weight(const torch::Tensor& tensor, bool parameter) const { return description(tensor, tensor, parameter); }

 private:
  // A size, stride or offset, which has these two values in the two batches.
  Json size_text(int64_t large, int64_t small) const {
    if (large == small) return {{"as_int", large}};
    const int64_t each = large / batch_;
    SINEW_CHECK(each * batch_ == large && each * kSmallBatch == small, large, small);
    const std::string symbol = std::string("Symbol('") + kBatchSymbol + "', positive=True, integer=True)";
    const std::string text = each == 1 ? symbol : "Mul(Integer(" + std::to_string(each) + "), " + symbol + ")";
    return {{"as_expr", {{"expr_str", text}, {"hint", {{"as_int", large}}}}}};
  }

  // `large` and `small`: the same value in the two batches.
  Json description(const torch::Tensor& large, const torch::Tensor& small, bool parameter) const {
    Json sizes = Json::array(), strides = Json::array();
    for (int64_t d = 0; d < large.dim(); ++d) {
      sizes.push_back(size_text(large.size(d), small.size(d)));
      strides.push_back(size_text(large.stride(d), small.stride(d)));
    }
    return {{"dtype", number_in_schema(large.scalar_type())},
            {"sizes", sizes},
            {"requires_grad", parameter},
            {"device", {{"type", "cpu"}, {"index", nullptr}}},
            {"strides", strides},
            {"storage_offset", size_text(large.storage_offset(), small.storage_offset())},
            {"layout", 7}};
  }

  int64_t batch_;
  Run large_, small_;
};

class Translation {
 public:
  Translation(const torch::jit::Module& module, const torch::Tensor& example)
      : module_(module), graph_(flat_graph(module)), runs_(*graph_, module, example) {}

  Json document() {
    for (const auto& item : module_.named_parameters()) add_weight(item.name, item.value, /*parameter=*/true);
    for (const auto& item : module_.named_buffers()) add_weight(item.name, item.value, /*parameter=*/false);
    const JitValue* input = graph_->inputs().at(1);
    add_tensor(input, "x");
    inputs_.push_back(tensor_named("x"));
    input_specs_.push_back({{"user_input", {{"arg", tensor_named("x")}}}});
    for (const JitNode* node : graph_->nodes()) {
      if (node->kind().is_aten()) add_node(node);
    }
    const Json output = tensor_named(names_.at(graph_->outputs().at(0)));
    Json graph_outputs = Json::array();
    graph_outputs.push_back(output);
    const Json graph = {{"inputs", inputs_},
                        {"outputs", graph_outputs},
                        {"nodes", nodes_},
                        {"tensor_values", tensors_},
                        {"sym_int_values", integers_},
                        {"sym_bool_values", Json::object()},
                        {"is_single_tensor_return", false},
                        {"custom_obj_values", Json::object()},
                        {"sym_float_values", Json::object()}};
    Json outputs = Json::array();
    outputs.push_back({{"user_output", {{"arg", output}}}});
    Json calls = Json::array();
    calls.push_back(call_of_whole());
    const Json whole = {{"graph", graph},
                        {"signature", {{"input_specs", input_specs_}, {"output_specs", outputs}}},
                        {"module_call_graph", calls},
                        {"metadata", Json::object()},
                        {"treespec_namedtuple_fields", Json::object()}};
    return {{"graph_module", whole},
            {"opset_version", {{"aten", 10}}},
            {"range_constraints", {{kBatchSymbol, {{"min_val", 1}, {"max_val", nullptr}}}}},
            {"schema_version", {{"major", 8}, {"minor", 20}}},
            {"verifiers", Json::array({"TRAINING"})},
            {"torch_version", TORCH_VERSION},
            {"guards_code", Json::array()}};
  }

  // The weights of the document: the name of each member and its content, and the file that describes them.
  const std::vector<std::pair<std::string, torch::Tensor>>& stored() const { return stored_; }
  const Json& config() const { return config_; }

 private:
  void add_weight(const std::string& name, const torch::Tensor& tensor, bool parameter) {
    std::string in_graph = (parameter ? "p_" : "b_") + name;
    std::ranges::replace(in_graph, '.', '_');
    weight_names_[name] = in_graph;
    const Json meta = runs_.weight(tensor, parameter);
    tensors_[in_graph] = meta;
    inputs_.push_back(tensor_named(in_graph));
    if (parameter) {
      input_specs_.push_back({{"parameter", {{"arg", named(in_graph)}, {"parameter_name", name}}}});
    } else {
      input_specs_.push_back({{"buffer", {{"arg", named(in_graph)}, {"buffer_name", name}, {"persistent", true}}}});
    }
    const std::string file = "weight_" + std::to_string(stored_.size());
    config_[name] = {{"path_name", file}, {"is_param", parameter}, {"use_pickle", false}, {"tensor_meta", meta}};
    stored_.emplace_back(file, tensor);
  }

  void add_tensor(const JitValue* value, const std::string& name) {
    names_[value] = name;
    tensors_[name] = runs_.tensor(value);
  }

  std::string name_of_value(const JitValue* value) const {
    const std::string weight = attribute_name(value);
    return weight.empty() ? names_.at(value) : weight_names_.at(weight);
  }

  void add_node(const JitNode* node) {
    const c10::FunctionSchema& schema = node->schema();
    const bool size = schema.name() == "aten::size";
    const std::string op = size ? "sym_size" : schema.name().substr(6);  // without "aten::"
    const std::string name = op + "_" + std::to_string(nodes_.size());
    Json inputs = Json::array(), outputs = Json::array();
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      const c10::Argument& argument = schema.arguments().at(i);
      if (argument.kwarg_only()) continue;  // the module gives none of these
      inputs.push_back({{"name", argument.name()}, {"arg", given(node->input(i), argument)}, {"kind", 1}});
    }
    for (const JitValue* made : node->outputs()) {
      const std::string made_name = node->outputs().size() == 1 ? name : name + "_" + std::to_string(outputs.size());
      if (size) {
        names_[made] = made_name;
        integers_[made_name] = runs_.integer(made);
        outputs.push_back({{"as_sym_int", {{"as_name", made_name}}}});
      } else {
        add_tensor(made, made_name);
        outputs.push_back(tensor_named(made_name));
      }
    }
    const std::string& overload = schema.overload_name();
    nodes_.push_back({{"target", "torch.ops.aten." + op + "." + (overload.empty() ? "default" : overload)},
                      {"inputs", inputs},
                      {"outputs", outputs},
                      {"metadata", Json::object()},
                      {"is_hop_single_tensor_return", nullptr},
                      {"name", name}});
  }

  Json given(const JitValue* value, const c10::Argument& argument) const {
    if (has_kind(value->node(), "prim::ListConstruct")) return list_of(value->node());
    if (value->type()->isSubtypeOf(*c10::TensorType::get())) return tensor_named(name_of_value(value));
    const c10::IValue& constant = runs_.constant(value);
    if (constant.isNone()) return {{"as_none", true}};
    if (constant.isBool()) return {{"as_bool", constant.toBool()}};
    if (constant.isDouble()) return {{"as_float", constant.toDouble()}};
    if (constant.isString()) return {{"as_string", constant.toStringRef()}};
    if (constant.isIntList()) return {{"as_ints", constant.toIntVector()}};
    SINEW_CHECK(constant.isInt(), argument.name());
    if (argument.real_type()->kind() == c10::TypeKind::ScalarTypeType)
      return {{"as_scalar_type", number_in_schema(constant.toScalarType())}};
    return {{"as_int", constant.toInt()}};
  }

  Json list_of(const JitNode* list) const {
    Json items = Json::array();
    const bool tensors = makes_tensors(list);
    bool symbols = false;
    for (const JitValue* item : list->inputs()) {
      const auto name = names_.find(item);
      symbols = symbols || (!tensors && name != names_.end());
      items.push_back(tensors                ? named(name_of_value(item))
                      : name == names_.end() ? Json{{"as_int", runs_.constant(item).toInt()}}
                                             : Json{{"as_name", name->second}});
    }
    if (tensors) return {{"as_tensors", items}};
    if (symbols) return {{"as_sym_ints", items}};
    return {{"as_ints", runs_.constant(list->output()).toIntVector()}};
  }

  const torch::jit::Module& module_;
  std::shared_ptr<torch::jit::Graph> graph_;
  TwoRuns runs_;
  std::map<const JitValue*, std::string> names_;     // in the program, of the values that nodes make
  std::map<std::string, std::string> weight_names_;  // in the program
  std::vector<std::pair<std::string, torch::Tensor>> stored_;
  Json config_ = Json::object();  // of the weights
  Json inputs_ = Json::array(), input_specs_ = Json::array(), nodes_ = Json::array();
  Json tensors_ = Json::object(), integers_ = Json::object();
};

}  // namespace

std::string program_file(const torch::jit::Module& module, const torch::Tensor& example, const Texts& about) {
  Translation translation(module, example);
  const Json document = translation.document();
  std::string file;
  caffe2::serialize::PyTorchStreamWriter writer([&](const void* bytes, size_t size) {
    file.append(static_cast<const char*>(bytes), size);
    return size;
  });
  const auto write = [&](const std::string& name, std::string_view bytes) {
    writer.writeRecord(name, bytes.data(), bytes.size());
  };
  write("archive_format", "pt2");
  write("archive_version", "0");
  write("models/model.json", dump_json(document));
  for (const auto& [name, tensor] : translation.stored()) {
    const torch::Tensor dense = tensor.detach().contiguous();
    writer.writeRecord("data/weights/" + name, dense.const_data_ptr(), dense.nbytes());
  }
  write("data/weights/model_weights_config.json", dump_json({{"config", translation.config()}}));
  write("data/constants/model_constants_config.json", R"({"config": {}})");
  write("data/sample_inputs/model.pt", "");  // the program has no sample inputs
  for (const auto& [name, text] : about) write("extra/" + name, text);
  writer.writeEndOfFile();
  return file;
}

}  // namespace sinew::exports
