#include "model/program_plan.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/error.h"
#include "model/model.h"

namespace sinew::model {
namespace {

using program::Argument;
using program::Graph;
using program::List;
using program::NamedArgument;
using program::Node;
using program::ValueRef;

bool uses_values(const Argument& argument) {
  if (std::holds_alternative<ValueRef>(argument.value)) return true;
  const List* list = std::get_if<List>(&argument.value);
  return list && std::ranges::any_of(list->items, uses_values);
}

// Returns how to convert a symbolic number to the type that the schema asks for.
Operand::As conversion(const program::Value& value, c10::TypeKind wanted) {
  const bool number = value.kind == program::ValueKind::sym_int || value.kind == program::ValueKind::sym_float ||
                      value.kind == program::ValueKind::sym_bool;
  if (number && wanted == c10::TypeKind::TensorType) return Operand::As::tensor;
  if (value.kind == program::ValueKind::sym_int && wanted == c10::TypeKind::FloatType) return Operand::As::real;
  return Operand::As::itself;
}

const c10::Type& bare(const c10::TypePtr& type) {
  const auto* optional = type->castRaw<c10::OptionalType>();
  return optional ? *optional->getElementType() : *type;
}

Operand slot_operand(const Graph& graph, ValueRef ref, c10::TypeKind wanted) {
  Operand operand;
  operand.kind = Operand::Kind::slot;
  operand.slot = ref.id;
  operand.as = conversion(graph.values.at(static_cast<size_t>(ref.id)), wanted);
  return operand;
}

Operand constant_operand(c10::IValue value) {
  Operand operand;
  operand.constant = std::move(value);
  return operand;
}

// To the dispatcher, some parameters are numbers. To the kernel they are an enumeration, and the kernel trusts them: a
// dtype that does not exist makes it read outside of its tables. So these parameters take only values that read_program
// has checked.
void check_enumeration(const Argument& argument, const c10::TypePtr& type) {
  if (std::holds_alternative<program::None>(argument.value)) return;
  bool fits = true;
  switch (bare(type).kind()) {
    case c10::TypeKind::ScalarTypeType: fits = std::holds_alternative<program::ScalarType>(argument.value); break;
    case c10::TypeKind::LayoutType: fits = std::holds_alternative<program::Layout>(argument.value); break;
    case c10::TypeKind::MemoryFormatType: fits = std::holds_alternative<program::MemoryFormat>(argument.value); break;
    case c10::TypeKind::DeviceObjType: fits = std::holds_alternative<program::Device>(argument.value); break;
    default: break;
  }
  if (!fits)
    throw Error("MODEL_OPERATOR_UNSUPPORTED", "the operator takes a " + bare(type).str() + ", not this kind of value",
                "export the model again; torch.export does not write such arguments");
}

Operand operand_of(const Graph& graph, const Argument& argument, const c10::TypePtr& type) {
  check_enumeration(argument, type);
  if (const auto* ref = std::get_if<ValueRef>(&argument.value)) return slot_operand(graph, *ref, bare(type).kind());
  if (!uses_values(argument)) return constant_operand(constant_of(argument, *type));
  const List& list = std::get<List>(argument.value);
  if (list.of == program::ListOf::lists || list.of == program::ListOf::strings)
    throw Error("MODEL_OPERATOR_UNSUPPORTED", "an argument is a list of a kind that is not supported", "");
  Operand operand;
  operand.kind = Operand::Kind::list;
  operand.of = list.of;
  const auto* list_type = bare(type).castRaw<c10::ListType>();
  if (!list_type)
    throw Error("MODEL_OPERATOR_UNSUPPORTED", "an argument is a list, but the operator takes " + type->str(), "");
  // If an argument of type Tensor?[] has no empty elements, the file gives it as a plain list of tensors.
  if (list.of == program::ListOf::tensors && list_type->getElementType()->kind() == c10::TypeKind::OptionalType)
    operand.of = program::ListOf::optional_tensors;
  for (const Argument& item : list.items) operand.items.push_back(operand_of(graph, item, list_type->getElementType()));
  return operand;
}

// ---- operators -----------------------------------------------------------------------------------------------------

// "torch.ops.aten.add_.Tensor" -> {"aten::add_", "Tensor"}.
c10::OperatorName operator_name(const std::string& target) {
  constexpr std::string_view kPrefix = "torch.ops.";
  const size_t dot = target.find('.', kPrefix.size());
  const size_t last = target.rfind('.');
  if (!target.starts_with(kPrefix) || dot == std::string::npos || last <= dot) return {"", ""};
  const std::string overload = target.substr(last + 1);
  return {target.substr(kPrefix.size(), dot - kPrefix.size()) + "::" + target.substr(dot + 1, last - dot - 1),
          overload == "default" ? "" : overload};
}

const NamedArgument* find(const Node& node, const std::string& name) {
  const auto found = std::ranges::find(node.inputs, name, &NamedArgument::name);
  return found == node.inputs.end() ? nullptr : &*found;
}

std::vector<Operand> operands_of(const Graph& graph, const Node& node, const c10::FunctionSchema& schema) {
  std::vector<Operand> operands;
  std::set<std::string> known;
  for (const c10::Argument& argument : schema.arguments()) {
    known.insert(argument.name());
    if (const NamedArgument* given = find(node, argument.name())) {
      try {
        operands.push_back(operand_of(graph, given->value, argument.real_type()));
      } catch (const Error& error) {
        throw Error("MODEL_OPERATOR_UNSUPPORTED", "argument '" + argument.name() + "': " + error.what(), error.hint);
      }
    } else if (argument.default_value()) {
      operands.push_back(constant_operand(*argument.default_value()));
    } else {
      throw Error("MODEL_OPERATOR_UNSUPPORTED", "argument '" + argument.name() + "' is missing", "");
    }
  }
  for (const NamedArgument& given : node.inputs) {
    if (!known.contains(given.name))
      throw Error("MODEL_OPERATOR_UNSUPPORTED", "the operator has no argument '" + given.name + "'", "");
  }
  return operands;
}

// ---- training graph, evaluated -------------------------------------------------------------------------------------

// In a graph that was exported for training, some operators have a flag that makes them train. For each such operator,
// this class adds the operands that it has in evaluation.
class Evaluation {
 public:
  Evaluation(const program::Program& program, const Graph& graph, Plan& plan)
      : program_(program), at_top_(&graph == &program.graph), plan_(plan) {}

