// Encodes numbers, bits and texts as bytes, and decodes them. Private to group/.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "link/link.h"

namespace sinew::group {

class ByteWriter {
 public:
  void byte(uint8_t value) { bytes_.push_back(std::byte{value}); }
  void number(uint64_t value) { append(&value, sizeof value); }
  void number(int64_t value) { append(&value, sizeof value); }
  void bits(const std::vector<bool>& bits) {  // the reader must know the number of bits
    const size_t at = bytes_.size();
    bytes_.resize(at + (bits.size() + 7) / 8, std::byte{0});
    for (size_t i = 0; i < bits.size(); ++i) {
      if (bits[i]) bytes_[at + i / 8] |= std::byte{1} << (i % 8);
    }
  }
  void text(std::string_view text) {
    number(static_cast<uint64_t>(text.size()));
    append(text.data(), text.size());
  }
  link::Bytes take() { return std::move(bytes_); }

 private:
  void append(const void* data, size_t size) {
    const size_t at = bytes_.size();
    bytes_.resize(at + size);
    if (size > 0) std::memcpy(bytes_.data() + at, data, size);
  }
  link::Bytes bytes_;
};

// Reads bytes from a peer. After the end, it returns 0 or empty values, and good() is false.
class ByteReader {
 public:
  explicit ByteReader(const link::Bytes& bytes) : bytes_(bytes) {}

  uint8_t byte() {
    uint8_t value = 0;
    take(&value, 1);
    return value;
  }
  bool truth() {
    const uint8_t value = byte();
    good_ = good_ && value <= 1;
    return value == 1;
  }
  template <typename Enum>
  Enum one_of(uint8_t last) {  // the values are 0 to `last`
    const uint8_t value = byte();
    good_ = good_ && value <= last;
    return good_ ? static_cast<Enum>(value) : Enum();
  }
  uint64_t number() {
    uint64_t value = 0;
    take(&value, sizeof value);
    return value;
  }
  int64_t whole(int64_t low, int64_t high) {
    const auto value = static_cast<int64_t>(number());
    good_ = good_ && value >= low && value <= high;
    return good_ ? value : low;
  }
  std::vector<bool> bits(size_t count) {
    if (count / 8 > left()) good_ = false;
    if (!good_) return {};
    std::vector<bool> bits(count);
    const size_t begin = at_, size = (count + 7) / 8;
    if (!skip(size)) return {};
    for (size_t i = 0; i < count; ++i) bits[i] = (bytes_[begin + i / 8] >> (i % 8) & std::byte{1}) != std::byte{0};
    if (count % 8 != 0) good_ = good_ && (bytes_[begin + size - 1] >> (count % 8)) == std::byte{0};
    return bits;
  }
  std::string text() {
    const uint64_t size = number();
    if (size > left()) good_ = false;
    if (!good_) return {};
    std::string text(size, '\0');
    take(text.data(), size);
    return text;
  }
  size_t at() const { return at_; }
  size_t left() const { return bytes_.size() - at_; }
  bool good() const { return good_; }
  bool ended() const { return good_ && left() == 0; }

 private:
  bool skip(size_t size) {
    if (!good_ || size > left()) return good_ = false;
    at_ += size;
    return true;
  }
  void take(void* data, size_t size) {
    const size_t begin = at_;
    if (skip(size) && size > 0) std::memcpy(data, bytes_.data() + begin, size);
  }
  const link::Bytes& bytes_;
  size_t at_ = 0;
  bool good_ = true;
};

}  // namespace sinew::group
