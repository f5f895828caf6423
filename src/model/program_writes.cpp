// Finds the inputs that a plan writes into.
#include <algorithm>
#include <map>
#include <set>

#include "model/program_plan.h"

namespace sinew::model {
namespace {

// Returns whether the argument holds running statistics that the operator writes. Batch norm writes them without
// declaring the write in its schema.
bool keeps_statistics(const Instruction& instruction, size_t argument) {
  const auto& arguments = instruction.op->schema().arguments();
  if (arguments[argument].name() != "running_mean" && arguments[argument].name() != "running_var") return false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Operand& flag = instruction.operands[i];
    const bool trains = arguments[i].name() == "training" || arguments[i].name() == "use_input_stats";
    if (trains && flag.kind == Operand::Kind::constant && flag.constant.isBool()) return flag.constant.toBool();
  }
  return false;
}

// Appends one operand for each value. A list of constants is one operand, so it is appended once for each element.
void flatten(const Operand& operand, std::vector<const Operand*>& all) {
  const bool constants = operand.kind == Operand::Kind::constant && operand.constant.isList();
  if (constants) all.insert(all.end(), operand.constant.toListRef().size(), &operand);
  if (!constants && operand.kind != Operand::Kind::list) all.push_back(&operand);
  for (const Operand& item : operand.items) flatten(item, all);
}

// Returns whether every result of the operator is a view. Other operators (reshape, flatten, contiguous, to) sometimes
// return a view and sometimes a copy.
bool is_always_a_view(const std::string& target) {
  static const std::set<std::string> names = {
      "aten::detach", "aten::alias",     "aten::view",    "aten::view_as",   "aten::select", "aten::slice",  "aten::t",
      "aten::narrow", "aten::transpose", "aten::permute", "aten::unsqueeze", "aten::expand", "aten::squeeze"};
  return names.contains(target.substr(0, target.find('.')));
}

// Finds two sets of inputs. An input is `written` if an instruction may write into it, directly or through a view.
// Every write that the schema of an operator does not exclude counts, and a body may write into all its operands. An
// input is `overwritten` if an instruction certainly writes into it.
class Writes {
 public:
  explicit Writes(Plan& plan) : plan_(plan), origin_(plan.slots, -1) {
    plan_.written.assign(plan_.inputs.size(), false);
    plan_.overwritten.assign(plan_.inputs.size(), false);
    for (size_t i = 0; i < plan_.inputs.size(); ++i) {
      if (plan_.inputs[i] < 0) continue;
      origin_[static_cast<size_t>(plan_.inputs[i])] = plan_.inputs[i];
      inputs_[plan_.inputs[i]] = i;
    }
  }

  void mark() {
    for (const Instruction& instruction : plan_.instructions) {
      if (instruction.higher) bodies(instruction);
      for (size_t i = 0; i < instruction.operands.size(); ++i) {
        const c10::AliasInfo* alias = instruction.op ? instruction.op->schema().arguments()[i].alias_info() : nullptr;
        const bool writes = instruction.op && alias != nullptr && alias->isWrite();
        if (writes || (instruction.op && keeps_statistics(instruction, i))) overwrite(instruction.operands[i]);
        if (writes || (alias != nullptr && is_always_a_view(instruction.target)))
          name_again(instruction.operands[i], instruction.results);
        if (instruction.op && alias == nullptr) continue;
        pass(instruction.operands[i], alias == nullptr || alias->isWrite(), instruction.results);
      }
    }
  }

 private:
  void overwrite(const Operand& operand) {
    for (const Operand& item : operand.items) overwrite(item);
    if (operand.kind != Operand::Kind::slot) return;
    if (const auto input = inputs_.find(operand.slot); input != inputs_.end()) plan_.overwritten[input->second] = true;
  }

  void name_again(const Operand& operand, const std::vector<Result>& results) {
    const auto input = inputs_.find(operand.slot);
    if (operand.kind != Operand::Kind::slot || input == inputs_.end() || results.size() != 1) return;
    if (results[0].slot >= 0) inputs_.emplace(results[0].slot, input->second);
  }

  // The inputs of a body are the last operands of the instruction. A predicate or settings come before them.
  void bodies(const Instruction& instruction) {
    std::vector<const Operand*> given;
    for (const Operand& operand : instruction.operands) flatten(operand, given);
    for (const Plan& body : instruction.higher->bodies) {
      if (body.inputs.size() > given.size()) continue;
      for (size_t i = 0; i < body.inputs.size(); ++i) {
        if (body.overwritten[i]) overwrite(*given[given.size() - body.inputs.size() + i]);
      }
    }
  }

  void pass(const Operand& operand, bool writes, const std::vector<Result>& results) {
    for (const Operand& item : operand.items) pass(item, writes, results);
    if (operand.kind != Operand::Kind::slot || origin_[static_cast<size_t>(operand.slot)] < 0) return;
    const Slot from = origin_[static_cast<size_t>(operand.slot)];
    if (writes) plan_.written[inputs_.at(from)] = true;
    const auto view = [&](Slot slot) {
      if (slot >= 0) origin_[static_cast<size_t>(slot)] = from;
    };
    for (const Result& result : results) {
      view(result.slot);
      std::ranges::for_each(result.items, view);
    }
  }

  Plan& plan_;
  std::vector<Slot> origin_;       // for each slot: the input that its value may be a view of, or -1
  std::map<Slot, size_t> inputs_;  // for each slot: the index of the input that it holds, or is certainly a view of
};

}  // namespace

void mark_writes(Plan& plan) {
  Writes(plan).mark();
}

}  // namespace sinew::model
