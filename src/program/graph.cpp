#include "program/graph.h"

#include <limits>

#include "program/archive.h"

namespace sinew::program {
namespace {

using Table = std::unordered_map<std::string_view, JsonView>;

Table table_of(const JsonView& view) {
  Table table;
  for (const JsonMember& member : view.object()) table.emplace(member.name, view.of(member.value));
  return table;
}

std::string_view description_of(ValueKind kind) {
  switch (kind) {
    case ValueKind::tensor: return "a tensor";
    case ValueKind::tensors: return "a list of tensors";
    case ValueKind::sym_int: return "a symbolic integer";
    case ValueKind::sym_float: return "a symbolic float";
    case ValueKind::sym_bool: return "a symbolic boolean";
    case ValueKind::token: return "a token";
  }
  return "";
}

// Checks the entry of a symbolic value: it must be a number or an expression of the table's kind.
void check_symbolic(const JsonView& view, ValueKind kind, Symbols& symbols) {
  if (kind == ValueKind::sym_int) {
    read_sym_int(view, std::numeric_limits<int64_t>::min(), symbols);
    return;
  }
  const auto [member, value] = view.single_member();
  if (member == "as_expr") {
    value.allow({"expr_str", "hint"});
    value.get("expr_str").text();
    if (const auto hint = value.find("hint")) hint->single_member();
  } else if (kind == ValueKind::sym_float && member == "as_float") {
    value.number();
  } else if (kind == ValueKind::sym_bool && member == "as_bool") {
    value.boolean();
  } else {
    view.refuse("PROGRAM_BAD_SCHEMA",
                "is " + in_quotes(member) + ", which is not " + std::string(description_of(kind)));
  }
}

}  // namespace

Graph GraphReader::read(const JsonView& view) {
  if (depth_ > kMaxGraphDepth) {
    view.refuse("PROGRAM_TOO_LARGE", "is a graph nested " + std::to_string(depth_) +
                                         " levels deep; Sinew reads up to " + std::to_string(kMaxGraphDepth));
  }
  view.allow({"inputs", "outputs", "nodes", "tensor_values", "sym_int_values", "sym_bool_values",
              "is_single_tensor_return", "custom_obj_values", "sym_float_values"});
  read_tables(view);
  const JsonView inputs = view.get("inputs"), nodes = view.get("nodes"), outputs = view.get("outputs");
  for (const Json& input : inputs.array()) define_input(inputs.of(input));
  for (const Json& node : nodes.array()) graph_.nodes.push_back(read_node(nodes.of(node)));
  for (const Json& output : outputs.array()) graph_.outputs.push_back(argument(outputs.of(output)));
  if (const auto single = view.find("is_single_tensor_return")) graph_.single_output = single->boolean();
  if (graph_.single_output && graph_.outputs.size() != 1)
    outputs.refuse("PROGRAM_BAD_GRAPH",
                   "has " + std::to_string(graph_.outputs.size()) + " values, but the graph returns a single one");
  return std::move(graph_);
}

void GraphReader::read_tables(const JsonView& view) {
  tensors_ = table_of(view.get("tensor_values"));
  sym_ints_ = table_of(view.get("sym_int_values"));
  sym_bools_ = table_of(view.get("sym_bool_values"));
  if (const auto floats = view.find("sym_float_values")) sym_floats_ = table_of(*floats);
  if (const auto objects = view.find("custom_obj_values"); objects && !objects->object().empty()) {
    objects->refuse("PROGRAM_UNSUPPORTED",
                    "holds " + in_quotes(objects->object().front().name) + ", an object of a custom class",
                    kCustomClassHint);
  }
}

void GraphReader::define_input(const JsonView& view) {
  const auto [kind, value] = view.single_member();
  if (kind == "as_tensor") {
    value.allow({"name"});
    graph_.inputs.push_back(std::get<ValueRef>(define(value.get("name"), ValueKind::tensor).value).id);
  } else if (kind == "as_sym_int" && value.single_member().first == "as_name") {
    graph_.inputs.push_back(std::get<ValueRef>(define(value.get("as_name"), ValueKind::sym_int).value).id);
  } else if (const Argument constant = argument(view);
             std::holds_alternative<ValueRef>(constant.value) || std::holds_alternative<List>(constant.value)) {
    view.refuse("PROGRAM_BAD_GRAPH", "is " + in_quotes(kind) + ", which cannot be an input");
  } else if (depth_ > 0) {
    graph_.inputs.push_back(-1);
  }
}

Node GraphReader::read_node(const JsonView& view) {
  view.allow({"target", "inputs", "outputs", "metadata", "is_hop_single_tensor_return", "name"});
  Node node;
  node.target = view.get("target").text();
  const JsonView inputs = view.get("inputs"), outputs = view.get("outputs"), metadata = view.get("metadata");
  for (const Json& json : inputs.array()) {
    const JsonView input = inputs.of(json);
    input.allow({"name", "arg", "kind"});
    if (const auto kind = input.find("kind")) kind->integer(0, 2);
    NamedArgument& named = node.inputs.emplace_back();
    named.name = input.get("name").text();
    named.value = argument(input.get("arg"));
  }
  for (const Json& json : outputs.array()) node.outputs.push_back(define_output(outputs.of(json)));
  for (const JsonMember& member : metadata.object()) {
    const std::string& text = metadata.of(member.value).text();
    if (member.name == "stack_trace") node.where = innermost_line(text);
    if (member.name == "nn_module_stack") node.module = innermost_module(text);
  }
  if (const auto name = view.find("name")) {
    node.name = name->text();
  } else if (!node.outputs.empty()) {
    const Argument* first = node.outputs.data();
    if (const auto* list = std::get_if<List>(&first->value); list != nullptr && !list->items.empty())
      first = list->items.data();
    if (const auto* made = std::get_if<ValueRef>(&first->value))
      node.name = graph_.values[static_cast<size_t>(made->id)].name;
  }
  const auto single = view.find("is_hop_single_tensor_return");
  const bool said_single = single && single->boolean();
  node.returns_list_of_one = !said_single && node.outputs.size() == 1 &&
                             node.target.starts_with("torch.ops.higher_order.") &&
                             !std::holds_alternative<None>(node.outputs[0].value);
  return node;
}

Argument GraphReader::define_output(const JsonView& view) {
  const auto [kind, value] = view.single_member();
  if (kind == "as_none") return {None{}};
  if (kind == "as_tensor") {
    value.allow({"name"});
    return define(value.get("name"), ValueKind::tensor);
  }
  if (kind == "as_tensors") {
    List list{ListOf::tensors, {}};
    for (const Json& item : value.array()) {
      const JsonView tensor = value.of(item);
      tensor.allow({"name"});
      list.items.push_back(define(tensor.get("name"), ValueKind::tensor));
    }
    return {std::move(list)};
  }
  if (kind == "as_sym_int") return define_symbolic(value, ValueKind::sym_int);
  if (kind == "as_sym_float") return define_symbolic(value, ValueKind::sym_float);
  if (kind == "as_sym_bool") return define_symbolic(value, ValueKind::sym_bool);
  view.refuse("PROGRAM_BAD_SCHEMA", "is " + in_quotes(kind) + ", which cannot be an output of a node");
}

Argument GraphReader::define_symbolic(const JsonView& view, ValueKind kind) {
  const auto [member, name] = view.single_member();
  if (member != "as_name") {
    view.refuse("PROGRAM_BAD_SCHEMA", "is " + in_quotes(member) + ", but the output of a node must have a name");
  }
  return define(name, kind);
}

Argument GraphReader::define(const JsonView& view, ValueKind kind) {
  const std::string& name = view.text();
  if (name.empty()) view.refuse("PROGRAM_BAD_GRAPH", "is a value without a name");
  const auto id = static_cast<ValueId>(graph_.values.size());
  if (!names_.emplace(name, Known{id, kind}).second) {
    view.refuse("PROGRAM_BAD_GRAPH", "defines " + in_quotes(name) + " a second time");
  }
  Value value{name, kind, {}};
  const Table& table = kind == ValueKind::tensor      ? tensors_
                       : kind == ValueKind::sym_int   ? sym_ints_
                       : kind == ValueKind::sym_float ? sym_floats_
                                                      : sym_bools_;
  const auto entry = table.find(name);
  if (entry == table.end())
    view.refuse("PROGRAM_BAD_GRAPH", "defines " + in_quotes(name) + ", " + std::string(description_of(kind)) +
                                         " that is not in the graph's table");
  if (kind == ValueKind::tensor)
    value.meta = read_tensor_meta(entry->second, symbols_).meta;
  else
    check_symbolic(entry->second, kind, symbols_);
  graph_.values.push_back(std::move(value));
  return {ValueRef{id}};
}

ValueId GraphReader::value_of(const JsonView& view) const {
  return std::get<ValueRef>(reference(view, std::nullopt).value).id;
}

Argument GraphReader::reference(const JsonView& view, std::optional<ValueKind> kind) const {
  const auto found = names_.find(view.text());
  if (found == names_.end()) {
    view.refuse("PROGRAM_BAD_GRAPH", "names " + in_quotes(view.text()) + ", which is not defined before it");
  }
  if (kind && found->second.kind != *kind) {
    view.refuse("PROGRAM_BAD_GRAPH", "should be " + std::string(description_of(*kind)) + ", but " +
                                         in_quotes(view.text()) + " is " +
                                         std::string(description_of(found->second.kind)));
  }
  return {ValueRef{found->second.id}};
}

Argument GraphReader::subgraph(const JsonView& view) {
  view.allow({"name", "graph"});
  view.get("name").text();
  return {std::make_shared<const Graph>(GraphReader(symbols_, depth_ + 1).read(view.get("graph")))};
}

}  // namespace sinew::program
