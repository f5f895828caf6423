// Inside model/: a program compiled once into a flat list of instructions, and one run of it.
//
// Compiling resolves every operator, checks its arguments against its schema and turns what never changes into values
// of the boxed calling convention; what is left per node is to push the operands and call. A Plan is immutable and
// shared by all replicas.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "program/program.h"

namespace sinew::model {

using Slot = int32_t;

// How an operand is made at each run.
struct Operand {
  enum class Kind : uint8_t { constant, slot, list };
  enum class As : uint8_t { itself, tensor /* number -> 0-dim tensor */, real /* int -> double */ };
  Kind kind = Kind::constant;
  As as = As::itself;
  bool last_use = false;  // moved out of its slot, so memory is free as soon as the operator is done
  Slot slot = -1;
  c10::IValue constant;
  program::ListOf of = program::ListOf::ints;  // list
  std::vector<Operand> items;
};

// Where what an instruction returned goes: a slot, nowhere (-1), or, of a list, a slot for each element.
struct Result {
  Slot slot = -1;
  bool is_list = false;
  std::vector<Slot> items;
};

struct Plan;
// Of symbolic integers and their like, and of higher-order operators.
using Function = void (*)(torch::jit::Stack& stack);
struct HigherOrder;
using HigherOrderRun = void (*)(const HigherOrder& node, torch::jit::Stack& stack, bool training);

struct HigherOrder {
  HigherOrderRun run = nullptr;
  std::vector<Plan> bodies;  // by place among the operands that are graphs
};

struct Instruction {
  std::string name;  // of the node, for messages
  std::string target;
  std::string where;
  std::optional<c10::OperatorHandle> op;  // one of these three
  Function function = nullptr;
  std::shared_ptr<const HigherOrder> higher;
  std::vector<Operand> operands;
  std::vector<Result> results;
  // What operands are instead when the model is evaluated: `training`, a dropout probability, running statistics.
  std::vector<std::pair<size_t, Operand>> evaluated;
};

struct Plan {
  std::vector<Instruction> instructions;
  size_t slots = 0;
  std::vector<Slot> inputs;            // of the graph, in order, -1 for what no value takes; then of `originals`
  std::vector<std::string> originals;  // buffers whose value before the run is wanted in evaluation, by name
  std::vector<bool> written;           // by input: some instruction may write into its memory
  std::vector<bool> overwritten;       // by input: one surely does, in training
  std::vector<Operand> outputs;
};

// Throws Error naming the node, the operator and the user's line; with `problems` they are all put there instead, and
// the plan is not to be run when there are any.
Plan compile_graph(const program::Program& program, const program::Graph& graph,
                   std::vector<std::string>* problems = nullptr);

// Runs the plan on `inputs` (consumed) and returns its outputs. A failing operator throws Error naming its node.
std::vector<c10::IValue> run_plan(const Plan& plan, std::vector<c10::IValue> inputs, bool training);

// What each line of program_*.cpp offers the compiler.
Function symbolic_function(const std::string& target);          // nullptr: none of that name
HigherOrderRun higher_order_function(const std::string& name);  // "cond"; nullptr: not supported
void mark_writes(Plan& plan);                                   // fills in written and overwritten
at::ScalarType scalar_type(program::ScalarType type);
c10::IValue constant_of(const program::Argument& argument, const c10::Type& type);
std::string node_text(const Instruction& instruction);  // "node linear_1 (aten::linear, model.py:17 in forward)"

}  // namespace sinew::model
