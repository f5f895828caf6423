// Reads and writes programs: the content of a `.pt2` file of torch.export, as plain data.
//
// model/ runs programs, cli/ shows them (`sinew inspect`), and worker/ opens them. This code is the first to read a
// hostile file, so it uses no tensor library, and every reader can be fuzzed. read_program resolves every name: an
// argument refers to a value that an input or an earlier node of the same graph makes, and every weight lies inside its
// file. It does not check what operators do; model/ checks that an operator exists and takes such arguments.
//
// The format is a zip archive whose members are stored without compression:
//   <name>/archive_format "pt2", archive_version, byteorder "little"
//   <name>/models/model.json                             the graph (schema 8.x of torch/_export/serde/schema.py)
//   <name>/data/weights/model_weights_config.json        name -> file, dtype, sizes, strides, offset; weight_<n>
//   <name>/data/constants/model_constants_config.json    the same for constants
//
// A newer minor version of the schema may have added members to objects; the reader ignores them. In a version that it
// knows, the reader refuses unknown members. In any version, it refuses unknown kinds of arguments, dtypes and specs
// (docs/formats/pt2.md).
//
// Errors: every problem throws Error, which names the file and the place in it (member, and path inside its JSON).
// Threads: all types are values; any thread may call any function.
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

// These are the numbers of torch.export's schema, not those of c10; model/ maps them. read_program refuses unknown
// numbers.
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
std::string_view name_of(ScalarType type);       // the name in Python: "float32"
size_t size_of(ScalarType type);                 // bytes of an element
std::optional<DType> dtype_of(ScalarType type);  // nullopt: Sinew has no arrays of this type (complex, u16 ...)
enum class Layout : int { strided = 7 };         // the reader refuses other layouts
enum class MemoryFormat : int { contiguous = 1, channels_last = 2, channels_last_3d = 3, preserve = 4 };
struct Device {
  std::string type;  // "cpu", "cuda": the device of the export; the job decides which device it uses
  bool operator==(const Device&) const = default;
};

