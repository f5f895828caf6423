// Private to program/: reads a graph of the schema and resolves every name in it.
#pragma once

#include <string>
#include <unordered_map>

#include "program/json.h"
#include "program/meta.h"
#include "program/program.h"

namespace sinew::program {

inline constexpr int kMaxGraphDepth = 16;
inline constexpr char kCustomClassHint[] =
    "Sinew runs only tensors and numbers; keep script objects out of the exported model";

// Reads one graph, which is a scope of names. A subgraph sees only its own inputs; every value from outside enters
// through them.
class GraphReader {
 public:
  explicit GraphReader(Symbols& symbols, int depth = 0) : symbols_(symbols), depth_(depth) {}

  // A constant input (None, 3) has no value. The root graph leaves constant inputs out, because the signature holds
  // them. In a subgraph they keep their position, with the id -1.
  Graph read(const JsonView& view);
  // Reads an argument that names values of this graph. The reader of the signature calls it after read().
  Argument argument(const JsonView& view);
  ValueId value_of(const JsonView& name) const;  // refuses an unknown name

 private:
  enum class Kinds { tensor, any };
  void read_tables(const JsonView& view);
  void define_input(const JsonView& view);
  Node read_node(const JsonView& view);
  Argument define_output(const JsonView& view);
  Argument define(const JsonView& name, ValueKind kind);
  Argument define_symbolic(const JsonView& view, ValueKind kind);
  std::optional<Argument> tensor_argument(std::string_view kind, const JsonView& view);
  std::optional<Argument> symbolic_argument(std::string_view kind, const JsonView& view);
  Argument reference(const JsonView& name, std::optional<ValueKind> kind) const;
  Argument tensor(const JsonView& view, Kinds kinds) const;
  Argument optional_tensor(const JsonView& view) const;
  Argument symbolic(const JsonView& view, ValueKind kind) const;
  Argument subgraph(const JsonView& view);

  Symbols& symbols_;
  int depth_;
  Graph graph_;
  std::unordered_map<std::string_view, JsonView> tensors_, sym_ints_, sym_floats_, sym_bools_;
  struct Known {
    ValueId id;
    ValueKind kind;
  };
  std::unordered_map<std::string, Known> names_;  // stays valid after read() has moved the graph out
};

// These functions find the source of a node in its metadata. They return, for example, "model.py:17 in forward" and
// "encoder.layers.0 (TransformerEncoderLayer)", or "" if the metadata has no source.
std::string innermost_line(std::string_view stack_trace);
std::string innermost_module(std::string_view nn_module_stack);

}  // namespace sinew::program
