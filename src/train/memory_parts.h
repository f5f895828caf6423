// Inside train/: the memory of tensors in parts, so that each step can look at one part of it at little cost.
//
// A part has at least kLeastBytes, and there are at most kMostParts parts, so the whole memory is looked at within
// kMostParts steps. The parts depend only on the sizes of the tensors. The order of bytes is that of the memory, which
// is the same on all members of a run.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "base/hash.h"

namespace sinew::train {

class MemoryParts {
 public:
  static constexpr int64_t kLeastBytes = 8 << 10, kMostParts = 64;

  // Keeps the tensors, which must stay where they are. Undefined and empty tensors are left out.
  void add(const torch::Tensor& tensor);

  int64_t bytes() const { return bytes_; }
  int64_t count() const;  // of parts; at least 1
  Digest digest(int64_t part) const;
  Digest digest() const;  // of all parts

 private:
  struct Piece {
    torch::Tensor tensor;  // its memory is dense
    int64_t begin = 0;     // in the bytes of all tensors
  };
  std::vector<Piece> pieces_;
  int64_t bytes_ = 0;
};

}  // namespace sinew::train
