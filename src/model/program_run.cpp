// Runs a plan: for each instruction, pushes the operands, calls the operator, and stores the results.
#include <ATen/ScalarOps.h>

#include "base/check.h"
#include "base/error.h"
#include "model/program_plan.h"

namespace sinew::model {
namespace {

using c10::IValue;
using Slots = std::vector<IValue>;

constexpr const char* kLessMemory =
    "make trainer.batch_size smaller or trainer.shards larger, or check the sizes at "
    "this node";

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

IValue fetch(const Operand& operand, Slots& slots);

template <typename T>
IValue list_of(const Operand& operand, Slots& slots) {
  c10::List<T> list;
  list.reserve(operand.items.size());
  for (const Operand& item : operand.items) list.push_back(fetch(item, slots).template to<T>());
  return list;
}

// Returns the operands of a body, which are tensors and sizes, as one list.
IValue mixed_list(const Operand& operand, Slots& slots) {
  c10::List<IValue> list(c10::AnyType::get());
  for (const Operand& item : operand.items) list.push_back(fetch(item, slots));
  return list;
}

IValue fetch_list(const Operand& operand, Slots& slots) {
  switch (operand.of) {
    case program::ListOf::ints: return list_of<int64_t>(operand, slots);
    case program::ListOf::floats: return list_of<double>(operand, slots);
    case program::ListOf::bools: return list_of<bool>(operand, slots);
    case program::ListOf::tensors: return list_of<at::Tensor>(operand, slots);
    case program::ListOf::optional_tensors: return list_of<std::optional<at::Tensor>>(operand, slots);
    case program::ListOf::lists: return mixed_list(operand, slots);
    default: SINEW_CHECK(false, "compile_graph lets no such list pass"); return {};
  }
}

IValue fetch(const Operand& operand, Slots& slots) {
  switch (operand.kind) {
    case Operand::Kind::constant: return operand.constant;
    case Operand::Kind::list: return fetch_list(operand, slots);
    case Operand::Kind::slot: break;
  }
  IValue& slot = slots[static_cast<size_t>(operand.slot)];
  if (operand.as == Operand::As::itself) return operand.last_use ? std::exchange(slot, IValue()) : slot;
  if (operand.as == Operand::As::tensor) return at::native::wrapped_scalar_tensor(slot.toScalar());
  return slot.toScalar().toDouble();
}

void put_list(const Result& result, const IValue& value, Slots& slots) {
  const auto list = value.toListRef();
  TORCH_CHECK(list.size() == result.items.size(), "gave a list of ", list.size(), " where the program expects ",
              result.items.size());
  for (size_t i = 0; i < result.items.size(); ++i) {
    if (result.items[i] >= 0) slots[static_cast<size_t>(result.items[i])] = list[i];
  }
}

void run(const Instruction& instruction, torch::jit::Stack& stack, Slots& slots, bool training) {
  stack.clear();
  for (const Operand& operand : instruction.operands) stack.push_back(fetch(operand, slots));
  if (!training) {
    for (const auto& [index, operand] : instruction.evaluated) stack[index] = fetch(operand, slots);
  }
  if (instruction.guard != nullptr) instruction.guard(instruction.op->schema(), stack);
  if (instruction.op) {
    instruction.op->callBoxed(stack);
  } else if (instruction.function) {
    instruction.function(stack);
  } else {
    instruction.higher->run(*instruction.higher, stack, training);
  }
  const size_t wanted = instruction.results.size();
  TORCH_CHECK(stack.size() >= wanted, "gave ", stack.size(), " values where the program expects ", wanted);
  for (size_t i = 0; i < wanted; ++i) {
    const Result& result = instruction.results[i];
    if (result.is_list) {
      put_list(result, stack[i], slots);
    } else if (result.slot >= 0) {
      slots[static_cast<size_t>(result.slot)] = std::move(stack[i]);
    }
  }
}

}  // namespace

std::string node_text(const Instruction& instruction) {
  return "node " + instruction.name + " (" + instruction.target +
         (instruction.where.empty() ? "" : ", " + instruction.where) + ")";
}

namespace {

// Translates the exception that the instruction threw. If `at` runs a body, the failed node of the body is already
// named.
[[noreturn]] void rethrow_named(const Instruction& at) {
  const std::string node = node_text(at) + ": ";
  try {
    throw;
  } catch (const Error& error) {
    if (at.higher) throw;
    throw Error(error.code, node + error.what(), error.hint);
  } catch (const c10::OutOfMemoryError& error) {
    throw Error("MODEL_OUT_OF_MEMORY", node + first_line(error.what_without_backtrace()), kLessMemory);
  } catch (const c10::Error& error) {
    const std::string text = first_line(error.what_without_backtrace());
    const bool memory = text.find("can't allocate memory") != std::string::npos;
    if (memory) throw Error("MODEL_OUT_OF_MEMORY", node + text, kLessMemory);
    throw Error("MODEL_OPERATOR_FAILED", node + text, "check the shapes and the values at this node");
  } catch (const std::bad_alloc&) {
    throw Error("MODEL_OUT_OF_MEMORY", node + "there is not enough memory", kLessMemory);
  } catch (const std::exception& error) {  // libtorch also throws exceptions of the standard library
    throw Error("MODEL_OPERATOR_FAILED", node + first_line(error.what()), "check the arguments of this node");
  }
}

}  // namespace

std::vector<IValue> run_plan(const Plan& plan, std::vector<IValue> inputs, bool training) {
  SINEW_CHECK(inputs.size() == plan.inputs.size(), inputs.size());
  Slots slots(plan.slots);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (plan.inputs[i] >= 0) slots[static_cast<size_t>(plan.inputs[i])] = std::move(inputs[i]);
  }
  torch::jit::Stack stack;
  for (const Instruction& instruction : plan.instructions) {
    try {
      run(instruction, stack, slots, training);
    } catch (...) {
      rethrow_named(instruction);
    }
  }
  std::vector<IValue> outputs;
  outputs.reserve(plan.outputs.size());
  for (const Operand& output : plan.outputs) outputs.push_back(fetch(output, slots));
  return outputs;
}

}  // namespace sinew::model
