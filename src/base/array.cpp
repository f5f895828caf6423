#include "base/array.h"

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
  for (const int64_t size : shape) count *= size;
  return count;
}

Array::Array(DType type, Shape dims)
    : dtype(type), shape(std::move(dims)), bytes(static_cast<size_t>(element_count(shape)) * size_of(type)) {}

}  // namespace sinew
