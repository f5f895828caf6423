// Writes the messages of onnx.proto3.
#include <bit>
#include <cstring>

#include "base/error.h"
#include "onnx/onnx.h"

namespace sinew::onnx {
namespace {

constexpr size_t kMostBytes = (size_t{1} << 31) - 1;

// The numbers of AttributeProto.AttributeType, in the order of AttributeValue.
constexpr int64_t kAttributeTypes[] = {2, 1, 3, 7, 6, 8};

// One message of protobuf (https://protobuf.dev/programming-guides/encoding).
class Message {
 public:
  Message& number(int field, int64_t value) {
    key(field, 0);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& text(int field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(int field, const Message& inner) { return text(field, inner.bytes_); }
  Message& real(int field, float value) {
    key(field, 5);
    put_real(value);
    return *this;
  }
  // Repeated numbers are packed into one field.
  Message& numbers(int field, const std::vector<int64_t>& values) {
    Message packed;
    for (const int64_t value : values) packed.varint(static_cast<uint64_t>(value));
    return message(field, packed);
  }
  Message& reals(int field, const std::vector<float>& values) {
    Message packed;
    for (const float value : values) packed.put_real(value);
    return message(field, packed);
  }
  std::string take() { return std::move(bytes_); }

 private:
  void key(int field, int wire_type) { varint(static_cast<uint64_t>(field << 3 | wire_type)); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  void put_real(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes_ += static_cast<char>(bits >> shift);
  }

  std::string bytes_;
};

Message tensor_message(const std::string& name, const Constant& constant) {
  Message tensor;
  tensor.numbers(1, constant.shape).number(2, static_cast<int64_t>(constant.element));
  for (const std::string& text : constant.texts) tensor.text(6, text);
  tensor.text(8, name);
  if (constant.element != Element::text) tensor.text(9, constant.bytes);
  return tensor;
}

Message attribute_message(const Attribute& attribute) {
  Message message;
  message.text(1, attribute.name);
  struct Put {
    Message& to;
    void operator()(int64_t value) const { to.number(3, value); }
    void operator()(float value) const { to.real(2, value); }
    void operator()(const std::string& value) const { to.text(4, value); }
    void operator()(const std::vector<int64_t>& values) const { to.numbers(8, values); }
    void operator()(const std::vector<float>& values) const { to.reals(7, values); }
    void operator()(const std::vector<std::string>& values) const {
      for (const std::string& value : values) to.text(9, value);
    }
  };
  std::visit(Put{message}, attribute.value);
  message.number(20, kAttributeTypes[attribute.value.index()]);
  return message;
}

Message node_message(const Node& node) {
  Message message;
  for (const std::string& input : node.inputs) message.text(1, input);
  for (const std::string& output : node.outputs) message.text(2, output);
  message.text(3, node.outputs.front()).text(4, node.op);
  for (const Attribute& attribute : node.attributes) message.message(5, attribute_message(attribute));
  if (!node.domain.empty()) message.text(7, node.domain);
  return message;
}

Message port_message(const Port& port) {
  Message shape, tensor, type, message;
  shape.message(1, Message().text(2, "batch"));
  for (const int64_t size : port.sample) shape.message(1, Message().number(1, size));
  tensor.number(1, static_cast<int64_t>(port.element)).message(2, shape);
  type.message(1, tensor);
  message.text(1, port.name).message(2, type);
  if (!port.help.empty()) message.text(3, port.help);
  return message;
}

Message opset_message(const char* domain, int64_t version) {
  Message message;
  return message.text(1, domain).number(2, version);
}

}  // namespace

std::string bytes_of(const Model& model) {
  size_t total = 0;
  for (const auto& [name, constant] : model.constants) total += constant.bytes.size();
  if (total > kMostBytes)
    throw Error("EXPORT_TOO_LARGE", "the weights are larger than the 2 GiB that an ONNX file can hold",
                "export safetensors: --to safetensors");
  Message graph;
  bool ml = false;
  for (const Node& node : model.nodes) {
    graph.message(1, node_message(node));
    ml = ml || node.domain == kMlDomain;
  }
  graph.text(2, model.name);
  for (const auto& [name, constant] : model.constants) graph.message(5, tensor_message(name, constant));
  for (const Port& port : model.inputs) graph.message(11, port_message(port));
  for (const Port& port : model.outputs) graph.message(12, port_message(port));
  Message file;
  file.number(1, kIrVersion).text(2, "sinew").text(6, model.help).message(7, graph);
  file.message(8, opset_message("", kOpset));
  if (ml) file.message(8, opset_message(kMlDomain, kMlOpset));
  for (const auto& [key, value] : model.metadata) file.message(14, Message().text(1, key).text(2, value));
  return file.take();
}

}  // namespace sinew::onnx
