// Arrays of numbers without a tensor library. data/ produces them, checkpoint/ stores them, and train/ makes tensors
// from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace sinew {

enum class DType : uint8_t { boolean, u8, i8, i16, i32, i64, f16, bf16, f32, f64 };

size_t size_of(DType dtype);            // bytes of one element
std::string_view name_of(DType dtype);  // "f32"

// Memory that begins at a multiple of 64 bytes. Its content is undefined at first. It can be moved, but not copied. The
// alignment speeds up vector loads. It also keeps results reproducible: a library may choose its code path by the
// alignment of an address.
class Buffer {
 public:
  static constexpr size_t kAlignment = 64;
  Buffer() = default;
  explicit Buffer(size_t size);  // throws std::bad_alloc if there is not that much memory
  std::byte* data() { return bytes_.get(); }
  const std::byte* data() const { return bytes_.get(); }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const;
  };
  std::unique_ptr<std::byte[], Free> bytes_;
  size_t size_ = 0;
};

using Shape = std::vector<int64_t>;
// Returns the product of the sizes; 1 for a scalar. Throws std::bad_array_new_length, which is a std::bad_alloc, if a
// size is negative or the product is too large: a count that wrapped around would be the size of too small a buffer.
int64_t element_count(std::span<const int64_t> shape);

// A dense array in C order.
struct Array {
  DType dtype = DType::f32;
  Shape shape;
  Buffer bytes;

  Array() = default;
  Array(DType type, Shape dims);  // throws as element_count does, also if the number of bytes is too large
  int64_t count() const { return element_count(shape); }
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(bytes.data());
  }
  template <typename T>
  const T* as() const {
    return reinterpret_cast<const T*>(bytes.data());
  }
};

}  // namespace sinew
