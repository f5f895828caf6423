// Writes the messages of onnx.proto3.
#include "base/error.h"
#include "base/protobuf.h"
#include "onnx/onnx.h"

namespace sinew::onnx {
namespace {

using protobuf::Message;

constexpr size_t kMostBytes = (size_t{1} << 31) - 1;

// The numbers of AttributeProto.AttributeType, in the order of AttributeValue.
constexpr int64_t kAttributeTypes[] = {2, 1, 3, 7, 6, 8};

Message tensor_message(const std::string& name, const Constant& constant) {
  Message tensor;
  tensor.integers(1, constant.shape).integer(2, static_cast<int64_t>(constant.element));
  for (const std::string& text : constant.texts) tensor.bytes(6, text);
  tensor.bytes(8, name);
  if (constant.element != Element::text) tensor.bytes(9, constant.bytes);
  return tensor;
}

Message attribute_message(const Attribute& attribute) {
  Message message;
  message.bytes(1, attribute.name);
  struct Put {
    Message& to;
    void operator()(int64_t value) const { to.integer(3, value); }
    void operator()(float value) const { to.single(2, value); }
    void operator()(const std::string& value) const { to.bytes(4, value); }
    void operator()(const std::vector<int64_t>& values) const { to.integers(8, values); }
    void operator()(const std::vector<float>& values) const { to.singles(7, values); }
    void operator()(const std::vector<std::string>& values) const {
      for (const std::string& value : values) to.bytes(9, value);
    }
  };
  std::visit(Put{message}, attribute.value);
  message.integer(20, kAttributeTypes[attribute.value.index()]);
  return message;
}

Message node_message(const Node& node) {
  Message message;
  for (const std::string& input : node.inputs) message.bytes(1, input);
  for (const std::string& output : node.outputs) message.bytes(2, output);
  message.bytes(3, node.outputs.front()).bytes(4, node.op);
  for (const Attribute& attribute : node.attributes) message.message(5, attribute_message(attribute));
  if (!node.domain.empty()) message.bytes(7, node.domain);
  return message;
}

Message port_message(const Port& port) {
  Message shape, tensor, type, message;
  shape.message(1, Message().bytes(2, "batch"));
  for (const int64_t size : port.sample) shape.message(1, Message().integer(1, size));
  tensor.integer(1, static_cast<int64_t>(port.element)).message(2, shape);
  type.message(1, tensor);
  message.bytes(1, port.name).message(2, type);
  if (!port.help.empty()) message.bytes(3, port.help);
  return message;
}

Message opset_message(const char* domain, int64_t version) {
  Message message;
  return message.bytes(1, domain).integer(2, version);
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
  graph.bytes(2, model.name);
  for (const auto& [name, constant] : model.constants) graph.message(5, tensor_message(name, constant));
  for (const Port& port : model.inputs) graph.message(11, port_message(port));
  for (const Port& port : model.outputs) graph.message(12, port_message(port));
  Message file;
  file.integer(1, kIrVersion).bytes(2, "sinew").bytes(6, model.help).message(7, graph);
  file.message(8, opset_message("", kOpset));
  if (ml) file.message(8, opset_message(kMlDomain, kMlOpset));
  for (const auto& [key, value] : model.metadata) file.message(14, Message().bytes(1, key).bytes(2, value));
  return file.take();
}

}  // namespace sinew::onnx
