// Reads the arguments of operators, for which the schema has a union of many kinds.
#include "program/archive.h"
#include "program/graph.h"

namespace sinew::program {
namespace {

template <typename Read>
Argument list_of(ListOf of, const JsonView& view, Read read) {
  List list{of, {}};
  list.items.reserve(view.array().size());
  for (const Json& item : view.array()) list.items.push_back(read(view.of(item)));
  return {std::move(list)};
}

Argument integer(const JsonView& view) {
  return {view.integer()};
}
Argument number(const JsonView& view) {
  return {view.number()};
}
Argument boolean(const JsonView& view) {
  return {view.boolean()};
}
Argument text(const JsonView& view) {
  return {view.text()};
}

// Reads values that do not refer to the graph.
std::optional<Argument> plain_argument(std::string_view kind, const JsonView& view) {
  if (kind == "as_none") {
    view.boolean();
    return Argument{None{}};
  }
  if (kind == "as_int") return integer(view);
  if (kind == "as_float") return number(view);
  if (kind == "as_bool") return boolean(view);
  if (kind == "as_string") return text(view);
  if (kind == "as_ints") return list_of(ListOf::ints, view, integer);
  if (kind == "as_floats") return list_of(ListOf::floats, view, number);
  if (kind == "as_bools") return list_of(ListOf::bools, view, boolean);
  if (kind == "as_strings") return list_of(ListOf::strings, view, text);
  if (kind == "as_int_lists")
    return list_of(ListOf::lists, view, [](const JsonView& list) { return list_of(ListOf::ints, list, integer); });
  if (kind == "as_float_lists")
    return list_of(ListOf::lists, view, [](const JsonView& list) { return list_of(ListOf::floats, list, number); });
  if (kind == "as_scalar_type") return Argument{read_scalar_type(view)};
  if (kind == "as_memory_format") return Argument{read_memory_format(view)};
  if (kind == "as_layout") return Argument{read_layout(view)};
  if (kind == "as_device") return Argument{read_device(view)};
  if (kind == "as_operator") return Argument{OperatorName{view.text()}};
  if (kind == "as_complex") {
    view.allow({"real", "imag"});
    return Argument{Complex{view.get("real").number(), view.get("imag").number()}};
  }
  return std::nullopt;
}

}  // namespace

Argument GraphReader::argument(const JsonView& view) {
  const auto [kind, value] = view.single_member();
  if (auto found = tensor_argument(kind, value)) return *std::move(found);
  if (auto found = symbolic_argument(kind, value)) return *std::move(found);
  if (auto found = plain_argument(kind, value)) return *std::move(found);
  if (kind == "as_graph") return subgraph(value);
  if (kind == "as_string_to_argument") {
    Dictionary dictionary;
    for (const JsonMember& member : value.object()) {
      NamedArgument& named = dictionary.items.emplace_back();
      named.name = member.name;
      named.value = argument(value.of(member.value));
    }
    return {std::move(dictionary)};
  }
  if (kind == "as_custom_obj") {
    view.refuse("PROGRAM_UNSUPPORTED", "is an object of a custom class", kCustomClassHint);
  }
  view.refuse("PROGRAM_BAD_SCHEMA", "is " + in_quotes(kind) + ", a kind of argument that schema 8 does not have");
}

std::optional<Argument> GraphReader::tensor_argument(std::string_view kind, const JsonView& view) {
  // A list of "tensors" may hold symbolic integers, because torch writes the operands of a branch or a loop as such a
  // list.
  const auto any = [this](const JsonView& item) { return tensor(item, Kinds::any); };
  if (kind == "as_tensor") return tensor(view, Kinds::tensor);
  if (kind == "as_tensors") return list_of(ListOf::tensors, view, any);
  if (kind == "as_optional_tensor") return optional_tensor(view);
  if (kind == "as_optional_tensors")
    return list_of(ListOf::optional_tensors, view, [this](const JsonView& item) { return optional_tensor(item); });
  if (kind == "as_nested_tensors")
    return list_of(ListOf::lists, view, [&](const JsonView& list) { return list_of(ListOf::tensors, list, any); });
  return std::nullopt;
}

std::optional<Argument> GraphReader::symbolic_argument(std::string_view kind, const JsonView& view) {
  const auto of = [this](ValueKind made) {
    return [this, made](const JsonView& item) { return symbolic(item, made); };
  };
  if (kind == "as_sym_int") return symbolic(view, ValueKind::sym_int);
  if (kind == "as_sym_float") return symbolic(view, ValueKind::sym_float);
  if (kind == "as_sym_bool") return symbolic(view, ValueKind::sym_bool);
  if (kind == "as_sym_ints") return list_of(ListOf::ints, view, of(ValueKind::sym_int));
  if (kind == "as_sym_floats") return list_of(ListOf::floats, view, of(ValueKind::sym_float));
  if (kind == "as_sym_bools") return list_of(ListOf::bools, view, of(ValueKind::sym_bool));
  return std::nullopt;
}

Argument GraphReader::tensor(const JsonView& view, Kinds kinds) const {
  view.allow({"name"});
  const JsonView name = view.get("name");
  return kinds == Kinds::any ? reference(name, std::nullopt) : reference(name, ValueKind::tensor);
}

Argument GraphReader::optional_tensor(const JsonView& view) const {
  const auto [kind, value] = view.single_member();
  if (kind == "as_tensor") return tensor(value, Kinds::tensor);
  if (kind != "as_none") view.refuse("PROGRAM_BAD_SCHEMA", "should be as_tensor or as_none, but is " + in_quotes(kind));
  value.boolean();
  return {None{}};
}

Argument GraphReader::symbolic(const JsonView& view, ValueKind kind) const {
  const auto [member, value] = view.single_member();
  if (member == "as_name") return reference(value, kind);
  if (kind == ValueKind::sym_int && member == "as_int") return {value.integer()};
  if (kind == ValueKind::sym_float && member == "as_float") return {value.number()};
  if (kind == ValueKind::sym_bool && member == "as_bool") return {value.boolean()};
  view.refuse("PROGRAM_BAD_SCHEMA", "is " + in_quotes(member) + ", which is not allowed here");
}

}  // namespace sinew::program
