// Finds operators that a program keeps in evaluation mode while it is trained, and random ones that it keeps in
// evaluation.
#include <map>
#include <optional>
#include <set>

#include "model/program_plan.h"

namespace sinew::model {
namespace {

// Returns the operand of this name, if it is a constant.
const c10::IValue* constant_named(const Instruction& instruction, const char* name) {
  const auto index = instruction.op->schema().argumentIndexWithName(name);
  if (!index) return nullptr;
  const Operand& operand = instruction.operands.at(static_cast<size_t>(*index));
  return operand.kind == Operand::Kind::constant ? &operand.constant : nullptr;
}

bool is_false(const c10::IValue* value) {
  return value != nullptr && value->isBool() && !value->toBool();
}
bool is_zero(const c10::IValue* value) {
  return value != nullptr && value->isDouble() && value->toDouble() == 0;
}

// Returns what the instruction does not do in training because its flag was exported as false; "" if it misses nothing.
std::string fixed_in_evaluation(const Instruction& instruction) {
  if (!is_false(constant_named(instruction, "training")) && !is_false(constant_named(instruction, "train"))) return "";
  if (instruction.target.find("batch_norm") != std::string::npos) {
    const c10::IValue* statistics = constant_named(instruction, "running_mean");
    return statistics != nullptr && statistics->isNone() ? "" : " does not update its statistics in training";
  }
  const bool drops_nothing =
      is_zero(constant_named(instruction, "p")) || is_zero(constant_named(instruction, "dropout"));
  return drops_nothing ? "" : " drops nothing in training";
}

struct Found {
  std::string first;  // the first such node
  size_t others = 0;
};
std::string like_others(const Found& found) {
  return found.others == 0 ? "" : ", like " + std::to_string(found.others) + " others";
}

void find_random(const Plan& plan, std::optional<Found>& found) {
  static const std::set<std::string> names = {"bernoulli",   "bernoulli_",   "cauchy_", "exponential_", "geometric_",
                                              "log_normal_", "normal",       "normal_", "rand",         "rand_like",
                                              "randint",     "randint_like", "randn",   "randn_like",   "random_",
                                              "randperm",    "uniform_"};
  for (const Instruction& instruction : plan.instructions) {
    if (instruction.higher) {
      for (const Plan& body : instruction.higher->bodies) find_random(body, found);
    }
    constexpr size_t kPrefix = std::string_view("aten::").size();
    if (!instruction.op) continue;
    const std::string name = instruction.target.substr(kPrefix);
    if (!names.contains(name.substr(0, name.find('.')))) continue;
    if (found) ++found->others;
    if (!found) found = Found{node_text(instruction)};
  }
}

}  // namespace

std::vector<std::string> random_in_evaluation(const Plan& plan) {
  std::optional<Found> found;
  find_random(plan, found);
  if (!found) return {};
  return {found->first + " draws random numbers in evaluation too" + like_others(*found) +
          ": the graph does not say that they belong to training"};
}

std::vector<std::string> remarks_of(const Plan& plan) {
  std::map<std::string, Found> all;
  for (const Instruction& instruction : plan.instructions) {
    if (!instruction.op) continue;
    const std::string what = fixed_in_evaluation(instruction);
    if (what.empty()) continue;
    const auto [known, is_new] = all.try_emplace(what, Found{node_text(instruction)});
    if (!is_new) ++known->second.others;
  }
  std::vector<std::string> remarks;
  for (const auto& [what, found] : all) {
    remarks.push_back(found.first + what + like_others(found) +
                      ": the program was exported in evaluation mode; to train this, export it after model.train()");
  }
  return remarks;
}

}  // namespace sinew::model