  void complete(Instruction& instruction, const Node& node) {
    const c10::FunctionSchema& schema = instruction.op->schema();
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
      const std::string& name = schema.arguments()[i].name();
      if (name == "dropout_p") instruction.evaluated.emplace_back(i, constant_operand(0.0));
      // If the flag was exported as false, the user has frozen that module, and the flag stays false in training.
      if (!is_true(instruction.operands[i])) continue;
      const bool statistics = name == "use_input_stats";
      if (!statistics && name != "training" && name != "train") continue;
      if (!has_running_mean(instruction, schema) && !give_running(instruction, schema, node)) continue;
      instruction.evaluated.emplace_back(i, constant_operand(false));
    }
  }

 private:
  static bool is_true(const Operand& operand) {
    return operand.kind == Operand::Kind::constant && operand.constant.isBool() && operand.constant.toBool();
  }
  static std::optional<size_t> index_of(const c10::FunctionSchema& schema, const char* name) {
    const auto index = schema.argumentIndexWithName(name);
    return index ? std::optional(static_cast<size_t>(*index)) : std::nullopt;
  }

  // Returns true also for operators without running statistics (dropout, lstm).
  static bool has_running_mean(const Instruction& instruction, const c10::FunctionSchema& schema) {
    const auto mean = index_of(schema, "running_mean");
    return !mean || instruction.operands[*mean].kind == Operand::Kind::slot;
  }

  // Batch norm with momentum None updates its averages outside the operator, so the operator does not name them. This
  // function takes them from the module. If the module has no running statistics, evaluation uses those of the input,
  // as training does.
  bool give_running(Instruction& instruction, const c10::FunctionSchema& schema, const Node& node) {
    const std::string module = node.module.substr(0, node.module.find(" ("));
    const auto mean = slot_of(module + ".running_mean"), variance = slot_of(module + ".running_var");
    if (!mean || !variance) return false;
    instruction.evaluated.emplace_back(*index_of(schema, "running_mean"), *mean);
    instruction.evaluated.emplace_back(*index_of(schema, "running_var"), *variance);
    return true;
  }

  std::optional<Operand> slot_of(const std::string& buffer) {
    const bool known = std::ranges::any_of(program_.inputs, [&](const program::InputSpec& spec) {
      return spec.kind == program::InputSpec::Kind::buffer && spec.name == buffer;
    });
    if (!known || !at_top_) return std::nullopt;
    Operand operand;
    operand.kind = Operand::Kind::slot;
    operand.slot = static_cast<Slot>(plan_.slots++);
    plan_.inputs.push_back(operand.slot);
    plan_.originals.push_back(buffer);
    return operand;
  }