// One dimension of a tensor's shape: a number, or an expression of the program's symbols ("s77"). The hint is the value
// that the expression had in the example with which the model was exported.
struct Dim {
  std::optional<int64_t> fixed;
  // if the size is not fixed: the text in the file, such as "Symbol('s77', positive=True, integer=True)"
  std::string expression;
  std::string symbol;  // "s77" when the expression is a single symbol; else ""
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
  std::optional<TensorMeta> meta;  // for tensors that the file describes
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
struct OperatorName {  // as_operator in the schema
  std::string name;
  bool operator==(const OperatorName&) const = default;
};

// The kind of the elements of a list. An empty list has a kind too, because operators treat a list of tensors and a
// list of numbers differently.
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
struct Dictionary {  // as_string_to_argument in the schema; keeps the order of the file
  std::vector<NamedArgument> items;
};

struct Argument {
  std::variant<None, ValueRef, int64_t, double, bool, std::string, Complex, ScalarType, MemoryFormat, Layout, Device,
               OperatorName, List, Dictionary, std::shared_ptr<const Graph>>
      value;
};

struct NamedArgument {
  std::string name;  // the name in the operator's schema, which may be ""; in a dictionary, the key
  Argument value;
};

struct Node {
  std::string name;    // "linear_1"; if the file gives no name, the name of the first output
  std::string target;  // "torch.ops.aten.linear.default", "_operator.mul"
  std::vector<NamedArgument> inputs;
  // The values that the node makes. An unused output is None. If the operator returns a list, `outputs` is one List of
  // ValueRefs.
  std::vector<Argument> outputs;
  bool returns_list_of_one = false;  // is_hop_single_tensor_return in the schema; only for higher-order operators
  std::string where;                 // the innermost line of the user's own code: "model.py:17 in forward"; may be ""
  std::string module;                // "encoder.layers.0 (TransformerEncoderLayer)"; may be ""
};

// The nodes are in execution order.
struct Graph {
  std::vector<Value> values;
  std::vector<ValueId> inputs;    // in a subgraph: -1 for a constant argument, which the body has built in
  std::vector<Argument> outputs;  // ValueRef, None, or a number
  std::vector<Node> nodes;
  bool single_output = false;  // is_single_tensor_return: the body returns one tensor instead of a list of one
};

// ---- the program ---------------------------------------------------------------------------------------------------

// The structure of nested inputs or outputs. Programs take and return the leaves as a flat list (torch.utils._pytree,
// protocol 1).
struct Tree {
  enum class Kind : uint8_t { leaf, none, tuple, list, dict, named_tuple, other };
  Kind kind = Kind::leaf;
  // the keys of the children: a dict always has keys, other classes only if the file gives them
  std::vector<std::string> keys;
  std::vector<Tree> children;
};

struct InputSpec {
  enum class Kind : uint8_t { parameter, buffer, constant, user, user_constant /* None, 3, "mean" */ };
  Kind kind = Kind::user;
  ValueId value = -1;  // index into graph.values; -1: a user_constant has no value there
  std::string name;    // parameter, buffer, constant: the name in the module, "layers.0.weight"; user: "x", "batch.ids"
  bool persistent = true;  // only for buffers: true if the buffer is part of the state dict
  Argument constant;       // user_constant: its value, which the graph has built in
};

struct OutputSpec {
  enum class Kind : uint8_t { user, loss, buffer_mutation, parameter_mutation, input_mutation };
  Kind kind = Kind::user;
  Argument value;    // ValueRef, None or a number
  std::string name;  // mutations: the parameter, buffer or input; user: "", "logits", or "0.hidden" when nested
};

// A tensor in the archive: a view into one member. Several tensors may share a member (tied weights).
struct StoredTensor {
  std::string member;  // the full name of the archive's member: "net/data/weights/weight_3"
  ScalarType dtype = ScalarType::f32;
  Shape sizes, strides;
  int64_t offset = 0;  // where the tensor begins in the member, in elements
  bool is_parameter = false;
  // The range of the member's bytes in the file, and their CRC-32. With the checksum, read_tensor notices that the file
  // has changed since read_program.
  uint64_t begin = 0, member_bytes = 0;
  uint32_t checksum = 0;
};

struct SymbolRange {  // the values that a symbol may have, as the exporter proved
  std::optional<int64_t> min, max;
};

struct Program {
  std::string path;
  std::string root;  // the folder in the archive that holds all members: "net"
  std::string torch_version;
  std::array<int64_t, 2> schema_version{};
  Digest digest;  // the digest of models/model.json: the computation without the weights
  Graph graph;
  std::vector<InputSpec> inputs;  // one for each of graph.inputs and for each constant of the user, in order
  std::vector<OutputSpec> outputs;
  std::map<std::string, StoredTensor> weights;    // parameters and buffers, by name
  std::map<std::string, StoredTensor> constants;  // also buffers that are not persistent
  std::map<std::string, SymbolRange> ranges;      // the key is the symbol
  Tree input_tree, output_tree;                   // input_tree: (args, kwargs)
};

// Reads the file. Keeps the JSON (at most 256 MiB) and the program in memory; the weights stay in the file. Throws
// Error if the file is not valid.
Program read_program(const std::string& path);

// Returns the tensor as a dense array in C order, whatever its strides are. Throws Error if the file has changed or a
// checksum is wrong.
Array read_tensor(const Program& program, const StoredTensor& stored);

// Returns whether the two tensors have a byte of the archive in common. The answer is exact: two interleaved views
// share no byte.
bool share_bytes(const StoredTensor& a, const StoredTensor& b);

// Returns whether elements of one tensor may share memory, as those of an expanded tensor do.
bool may_repeat_elements(const Shape& sizes, const Shape& strides);

// ---- sizes ---------------------------------------------------------------------------------------------------------

// Knows for which sizes of its inputs a program was exported. The exporter followed the branches of the model's code
// for some sizes, so the graph may compute something else than the model for other sizes, without an error.
class InputSizes {
 public:
  explicit InputSizes(const Program& program);
  ~InputSizes();
  InputSizes(const InputSizes&) = delete;
  InputSizes& operator=(const InputSizes&) = delete;

