// Inside the room: types and shapes as the schema writes them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "program/json.h"
#include "program/program.h"

namespace sinew::program {

// What a program says of its symbols must be one story: a symbol has one number in the example.
class Symbols {
 public:
  void saw(const Spot& spot, const std::string& symbol, int64_t hint);

 private:
  std::map<std::string, int64_t, std::less<>> hints_;
};

ScalarType read_scalar_type(const Spot& spot);
Layout read_layout(const Spot& spot);
MemoryFormat read_memory_format(const Spot& spot);
Device read_device(const Spot& spot);
// SymInt: a number or an expression. `least`: what a number may be at least.
Dim read_sym_int(const Spot& spot, int64_t least, Symbols& symbols);

// All the schema says of a tensor; strides and offset are of the example, and of a stored tensor the truth.
struct FullMeta {
  TensorMeta meta;
  std::vector<Dim> strides;
  Dim offset;
};
FullMeta read_tensor_meta(const Spot& spot, Symbols& symbols);

}  // namespace sinew::program
