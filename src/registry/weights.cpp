#include "registry/weights.h"

#include <cstring>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "registry/file_digests.h"
#include "registry/run_files.h"

namespace sinew::registry {
namespace {

constexpr const char* kNotChecked = "not checked";

// A number is infinite or NaN if all bits of its exponent are set.
template <typename Bits>
bool all_finite(const std::byte* bytes, size_t size, Bits exponent) {
  bool finite = true;
  for (size_t i = 0; i + sizeof(Bits) <= size; i += sizeof(Bits)) {
    Bits word = 0;
    std::memcpy(&word, bytes + i, sizeof word);
    finite &= (word & exponent) != exponent;
  }
  return finite;
}

bool all_finite(DType dtype, const std::vector<std::byte>& bytes, size_t size) {
  switch (dtype) {
    case DType::f16: return all_finite<uint16_t>(bytes.data(), size, 0x7C00);
    case DType::bf16: return all_finite<uint16_t>(bytes.data(), size, 0x7F80);
    case DType::f32: return all_finite<uint32_t>(bytes.data(), size, 0x7F800000);
    case DType::f64: return all_finite<uint64_t>(bytes.data(), size, 0x7FF0000000000000);
    default: return true;
  }
}

enum class Values { finite, not_finite, cut_off };

// Returns cut_off if the file has become shorter since its index was read, so that it ends inside the tensor.
Values values_of(Disk& disk, const std::string& path, const checkpoint::SafetensorsIndex& index,
                 const checkpoint::TensorEntry& tensor, std::vector<std::byte>& buffer) {
  for (uint64_t at = tensor.begin; at < tensor.end;) {
    const auto want = static_cast<size_t>(std::min<uint64_t>(buffer.size(), tensor.end - at));
    const size_t got = disk.read_at(path, index.data_offset + at, std::span(buffer).first(want));
    if (got < want) return Values::cut_off;
    if (!all_finite(tensor.dtype, buffer, got)) return Values::not_finite;
    at += got;
  }
  return Values::finite;
}

}  // namespace

WeightsCheck check_weights(Disk& disk, const std::string& path) {
  try {
    const auto index = checkpoint::read_safetensors_index(disk, path);
    if (!index) return {clean_text(index.error(), 1000), kNotChecked};
    std::vector<std::byte> buffer(kReadBytes);
    for (const checkpoint::TensorEntry& tensor : index->tensors) {
      const Values values = values_of(disk, path, *index, tensor, buffer);
      if (values == Values::cut_off) {
        return {clean_text("the file became shorter while it was read; it ends inside " + tensor.name, 1000),
                kNotChecked};
      }
      if (values == Values::not_finite)
        return {"passed", clean_text("a value of " + tensor.name + " is infinite or NaN", 1000)};
    }
    return {"passed", "passed"};
  } catch (const Error& error) {
    return {clean_text(error.what(), 1000), kNotChecked};
  }
}

}  // namespace sinew::registry