  // Returns what does not fit, or "" if the program takes inputs of these shapes. `shapes` has one shape for each input
  // of kind user, in order; a size of -1 is not known yet. Solves the symbols from the sizes. Does not compare a size
  // whose expression it cannot compute.
  std::string problem(const std::vector<Shape>& shapes) const;

  struct Expression;

 private:
  struct Size {
    std::optional<int64_t> fixed;
    std::string text;                    // of the expression: "2*s39"
    std::vector<Expression> expression;  // empty, or one
  };
  struct Input {
    std::string name;
    bool described;  // false: the file does not give its shape
    std::vector<Size> sizes;
  };
  std::string range_problem(const std::string& symbol, int64_t value) const;

  std::vector<Input> inputs_;
  std::map<std::string, SymbolRange> ranges_;
};

// ---- cost ----------------------------------------------------------------------------------------------------------

// Counts the floating-point operations of the products in one forward pass: linear layers, matrix products,
// convolutions, attention, recurrent layers. A multiplication and an addition count as two. Other operators are cheap
// compared to these and do not count. Every symbol counts as 1. So if the batch size is the only symbol, the result is
// the cost of one sample.
struct Flops {
  double total = 0;
  std::map<std::string, double> by_operator;   // "aten.linear"
  std::map<std::string, int64_t> not_counted;  // products whose shapes the file does not give: operator -> nodes
  std::vector<std::string> symbols;            // the symbols that count as 1
};
Flops flops_of(const Program& program);

// ---- what a program holds, in words ---------------------------------------------------------------------------------

// A line for a user, such as {"input", "x", "float32 [s77, 1, 28, 28]"}. Names come from the file and may hold any
// character.
struct Fact {
  const char* what;
  std::string name, text;
};
// Inputs, outputs, sizes, parameters, buffers, operators and FLOPs, in this order.
std::vector<Fact> facts_of(const Program& program);
std::string grouped_digits(int64_t number);  // "1,234,567"

// ---- files of other formats ----------------------------------------------------------------------------------------

// The properties of a TorchScript archive that can be read without libtorch.
struct TorchScriptFile {
  std::string root;                     // the folder in the archive that holds all members
  Digest code;                          // the digest of the code and the structure, without the weights
  std::vector<std::string> code_files;  // "__torch__.py"
  int64_t tensors = 0;
  uint64_t tensor_bytes = 0;
};
TorchScriptFile read_torchscript_file(const std::string& path);  // throws Error
// Reads every byte of the archive. Throws Error if a checksum is wrong, so that libtorch never sees a damaged file.
void check_torchscript_file(const std::string& path);

// Returns the versions that a shared object was built for, by name ("torch" -> "2.13.0"). It reads them from the
// section ".sinew_library" of the file, so no code of the object runs. The result is empty if there is no such section.
// Throws Error if the file is not a shared object (ELF).
std::map<std::string, std::string> read_library_info(const std::string& path);

// ---- writing back --------------------------------------------------------------------------------------------------

// A new value for one tensor of the program.
struct Replacement {
  std::string name;  // as in Program::weights (constants never change)
  const Array* array = nullptr;
};

// Writes a copy of the program's file to `to`, with these tensors replaced and every other value the same. The copy
// appears whole or not at all. A tensor is written into its member by its strides and offset; several tensors may share
// a member. Throws Error if replacements disagree where they overlap, or if a replacement has another dtype or shape.
void write_program(const Program& program, const std::vector<Replacement>& replacements, const std::string& to);

}  // namespace sinew::program
