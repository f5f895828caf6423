#include "program/graph.h"

#include <limits>

#include "program/archive.h"

namespace sinew::program {
namespace {

using Table = std::unordered_map<std::string_view, Spot>;

Table table_of(const Spot& spot) {
  Table table;
  for (const JsonMember& member : spot.object()) table.emplace(member.name, spot.of(member.value));
  return table;
}

std::string_view word_of(ValueKind kind) {
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

// What a table says of a symbolic value: a number or an expression, of the table's own kind.
void check_symbolic(const Spot& spot, ValueKind kind, Symbols& symbols) {
  if (kind == ValueKind::sym_int) {
    read_sym_int(spot, std::numeric_limits<int64_t>::min(), symbols);
    return;
  }
  const auto [member, value] = spot.only();
  if (member == "as_expr") {
    value.allow({"expr_str", "hint"});
    value.get("expr_str").text();
    if (const auto hint = value.find("hint")) hint->only();
  } else if (kind == ValueKind::sym_float && member == "as_float") {
    value.number();
  } else if (kind == ValueKind::sym_bool && member == "as_bool") {
    value.boolean();
  } else {
    spot.refuse("is " + shown(member) + ", which is not " + std::string(word_of(kind)));
  }
}

}  // namespace

Graph GraphReader::read(const Spot& spot) {
  if (depth_ > kDeepestGraph) {
    spot.refuse("is a graph inside a graph, " + std::to_string(depth_) + " deep; " + std::to_string(kDeepestGraph) +
                " are read");
  }
  spot.allow({"inputs", "outputs", "nodes", "tensor_values", "sym_int_values", "sym_bool_values",
              "is_single_tensor_return", "custom_obj_values", "sym_float_values"});
  read_tables(spot);
  const Spot inputs = spot.get("inputs"), nodes = spot.get("nodes"), outputs = spot.get("outputs");
  for (const Json& input : inputs.array()) define_input(inputs.of(input));
  for (const Json& node : nodes.array()) graph_.nodes.push_back(read_node(nodes.of(node)));
  for (const Json& output : outputs.array()) graph_.outputs.push_back(argument(outputs.of(output)));
  if (const auto single = spot.find("is_single_tensor_return")) graph_.single_output = single->boolean();
  if (graph_.single_output && graph_.outputs.size() != 1)
    outputs.refuse("has " + std::to_string(graph_.outputs.size()) + " values, but the graph returns a single one");
  return std::move(graph_);
}

void GraphReader::read_tables(const Spot& spot) {
  tensors_ = table_of(spot.get("tensor_values"));
  sym_ints_ = table_of(spot.get("sym_int_values"));
  sym_bools_ = table_of(spot.get("sym_bool_values"));
  if (const auto floats = spot.find("sym_float_values")) sym_floats_ = table_of(*floats);
  if (const auto objects = spot.find("custom_obj_values"); objects && !objects->object().empty()) {
    objects->refuse("holds " + shown(objects->object().front().name) + ", an object of a custom class",
                    "only tensors and numbers can be run; keep script objects out of the exported model");
  }
}

void GraphReader::define_input(const Spot& spot) {
  const auto [kind, value] = spot.only();
  if (kind == "as_tensor") {
    value.allow({"name"});
    graph_.inputs.push_back(std::get<ValueRef>(define(value.get("name"), ValueKind::tensor).value).id);
  } else if (kind == "as_sym_int" && value.only().first == "as_name") {
    graph_.inputs.push_back(std::get<ValueRef>(define(value.get("as_name"), ValueKind::sym_int).value).id);
  } else if (const Argument constant = argument(spot);
             std::holds_alternative<ValueRef>(constant.value) || std::holds_alternative<List>(constant.value)) {
    spot.refuse("is " + shown(kind) + ", which can not be an input");
  } else if (depth_ > 0) {
    graph_.inputs.push_back(-1);
  }
}

Node GraphReader::read_node(const Spot& spot) {
  spot.allow({"target", "inputs", "outputs", "metadata", "is_hop_single_tensor_return", "name"});
  Node node;
  node.target = spot.get("target").text();
  const Spot inputs = spot.get("inputs"), outputs = spot.get("outputs"), metadata = spot.get("metadata");
  for (const Json& json : inputs.array()) {
    const Spot input = inputs.of(json);
    input.allow({"name", "arg", "kind"});
    if (const auto kind = input.find("kind")) kind->integer(0, 2);
    node.inputs.push_back({input.get("name").text(), argument(input.get("arg"))});
  }
  for (const Json& json : outputs.array()) node.outputs.push_back(define_output(outputs.of(json)));
  for (const JsonMember& member : metadata.object()) {
    const std::string& text = metadata.of(member.value).text();
    if (member.name == "stack_trace") node.where = innermost_line(text);
    if (member.name == "nn_module_stack") node.module = innermost_module(text);
  }
  if (const auto name = spot.find("name")) {
    node.name = name->text();
  } else if (!node.outputs.empty()) {
    const Argument* first = node.outputs.data();
    if (const auto* list = std::get_if<List>(&first->value); list != nullptr && !list->items.empty())
      first = list->items.data();
    if (const auto* made = std::get_if<ValueRef>(&first->value))
      node.name = graph_.values[static_cast<size_t>(made->id)].name;
  }
  const auto single = spot.find("is_hop_single_tensor_return");
  const bool said_single = single && single->boolean();
  node.returns_list_of_one = !said_single && node.outputs.size() == 1 &&
                             node.target.starts_with("torch.ops.higher_order.") &&
                             !std::holds_alternative<None>(node.outputs[0].value);
  return node;
}

Argument GraphReader::define_output(const Spot& spot) {
  const auto [kind, value] = spot.only();
  if (kind == "as_none") return {None{}};
  if (kind == "as_tensor") {
    value.allow({"name"});
    return define(value.get("name"), ValueKind::tensor);
  }
  if (kind == "as_tensors") {
    List list{ListOf::tensors, {}};
    for (const Json& item : value.array()) {
      const Spot tensor = value.of(item);
      tensor.allow({"name"});
      list.items.push_back(define(tensor.get("name"), ValueKind::tensor));
    }
    return {std::move(list)};
  }
  if (kind == "as_sym_int") return define_symbolic(value, ValueKind::sym_int);
  if (kind == "as_sym_float") return define_symbolic(value, ValueKind::sym_float);
  if (kind == "as_sym_bool") return define_symbolic(value, ValueKind::sym_bool);
  spot.refuse("is " + shown(kind) + ", which no node can make");
}

Argument GraphReader::define_symbolic(const Spot& spot, ValueKind kind) {
  const auto [member, name] = spot.only();
  if (member != "as_name") spot.refuse("is " + shown(member) + ", but what a node makes has a name");
  return define(name, kind);
}

Argument GraphReader::define(const Spot& spot, ValueKind kind) {
  const std::string& name = spot.text();
  if (name.empty()) spot.refuse("is a value without a name");
  const auto id = static_cast<ValueId>(graph_.values.size());
  if (!names_.emplace(name, Known{id, kind}).second) spot.refuse("makes " + shown(name) + " a second time");
  Value value{name, kind, {}};
  const Table& table = kind == ValueKind::tensor      ? tensors_
                       : kind == ValueKind::sym_int   ? sym_ints_
                       : kind == ValueKind::sym_float ? sym_floats_
                                                      : sym_bools_;
  const auto entry = table.find(name);
  if (entry == table.end())
    spot.refuse("makes " + shown(name) + ", " + std::string(word_of(kind)) + " that the graph's table does not have");
  if (kind == ValueKind::tensor)
    value.meta = read_tensor_meta(entry->second, symbols_).meta;
  else
    check_symbolic(entry->second, kind, symbols_);
  graph_.values.push_back(std::move(value));
  return {ValueRef{id}};
}

ValueId GraphReader::value_of(const Spot& spot) const {
  return std::get<ValueRef>(reference(spot, std::nullopt).value).id;
}

Argument GraphReader::reference(const Spot& spot, std::optional<ValueKind> kind) const {
  const auto found = names_.find(spot.text());
  if (found == names_.end()) spot.refuse("names " + shown(spot.text()) + ", which nothing before it makes");
  if (kind && found->second.kind != *kind) {
    spot.refuse("should be " + std::string(word_of(*kind)) + ", but " + shown(spot.text()) + " is " +
                std::string(word_of(found->second.kind)));
  }
  return {ValueRef{found->second.id}};
}

Argument GraphReader::subgraph(const Spot& spot) {
  spot.allow({"name", "graph"});
  spot.get("name").text();
  return {std::make_shared<const Graph>(GraphReader(symbols_, depth_ + 1).read(spot.get("graph")))};
}

}  // namespace sinew::program
