// Private to model/: compiles a program once into a flat list of instructions, and runs it.
//
// compile_graph resolves every operator, checks its arguments against its schema, and turns constant arguments into
// values of libtorch's boxed calling convention. A run then only pushes the operands of each node and calls its
// operator. A Plan is immutable, and all replicas share it.
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

// The source of an operand.
struct Operand {
  enum class Kind : uint8_t { constant, slot, list };
  enum class As : uint8_t { itself, tensor /* number -> 0-dim tensor */, real /* int -> double */ };
  Kind kind = Kind::constant;
  As as = As::itself;
  // true: the run moves the value out of its slot, so its memory is free as soon as the operator returns
  bool last_use = false;
  Slot slot = -1;
  c10::IValue constant;
  program::ListOf of = program::ListOf::ints;  // list
  std::vector<Operand> items;
};

// The destination of a result: a slot, nowhere (-1), or, for a list, one slot for each element.
struct Result {
  Slot slot = -1;
  bool is_list = false;
  std::vector<Slot> items;
};

struct Plan;
// A function that computes with symbolic integers and similar numbers.
using Function = void (*)(torch::jit::Stack& stack);
// Throws Error if an operator gets operands of a kind that libtorch's kernel does not check itself.
using Guard = void (*)(const c10::FunctionSchema& schema, const torch::jit::Stack& operands);
struct HigherOrder;
using HigherOrderRun = void (*)(const HigherOrder& node, torch::jit::Stack& stack, bool training);

struct HigherOrder {
  HigherOrderRun run = nullptr;
  std::vector<Plan> bodies;  // one for each operand that is a graph, in order
};

struct Instruction {
  std::string name;  // name of the node, for messages
  std::string target;
  std::string where;
  std::optional<c10::OperatorHandle> op;  // exactly one of op, function and higher is set
  Function function = nullptr;
  Guard guard = nullptr;  // nullptr if the operator needs none
  std::shared_ptr<const HigherOrder> higher;
  std::vector<Operand> operands;
  std::vector<Result> results;
  // The operands that differ when the model is evaluated: `training`, a dropout probability, running statistics.
  std::vector<std::pair<size_t, Operand>> evaluated;
};

struct Plan {
  std::vector<Instruction> instructions;
  size_t slots = 0;
  std::vector<Slot> inputs;  // slots of the graph's inputs in order (-1 if nothing reads it), then of `originals`
  std::vector<std::string> originals;  // buffers of which evaluation reads the value from before the run
  std::vector<bool> written;           // for each input: an instruction may write into its memory
  std::vector<bool> overwritten;       // for each input: an instruction certainly writes into its memory in training
  std::vector<Operand> outputs;
};

// Throws Error naming the node, the operator and the user's line. If `problems` is given, appends all such errors to it
// instead. The plan must not run if there are any.
Plan compile_graph(const program::Program& program, const program::Graph& graph,
                   std::vector<std::string>* problems = nullptr);

// Runs the plan on `inputs`, which it consumes, and returns the outputs. If an operator fails, throws Error naming its
// node.
std::vector<c10::IValue> run_plan(const Plan& plan, std::vector<c10::IValue> inputs, bool training);

// The operators that a program may name, without "aten::", in the order of ASCII.
const std::vector<std::string_view>& allowed_operators();
// Throws Error with the reason if a program must not name the operator, or if this libtorch does not have it.
c10::OperatorHandle allowed_operator(const c10::OperatorName& name);
Guard guard_of(const std::string& operator_name);  // "aten::div.Tensor_mode"; nullptr if it needs none

// The following functions are in the other program_*.cpp files. The compiler uses them.
Function symbolic_function(const std::string& target);  // nullptr if no function has that name
// `name` is such as "cond"; nullptr if it is not supported
HigherOrderRun higher_order_function(const std::string& name);
void begin_run();  // resets the count of loop rounds, which is bounded; call it before run_plan for a whole program
void mark_writes(Plan& plan);  // fills in written and overwritten
// Returns whether a gradient of output number `output` may reach one of the inputs that are `trained`. Returns true if
// in doubt.
bool gradient_reaches(const Plan& plan, const std::vector<bool>& trained, size_t output);
// Returns warnings about operators that draw random numbers in evaluation too.
std::vector<std::string> random_in_evaluation(const Plan& plan);
// Returns warnings about operators that do not train because the program was exported in evaluation mode.
std::vector<std::string> remarks_of(const Plan& plan);
at::ScalarType scalar_type(program::ScalarType type);
c10::IValue constant_of(const program::Argument& argument, const c10::Type& type);
std::string node_text(const Instruction& instruction);  // "node linear_1 (aten::linear, model.py:17 in forward)"

}  // namespace sinew::model