  const program::Program& program_;
  bool at_top_;
  Plan& plan_;
};

Instruction operator_instruction(const Graph& graph, const Node& node) {
  const c10::OperatorName name = operator_name(node.target);
  Instruction instruction;
  instruction.op = allowed_operator(name);
  instruction.target = c10::toString(name);
  instruction.guard = guard_of(instruction.target);
  instruction.operands = operands_of(graph, node, instruction.op->schema());
  return instruction;
}

// ---- nodes without a schema ----------------------------------------------------------------------------------------

Operand untyped(const Graph& graph, const Argument& argument) {
  if (const auto* ref = std::get_if<ValueRef>(&argument.value))
    return slot_operand(graph, *ref, c10::TypeKind::AnyType);
  if (const auto* list = std::get_if<List>(&argument.value); list && uses_values(argument)) {
    Operand operand;
    operand.kind = Operand::Kind::list;
    operand.of = program::ListOf::lists;
    for (const Argument& item : list->items) operand.items.push_back(untyped(graph, item));
    return operand;
  }
  return constant_operand(constant_of(argument, *c10::AnyType::get()));
}

// Compiles a node of a higher-order operator. Compiles its bodies too; they are not passed as operands.
Instruction higher_instruction(const program::Program& program, const Graph& graph, const Node& node) {
  constexpr std::string_view kPrefix = "torch.ops.higher_order.";
  Instruction instruction;
  auto higher = std::make_shared<HigherOrder>();
  higher->run = higher_order_function(node.target.substr(kPrefix.size()));
  if (!higher->run)
    throw Error("MODEL_OPERATOR_UNSUPPORTED", "this higher-order operator is not supported",
                "export the model without it, or unroll the loop");
  for (const NamedArgument& input : node.inputs) {
    if (!input.name.empty()) continue;  // skips settings of Python's tracing, such as use_reentrant
    if (const auto* body = std::get_if<std::shared_ptr<const Graph>>(&input.value.value)) {
      higher->bodies.push_back(compile_graph(program, **body));
    } else {
      instruction.operands.push_back(untyped(graph, input.value));
    }
  }
  instruction.higher = std::move(higher);
  return instruction;
}

Instruction instruction_of(const program::Program& program, const Graph& graph, const Node& node) {
  Instruction instruction;
  if (node.target.starts_with("torch.ops.higher_order.")) {
    instruction = higher_instruction(program, graph, node);
  } else if (node.target.starts_with("torch.ops.")) {
    instruction = operator_instruction(graph, node);
  } else {
    instruction.function = symbolic_function(node.target);
    if (!instruction.function)
      throw Error("MODEL_OPERATOR_NOT_ALLOWED", "it is not one of the functions of sizes that a program may name",
                  "export the model with torch.export.export; only operators (torch.ops.aten) and arithmetic on sizes "
                  "can be in a program");
    for (const NamedArgument& input : node.inputs) instruction.operands.push_back(untyped(graph, input.value));
  }
  if (instruction.target.empty()) instruction.target = node.target;
  return instruction;
}

std::vector<Result> results_of(const Node& node) {
  std::vector<Result> results;
  for (const Argument& output : node.outputs) {
    Result result;
    if (const auto* ref = std::get_if<ValueRef>(&output.value)) {
      result.slot = ref->id;
    } else if (const auto* list = std::get_if<List>(&output.value)) {
      result.is_list = true;
      for (const Argument& item : list->items) {
        const auto* element = std::get_if<ValueRef>(&item.value);
        result.items.push_back(element ? element->id : -1);
      }
    }
    results.push_back(std::move(result));
  }
  return results;
}

// ---- last uses -----------------------------------------------------------------------------------------------------

void mark_last(Operand& operand, std::vector<bool>& used) {
  for (auto item = operand.items.rbegin(); item != operand.items.rend(); ++item) mark_last(*item, used);
  if (operand.kind != Operand::Kind::slot || used[static_cast<size_t>(operand.slot)]) return;
  used[static_cast<size_t>(operand.slot)] = true;
  operand.last_use = true;
}

void mark_last_uses(Plan& plan) {
  std::vector<bool> used(plan.slots, false);
  for (auto output = plan.outputs.rbegin(); output != plan.outputs.rend(); ++output) mark_last(*output, used);
  for (auto at = plan.instructions.rbegin(); at != plan.instructions.rend(); ++at) {
    // An operand that only evaluation reads keeps its slot until the run ends.
    for (const auto& [index, operand] : at->evaluated) {
      if (operand.kind == Operand::Kind::slot) used[static_cast<size_t>(operand.slot)] = true;
    }
    for (auto operand = at->operands.rbegin(); operand != at->operands.rend(); ++operand) mark_last(*operand, used);
    // Results that no instruction reads are not stored.
    for (Result& result : at->results) {
      const auto drop = [&](Slot& slot) {
        if (slot >= 0 && !used[static_cast<size_t>(slot)]) slot = -1;
      };
      drop(result.slot);
      std::ranges::for_each(result.items, drop);
    }
  }
}

}  // namespace

Plan compile_graph(const program::Program& program, const Graph& graph, std::vector<std::string>* problems) {
  Plan plan;
  plan.slots = graph.values.size();
  plan.inputs.assign(graph.inputs.begin(), graph.inputs.end());
  Evaluation evaluation(program, graph, plan);
  for (const Node& node : graph.nodes) {
    try {
      Instruction instruction = instruction_of(program, graph, node);
      if (instruction.op) evaluation.complete(instruction, node);
      instruction.name = node.name;
      instruction.where = node.where;
      instruction.results = results_of(node);
      plan.instructions.push_back(std::move(instruction));
    } catch (const Error& error) {
      Instruction named;
      named.name = node.name;
      named.target = node.target;
      named.where = node.where;
      const std::string what = node_text(named) + ": " + error.what();
      if (problems == nullptr) throw Error(error.code, program.path + ": " + what, error.hint);
      problems->push_back(what + (error.hint.empty() ? "" : " / " + error.hint));
    }
  }
  for (const Argument& output : graph.outputs) plan.outputs.push_back(untyped(graph, output));
  mark_last_uses(plan);
  mark_writes(plan);
  return plan;
}

}  // namespace sinew::model
