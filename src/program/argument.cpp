// Arguments: the schema's union of everything an operator can be given.
#include "program/archive.h"
#include "program/graph.h"

namespace sinew::program {
namespace {

template <typename Read>
Argument list_of(ListOf of, const Spot& spot, Read read) {
  List list{of, {}};
  list.items.reserve(spot.array().size());
  for (const Json& item : spot.array()) list.items.push_back(read(spot.of(item)));
  return {std::move(list)};
}

Argument integer(const Spot& spot) {
  return {spot.integer()};
}
Argument number(const Spot& spot) {
  return {spot.number()};
}
Argument boolean(const Spot& spot) {
  return {spot.boolean()};
}
Argument text(const Spot& spot) {
  return {spot.text()};
}

// Plain values: those that name nothing in the graph.
std::optional<Argument> plain_argument(std::string_view kind, const Spot& spot) {
  if (kind == "as_none") {
    spot.boolean();
    return Argument{None{}};
  }
  if (kind == "as_int") return integer(spot);
  if (kind == "as_float") return number(spot);
  if (kind == "as_bool") return boolean(spot);
  if (kind == "as_string") return text(spot);
  if (kind == "as_ints") return list_of(ListOf::ints, spot, integer);
  if (kind == "as_floats") return list_of(ListOf::floats, spot, number);
  if (kind == "as_bools") return list_of(ListOf::bools, spot, boolean);
  if (kind == "as_strings") return list_of(ListOf::strings, spot, text);
  if (kind == "as_int_lists")
    return list_of(ListOf::lists, spot, [](const Spot& list) { return list_of(ListOf::ints, list, integer); });
  if (kind == "as_float_lists")
    return list_of(ListOf::lists, spot, [](const Spot& list) { return list_of(ListOf::floats, list, number); });
  if (kind == "as_scalar_type") return Argument{read_scalar_type(spot)};
  if (kind == "as_memory_format") return Argument{read_memory_format(spot)};
  if (kind == "as_layout") return Argument{read_layout(spot)};
  if (kind == "as_device") return Argument{read_device(spot)};
  if (kind == "as_operator") return Argument{OperatorName{spot.text()}};
  if (kind == "as_complex") {
    spot.allow({"real", "imag"});
    return Argument{Complex{spot.get("real").number(), spot.get("imag").number()}};
  }
  return std::nullopt;
}

}  // namespace

Argument GraphReader::argument(const Spot& spot) {
  const auto [kind, value] = spot.only();
  if (auto found = tensor_argument(kind, value)) return *std::move(found);
  if (auto found = symbolic_argument(kind, value)) return *std::move(found);
  if (auto found = plain_argument(kind, value)) return *std::move(found);
  if (kind == "as_graph") return subgraph(value);
  if (kind == "as_string_to_argument") {
    Dictionary dictionary;
    for (const JsonMember& member : value.object())
      dictionary.items.push_back({member.name, argument(value.of(member.value))});
    return {std::move(dictionary)};
  }
  if (kind == "as_custom_obj") {
    spot.refuse("is an object of a custom class",
                "only tensors and numbers can be run; keep script objects out of the exported model");
  }
  spot.refuse("is " + shown(kind) + ", a kind of argument that schema 8 does not have");
}

std::optional<Argument> GraphReader::tensor_argument(std::string_view kind, const Spot& spot) {
  // A list of "tensors" may hold symbolic integers: torch writes whatever a branch or a loop is given as one.
  const auto any = [this](const Spot& item) { return tensor(item, Kinds::any); };
  if (kind == "as_tensor") return tensor(spot, Kinds::tensor);
  if (kind == "as_tensors") return list_of(ListOf::tensors, spot, any);
  if (kind == "as_optional_tensor") return optional_tensor(spot);
  if (kind == "as_optional_tensors")
    return list_of(ListOf::optional_tensors, spot, [this](const Spot& item) { return optional_tensor(item); });
  if (kind == "as_nested_tensors")
    return list_of(ListOf::lists, spot, [&](const Spot& list) { return list_of(ListOf::tensors, list, any); });
  return std::nullopt;
}

std::optional<Argument> GraphReader::symbolic_argument(std::string_view kind, const Spot& spot) {
  const auto of = [this](ValueKind made) { return [this, made](const Spot& item) { return symbolic(item, made); }; };
  if (kind == "as_sym_int") return symbolic(spot, ValueKind::sym_int);
  if (kind == "as_sym_float") return symbolic(spot, ValueKind::sym_float);
  if (kind == "as_sym_bool") return symbolic(spot, ValueKind::sym_bool);
  if (kind == "as_sym_ints") return list_of(ListOf::ints, spot, of(ValueKind::sym_int));
  if (kind == "as_sym_floats") return list_of(ListOf::floats, spot, of(ValueKind::sym_float));
  if (kind == "as_sym_bools") return list_of(ListOf::bools, spot, of(ValueKind::sym_bool));
  return std::nullopt;
}

Argument GraphReader::tensor(const Spot& spot, Kinds kinds) const {
  spot.allow({"name"});
  const Spot name = spot.get("name");
  return kinds == Kinds::any ? reference(name, std::nullopt) : reference(name, ValueKind::tensor);
}

Argument GraphReader::optional_tensor(const Spot& spot) const {
  const auto [kind, value] = spot.only();
  if (kind == "as_tensor") return tensor(value, Kinds::tensor);
  if (kind != "as_none") spot.refuse("is neither as_tensor nor as_none, but " + shown(kind));
  value.boolean();
  return {None{}};
}

Argument GraphReader::symbolic(const Spot& spot, ValueKind kind) const {
  const auto [member, value] = spot.only();
  if (member == "as_name") return reference(value, kind);
  if (kind == ValueKind::sym_int && member == "as_int") return {value.integer()};
  if (kind == ValueKind::sym_float && member == "as_float") return {value.number()};
  if (kind == ValueKind::sym_bool && member == "as_bool") return {value.boolean()};
  spot.refuse("is " + shown(member) + ", which has no place here");
}

}  // namespace sinew::program
