#include "train/memory_parts.h"

#include <algorithm>

#include "base/check.h"

namespace sinew::train {
namespace {

// Adds bytes [begin, end) of the tensor's memory.
void update(DigestStream& stream, const torch::Tensor& tensor, int64_t begin, int64_t end) {
  const auto* bytes = static_cast<const std::byte*>(tensor.const_data_ptr());
  stream.update(std::span(bytes + begin, static_cast<size_t>(end - begin)));
}

}  // namespace

void MemoryParts::add(const torch::Tensor& tensor) {
  if (!tensor.defined() || tensor.numel() == 0) return;
  SINEW_CHECK(tensor.is_non_overlapping_and_dense(), tensor.sizes(), tensor.strides());
  pieces_.push_back({tensor, bytes_});
  bytes_ += static_cast<int64_t>(tensor.nbytes());
}

int64_t MemoryParts::count() const {
  return std::clamp<int64_t>((bytes_ + kLeastBytes - 1) / kLeastBytes, 1, kMostParts);
}

Digest MemoryParts::digest(int64_t part) const {
  SINEW_CHECK(part >= 0 && part < count(), part, count());
  // bytes * part would overflow only above 2^57 bytes
  const int64_t begin = bytes_ * part / count(), end = bytes_ * (part + 1) / count();
  DigestStream stream;
  auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), begin,
                                [](int64_t at, const Piece& one) { return at < one.begin; });
  if (piece != pieces_.begin()) --piece;
  for (; piece != pieces_.end() && piece->begin < end; ++piece) {
    const int64_t first = std::max(begin - piece->begin, int64_t{0});
    const int64_t last = std::min(end - piece->begin, static_cast<int64_t>(piece->tensor.nbytes()));
    if (first < last) update(stream, piece->tensor, first, last);
  }
  return stream.digest();
}

Digest MemoryParts::digest() const {
  std::vector<Digest> parts;
  for (int64_t part = 0; part < count(); ++part) parts.push_back(digest(part));
  return digest_of(parts);
}

}  // namespace sinew::train
