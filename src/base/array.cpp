#include "base/array.h"

#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#include "base/check.h"

namespace sinew {

size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::boolean:
    case DType::u8:
    case DType::i8: return 1;
    case DType::i16:
    case DType::f16:
    case DType::bf16: return 2;
    case DType::i32:
    case DType::f32: return 4;
    case DType::i64:
    case DType::f64: return 8;
  }
  SINEW_CHECK(false, static_cast<int>(dtype));
}

std::string_view name_of(DType dtype) {
  constexpr std::string_view kNames[] = {"bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"};
  return kNames[static_cast<size_t>(dtype)];
}

Buffer::Buffer(size_t size) : size_(size) {
  if (size > SIZE_MAX - kAlignment) throw std::bad_alloc();  // rounding up would wrap around
  const size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
  auto* bytes = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded));
  if (bytes == nullptr) throw std::bad_alloc();
  bytes_.reset(bytes);
}

void Buffer::Free::operator()(std::byte* bytes) const {
  std::free(bytes);
}

int64_t element_count(std::span<const int64_t> shape) {
  int64_t count = 1;
  bool empty = false, fits = true;
  for (const int64_t size : shape) {
    if (size < 0) throw std::bad_array_new_length();
    empty = empty || size == 0;
    fits = fits && !__builtin_mul_overflow(count, size, &count);
  }
  if (empty) return 0;  // also if the other sizes alone would be too many
  if (!fits) throw std::bad_array_new_length();
  return count;
}

namespace {
size_t byte_count(DType type, std::span<const int64_t> shape) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<size_t>(element_count(shape)), size_of(type), &bytes))
    throw std::bad_array_new_length();
  return bytes;
}
}  // namespace

Array::Array(DType type, Shape dims) : dtype(type), shape(std::move(dims)), bytes(byte_count(type, shape)) {}

}  // namespace sinew
