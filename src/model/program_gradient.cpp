// Finds whether a gradient can flow from an output of a plan to its parameters.
#include <algorithm>

#include "model/program_plan.h"

namespace sinew::model {
namespace {

bool any_slot(const Operand& operand, const std::vector<bool>& marked) {
  if (operand.kind == Operand::Kind::slot) return marked[static_cast<size_t>(operand.slot)];
  return std::ranges::any_of(operand.items, [&](const Operand& item) { return any_slot(item, marked); });
}

bool stops_gradients(const Instruction& instruction) {
  if (instruction.op) return instruction.target == "aten::detach" || instruction.target == "aten::detach_";
  constexpr std::string_view kSwitch = "torch.ops.higher_order.wrap_with_set_grad_enabled";
  return instruction.target == kSwitch && !instruction.operands.empty() &&
         instruction.operands[0].kind == Operand::Kind::constant && instruction.operands[0].constant.isBool() &&
         !instruction.operands[0].constant.toBool();
}

bool writes(const Instruction& instruction) {
  if (!instruction.op) return false;
  const auto& arguments = instruction.op->schema().arguments();
  return std::ranges::any_of(arguments, [](const c10::Argument& argument) {
    return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
  });
}

}  // namespace

bool gradient_reaches(const Plan& plan, const std::vector<bool>& trained, size_t output) {
  std::vector<bool> marked(plan.slots, false);  // the values that depend on a trained input
  for (size_t i = 0; i < trained.size(); ++i) {
    if (trained[i] && plan.inputs[i] >= 0) marked[static_cast<size_t>(plan.inputs[i])] = true;
  }
  for (const Instruction& instruction : plan.instructions) {
    const bool depends =
        std::ranges::any_of(instruction.operands, [&](const Operand& operand) { return any_slot(operand, marked); });
    if (!depends || stops_gradients(instruction)) continue;
    if (writes(instruction)) return true;  // other values may be views of what it writes
    const auto mark = [&](Slot slot) {
      if (slot >= 0) marked[static_cast<size_t>(slot)] = true;
    };
    for (const Result& result : instruction.results) {
      mark(result.slot);
      std::ranges::for_each(result.items, mark);
    }
  }
  return any_slot(plan.outputs.at(output), marked);
}

}  // namespace sinew::model
