// Inside train/: the fixed pieces that sums, norms, updates and digests go over.
//
// Pieces are a function of the parameters' sizes alone. Which lane handles a piece can then never matter, nor how many
// lanes there are.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

namespace sinew::train {

struct Block {  // elements [begin, end) of one tensor, in memory order
  size_t parameter = 0;
  int64_t begin = 0, end = 0;
};

struct Blocks {
  std::vector<Block> blocks;
  struct Group {  // blocks [first, last): about one block's worth of elements, so that small tensors share a call
    size_t first = 0, last = 0;
  };
  std::vector<Group> groups;
  bool empty() const { return blocks.empty(); }
};

inline constexpr int64_t kBlockElements = 16384;

Blocks make_blocks(const std::vector<torch::Tensor>& tensors);

// A tensor's memory as one dimension; the tensor must be dense (any order of dimensions).
torch::Tensor flat(const torch::Tensor& tensor);

}  // namespace sinew::train
