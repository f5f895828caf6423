// Private to program/: reads the types and shapes of tensors from the schema's JSON.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "program/json.h"
#include "program/program.h"

namespace sinew::program {

// Checks that a symbol has the same value (hint) everywhere in a program.
class Symbols {
 public:
  void record_hint(const JsonView& view, const std::string& symbol, int64_t hint);

 private:
  std::map<std::string, int64_t, std::less<>> hints_;
};

ScalarType read_scalar_type(const JsonView& view);
Layout read_layout(const JsonView& view);
MemoryFormat read_memory_format(const JsonView& view);
Device read_device(const JsonView& view);
// Reads a SymInt: a number or an expression. `min` is the smallest allowed number.
Dim read_sym_int(const JsonView& view, int64_t min, Symbols& symbols);

// All that the schema says about a tensor. For a stored tensor, strides and offset are exact. For a value in the graph,
// they are those of the example with which the model was exported.
struct FullMeta {
  TensorMeta meta;
  std::vector<Dim> strides;
  Dim offset;
};
FullMeta read_tensor_meta(const JsonView& view, Symbols& symbols);

}  // namespace sinew::program
