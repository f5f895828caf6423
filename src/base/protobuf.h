// Writes protocol buffers without a schema: the kinds of fields that the messages of TensorBoard and ONNX need
// (https://protobuf.dev/programming-guides/encoding).
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sinew::protobuf {

// A message under construction. Its fields appear in the order of the calls.
class Message {
 public:
  Message& integer(int field, int64_t value) {
    key(field, 0);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& real(int field, double value) {
    key(field, 1);
    fixed(&value, sizeof value);
    return *this;
  }
  Message& single(int field, float value) {
    key(field, 5);
    fixed(&value, sizeof value);
    return *this;
  }
  Message& bytes(int field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    wire_.append(value);
    return *this;
  }
  Message& message(int field, const Message& value) { return bytes(field, value.wire_); }
  // Repeated numbers, packed into one field.
  Message& integers(int field, const std::vector<int64_t>& values) {
    Message packed;
    for (const int64_t value : values) packed.varint(static_cast<uint64_t>(value));
    return message(field, packed);
  }
  Message& singles(int field, const std::vector<float>& values) {
    Message packed;
    packed.fixed(values.data(), values.size() * sizeof(float));
    return message(field, packed);
  }
  const std::string& wire() const { return wire_; }
  std::string take() { return std::move(wire_); }
  void clear() { wire_.clear(); }

 private:
  void key(int field, int kind) { varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(kind)); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) wire_.push_back(static_cast<char>((value & 0x7F) | 0x80));
    wire_.push_back(static_cast<char>(value));
  }
  void fixed(const void* value, size_t size) {  // assumes a little-endian machine
    const size_t end = wire_.size();
    wire_.resize(end + size);
    std::memcpy(wire_.data() + end, value, size);
  }

  std::string wire_;
};

}  // namespace sinew::protobuf
