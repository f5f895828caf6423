// Programs: what a `.pt2` file of torch.export says, as plain data.
//
// For model/ (which runs a program), cli/ (`sinew inspect`) and worker/. No tensor library: a hostile file meets this
// room first, so every reader here can be fuzzed. Reading gives a program whose every name is resolved: an argument
// names a value that an input or an earlier node of the same graph made, every weight lies inside its file. It says
// nothing of what the operators do: whether one exists and takes such arguments is for model/.
//
// The format: a zip archive, its members stored and not compressed,
//   <name>/archive_format "pt2", archive_version, byteorder "little"
//   <name>/models/model.json                             the graph (schema 8.x of torch/_export/serde/schema.py)
//   <name>/data/weights/model_weights_config.json        name -> file, dtype, sizes, strides, offset; weight_<n>
//   <name>/data/constants/model_constants_config.json    the same of constants
//
// A younger minor version of the schema may have added names to objects: those are passed over. Unknown names of a
// version we know, and unknown kinds of arguments, dtypes or specs of any, are refused (docs/formats/pt2.md).
//
// Errors: whatever is wrong throws Error naming the file and the place in it (member, and path inside its JSON).
// Threads: everything is a value; functions may be called from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/array.h"
#include "base/hash.h"

namespace sinew::program {

// ---- the graph -----------------------------------------------------------------------------------------------------

// Numbers of torch.export's schema, not of c10: model/ maps them. Unknown numbers are refused by read_program.
enum class ScalarType : int {
  u8 = 1,
  i8 = 2,
  i16 = 3,
  i32 = 4,
  i64 = 5,
  f16 = 6,
  f32 = 7,
  f64 = 8,
  c32 = 9,
  c64 = 10,
  c128 = 11,
  boolean = 12,
  bf16 = 13,
  u16 = 28,
  u32 = 34,
  u64 = 35,
};
std::string_view name_of(ScalarType type);       // "float32", as Python says it
size_t size_of(ScalarType type);                 // bytes of an element
std::optional<DType> dtype_of(ScalarType type);  // none: this program has no such arrays (complex, u16 ...)
enum class Layout : int { strided = 7 };         // others are refused
enum class MemoryFormat : int { contiguous = 1, channels_last = 2, channels_last_3d = 3, preserve = 4 };
struct Device {
  std::string type;  // "cpu", "cuda"; exported from there, run where the job says
  bool operator==(const Device&) const = default;
};

// One place of a tensor's shape: a number, or a symbol of the program ("s77") with the number it had in the example.
struct Dim {
  std::optional<int64_t> fixed;
  std::string expression;  // when not fixed: as the file has it, e.g. "Symbol('s77', positive=True, integer=True)"
  std::string symbol;      // when the expression is one symbol alone: "s77"; else ""
  std::optional<int64_t> hint;
};

struct TensorMeta {
  ScalarType dtype = ScalarType::f32;
  std::vector<Dim> sizes;
  bool requires_grad = false;
};

enum class ValueKind : uint8_t { tensor, tensors /* a list made by one node */, sym_int, sym_float, sym_bool, token };

struct Value {
  std::string name;  // "linear_1"; unique in its graph
  ValueKind kind = ValueKind::tensor;
  std::optional<TensorMeta> meta;  // tensors that the file describes
};
using ValueId = int32_t;  // index into Graph::values

struct Graph;
struct Argument;
struct None {
  bool operator==(const None&) const = default;
};
struct Complex {
  double real = 0, imag = 0;
  bool operator==(const Complex&) const = default;
};
struct ValueRef {
  ValueId id = 0;
  bool operator==(const ValueRef&) const = default;
};
struct OperatorName {  // as_operator
  std::string name;
  bool operator==(const OperatorName&) const = default;
};

// Lists say what their elements are even when empty: a list of tensors and a list of numbers are different things.
enum class ListOf : uint8_t {
  tensors,
  optional_tensors,
  ints /* of numbers, or sym ints */,
  floats,
  bools,
  strings,
  lists
};
struct List {
  ListOf of = ListOf::ints;
  std::vector<Argument> items;
};
struct NamedArgument;
struct Dictionary {  // as_string_to_argument, in the order of the file
  std::vector<NamedArgument> items;
};

struct Argument {
  std::variant<None, ValueRef, int64_t, double, bool, std::string, Complex, ScalarType, MemoryFormat, Layout, Device,
               OperatorName, List, Dictionary, std::shared_ptr<const Graph>>
      value;
};

struct NamedArgument {
  std::string name;  // of the operator's schema, may be ""; in a dictionary the key
  Argument value;
};

struct Node {
  std::string name;    // "linear_1"; the first output's when the file gives none
  std::string target;  // "torch.ops.aten.linear.default", "_operator.mul"
  std::vector<NamedArgument> inputs;
  // What it makes. None where an output is dropped; one List of ValueRefs where the operator returns a list.
  std::vector<Argument> outputs;
  bool returns_list_of_one = false;  // is_hop_single_tensor_return says: higher-order operators only
  std::string where;                 // the innermost line of the user's own code, "model.py:17 in forward"; may be ""
  std::string module;                // "encoder.layers.0 (TransformerEncoderLayer)"; may be ""
};

// Nodes in the order they run.
struct Graph {
  std::vector<Value> values;
  std::vector<ValueId> inputs;    // in a subgraph -1 where it is given a constant, which the body has built in
  std::vector<Argument> outputs;  // ValueRef, None, or a number
  std::vector<Node> nodes;
  bool single_output = false;  // is_single_tensor_return: a body that gives one tensor, not a list of one
};

// ---- the program ---------------------------------------------------------------------------------------------------

// How nested inputs or outputs are packed into the flat list of leaves (torch.utils._pytree, protocol 1).
struct Tree {
  enum class Kind : uint8_t { leaf, none, tuple, list, dict, named_tuple, other };
  Kind kind = Kind::leaf;
  std::vector<std::string> keys;  // of the children: always of a dict, of the others where the file says them
  std::vector<Tree> children;
};

struct InputSpec {
  enum class Kind : uint8_t { parameter, buffer, constant, user, user_constant /* None, 3, "mean" */ };
  Kind kind = Kind::user;
  ValueId value = -1;  // of graph.values; -1 for a user_constant
  std::string name;    // parameter, buffer, constant: its name in the module, "layers.0.weight"; user: "x", "batch.ids"
  bool persistent = true;  // buffers: part of the state dict
  Argument constant;       // user_constant: what it was; the graph has it built in
};

struct OutputSpec {
  enum class Kind : uint8_t { user, loss, buffer_mutation, parameter_mutation, input_mutation };
  Kind kind = Kind::user;
  Argument value;    // ValueRef, None or a number
  std::string name;  // mutations: of the parameter, buffer or input; user: "", "logits", "0.hidden" when nested
};

// A tensor in the archive: a view into one file, which others may share (tied weights).
struct Stored {
  std::string member;  // of the archive, in full: "net/data/weights/weight_3"
  ScalarType dtype = ScalarType::f32;
  Shape sizes, strides;
  int64_t offset = 0;  // in elements
  bool is_parameter = false;
  // Where the member's bytes are, and their CRC-32: read_tensor proves that they are still the ones read_program saw.
  uint64_t begin = 0, member_bytes = 0;
  uint32_t checksum = 0;
};

struct Range {  // of a symbol: what the exporter proved
  std::optional<int64_t> least, most;
};

struct Program {
  std::string path;
  std::string root;  // of the archive: "net"
  std::string torch_version;
  std::array<int64_t, 2> schema_version{};
  Digest digest;  // of models/model.json: what is computed, whatever the weights
  Graph graph;
  std::vector<InputSpec> inputs;  // one for each of graph.inputs and of the user's constants, in order
  std::vector<OutputSpec> outputs;
  std::map<std::string, Stored> weights;    // parameters and buffers, by name
  std::map<std::string, Stored> constants;  // and buffers that are not persistent
  std::map<std::string, Range> ranges;      // by symbol
  Tree input_tree, output_tree;             // input_tree: (args, kwargs)
};

// Throws Error. Memory: the JSON (at most 256 MiB of it) and what is made of it; weights stay in the file.
Program read_program(const std::string& path);

// The tensor, dense and in C order whatever its strides. Throws Error (file changed meanwhile, checksum).
Array read_tensor(const Program& program, const Stored& stored);

// Has one byte of the archive a part in both? Exact: of two views side by side none has.
bool share_bytes(const Stored& a, const Stored& b);

// ---- what it costs -------------------------------------------------------------------------------------------------

// Floating-point operations of the products in one forward pass, a multiplication and an addition counted as two:
// linear layers, matrix products, convolutions, attention, recurrent layers. All else is small beside them. Symbols
// count as 1, so with the batch as the only one it is a sample's.
struct Flops {
  double total = 0;
  std::map<std::string, double> by_operator;   // "aten.linear"
  std::map<std::string, int64_t> not_counted;  // products whose shapes the file does not say: operator -> nodes
  std::vector<std::string> symbols;            // that were counted as 1
};
Flops flops_of(const Program& program);

// ---- files that are not read further here --------------------------------------------------------------------------

// A TorchScript archive, as far as it can be known without libtorch.
struct ScriptFile {
  std::string root;                     // of the archive
  Digest code;                          // of the code and the structure, whatever the weights
  std::vector<std::string> code_files;  // "__torch__.py"
  int64_t tensors = 0;
  uint64_t tensor_bytes = 0;
};
ScriptFile read_script_file(const std::string& path);  // throws Error

// What a shared object says it was built for, from the section ".sinew_library" of its file: nothing of it runs. Names
// and values by line ("torch" -> "2.13.0"); empty: it says nothing. Throws Error for what is no ELF file.
std::map<std::string, std::string> read_library_stamp(const std::string& path);

// ---- writing back --------------------------------------------------------------------------------------------------

// A new value for one tensor of the program.
struct Replacement {
  std::string name;  // as in Program::weights (constants never change)
  const Array* array = nullptr;
};

// Writes `program`'s file anew at `to`, appearing whole or not at all, with these tensors in place of its own; the rest
// byte for byte. Tensors that share a file are written into it by their strides and offset; replacements that disagree
// where they overlap, or whose dtype or shape is another, throw Error.
void write_program(const Program& program, const std::vector<Replacement>& replacements, const std::string& to);

}  // namespace sinew::program
