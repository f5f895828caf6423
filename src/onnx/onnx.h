// Writes ONNX models: graphs of standard operators that other programs run, such as onnxruntime.
//
// exports/ builds the graphs. This code needs no tensor library and no protobuf: it writes the few messages that a
// model needs. The numbers of the fields are those of onnx.proto3 (IR version 8, operators of opset 18 and of
// ai.onnx.ml 3), https://github.com/onnx/onnx/blob/v1.13.0/onnx/onnx.proto3
//
// table_inputs() adds the encoding of a table, so that a graph takes the columns of a file.
//
// Threads: all types are values; any thread may call any function.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/array.h"
#include "data/data.h"

namespace sinew::onnx {

inline constexpr int64_t kIrVersion = 8, kOpset = 18, kMlOpset = 3;
inline constexpr const char* kMlDomain = "ai.onnx.ml";

// The numbers of TensorProto.DataType.
enum class Element : int {
  f32 = 1,
  u8 = 2,
  i8 = 3,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  text = 8,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  bf16 = 16
};
Element element_of(DType dtype);
std::string_view name_of(Element element);  // as numpy names it: "uint8"; "string" for texts

// A constant of a graph, or a weight.
struct Constant {
  Element element = Element::f32;
  Shape shape;
  std::string bytes;               // the elements in C order, little endian; empty for texts
  std::vector<std::string> texts;  // the elements, if they are texts
};
Constant floats(const Shape& shape, const std::vector<float>& values);
Constant doubles(const Shape& shape, const std::vector<double>& values);
Constant integers(const Shape& shape, const std::vector<int64_t>& values);
Constant texts(const Shape& shape, std::vector<std::string> values);

using AttributeValue =
    std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>, std::vector<std::string>>;
struct Attribute {
  std::string name;
  AttributeValue value;
};

struct Node {
  std::string op, domain;  // the domain of standard operators is ""
  std::vector<std::string> inputs, outputs;
  std::vector<Attribute> attributes;
};

// An input or output of a graph. Its first dimension is the number of samples, "batch"; `sample` holds the others.
struct Port {
  std::string name;
  Element element = Element::f32;
  Shape sample;
  std::string help;  // what it holds
};

struct Model {
  std::string name, help;
  std::vector<Node> nodes;  // each uses only values that stand before it
  std::vector<std::pair<std::string, Constant>> constants;
  std::vector<Port> inputs, outputs;
  std::vector<std::pair<std::string, std::string>> metadata;
};

// Returns the bytes of the file. Throws Error if they would be more than the 2 GiB that protobuf allows.
std::string bytes_of(const Model& model);

// Adds nodes to a model and names the values between them. A name of its own is never the name of an input.
class Builder {
 public:
  explicit Builder(Model& model) : model_(model) {}
  // Returns the name of the value. Throws Error if there is an input of this name already.
  std::string input(const std::string& name, Element element, const Shape& sample, const std::string& help);
  std::string constant(Constant constant);
  std::string weight(const std::string& name, Constant constant);
  // Adds a node with one output and returns the output's name.
  std::string add(const std::string& op, std::vector<std::string> inputs, std::vector<Attribute> attributes = {},
                  const std::string& domain = "");
  std::string cast(const std::string& value, Element element);
  // Makes `value` an output. If an input has this name, appends "_" to it. Returns the name.
  std::string output(const std::string& name, const std::string& value, Element element, const Shape& sample,
                     const std::string& help);

 private:
  std::string fresh(const std::string& name);

  Model& model_;
  std::set<std::string> used_;
  int64_t count_ = 0;
};

// Adds an input for each column that a model of a table reads, and the nodes that encode these columns as
// data::encode_columns does. Returns the value that holds the model's input: float32 [batch, width]. Throws Error if a
// column cannot be encoded by standard operators.
std::string table_inputs(Builder& builder, const std::vector<data::PreparedColumn>& columns, int64_t width);

}  // namespace sinew::onnx
