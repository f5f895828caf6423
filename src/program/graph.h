// Inside the room: a graph of the schema, with every name resolved.
#pragma once

#include <string>
#include <unordered_map>

#include "program/json.h"
#include "program/meta.h"
#include "program/program.h"

namespace sinew::program {

inline constexpr int kDeepestGraph = 16;

// One graph and its scope. A subgraph sees only its own inputs: what it uses of outside comes in by them.
class GraphReader {
 public:
  explicit GraphReader(Symbols& symbols, int depth = 0) : symbols_(symbols), depth_(depth) {}

  // Of the root, inputs that are constants (None, 3) stand in no value; they are the signature's affair. In a subgraph
  // they keep their place with the id -1.
  Graph read(const Spot& spot);
  // For the signature, once the graph is read: an argument that names values of it.
  Argument argument(const Spot& spot);
  ValueId value_of(const Spot& name) const;  // refuses an unknown one

 private:
  enum class Kinds { tensor, any };
  void read_tables(const Spot& spot);
  void define_input(const Spot& spot);
  Node read_node(const Spot& spot);
  Argument define_output(const Spot& spot);
  Argument define(const Spot& name, ValueKind kind);
  Argument define_symbolic(const Spot& spot, ValueKind kind);
  std::optional<Argument> tensor_argument(std::string_view kind, const Spot& spot);
  std::optional<Argument> symbolic_argument(std::string_view kind, const Spot& spot);
  Argument reference(const Spot& name, std::optional<ValueKind> kind) const;
  Argument tensor(const Spot& spot, Kinds kinds) const;
  Argument optional_tensor(const Spot& spot) const;
  Argument symbolic(const Spot& spot, ValueKind kind) const;
  Argument subgraph(const Spot& spot);

  Symbols& symbols_;
  int depth_;
  Graph graph_;
  std::unordered_map<std::string_view, Spot> tensors_, sym_ints_, sym_floats_, sym_bools_;
  struct Known {
    ValueId id;
    ValueKind kind;
  };
  std::unordered_map<std::string, Known> names_;  // outlives the graph, which read() gives away
};

// "model.py:17 in forward" and "encoder.layers.0 (TransformerEncoderLayer)" of a node's metadata; "" where it has none.
std::string innermost_line(std::string_view stack_trace);
std::string innermost_module(std::string_view nn_module_stack);

}  // namespace sinew::program
