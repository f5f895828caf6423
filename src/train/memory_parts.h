// Divides the memory of tensors into parts, so that each step can look at one part at little cost. Private to train/.
//
// A part has about kLeastBytes. Memory that would have more than kMostParts such parts has kMostParts larger ones, so
// that kMostParts steps look at all of it. The parts depend only on the sizes of the tensors. Bytes have the order that
// they have in memory, which is the same on all members of a run.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "base/hash.h"

namespace sinew::train {

class MemoryParts {
 public:
  static constexpr int64_t kLeastBytes = 4 << 10, kMostParts = 128;

  // Keeps the tensor, whose memory must not move. Ignores an undefined or empty tensor.
  void add(const torch::Tensor& tensor);

  int64_t bytes() const { return bytes_; }
  int64_t count() const;  // number of parts; at least 1
  Digest digest(int64_t part) const;
  Digest digest() const;  // the digest of all parts

 private:
  struct Piece {
    torch::Tensor tensor;  // its memory is dense
    int64_t begin = 0;     // where its bytes begin in those of all tensors
  };
  std::vector<Piece> pieces_;
  int64_t bytes_ = 0;
};

}  // namespace sinew::train
