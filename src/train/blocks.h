// Inside train/: the fixed pieces over which sums, norms, updates and digests run.
//
// The pieces are a function of the parameters' sizes alone. The result therefore does not depend on the number of lanes
// or on which lane handles a piece.
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
  struct Group {  // blocks [first, last), together about one full block, so that small tensors share a call
    size_t first = 0, last = 0;
  };
  std::vector<Group> groups;
  bool empty() const { return blocks.empty(); }
};

inline constexpr int64_t kBlockElements = 16384;

Blocks make_blocks(const std::vector<torch::Tensor>& tensors);

// The memory of a tensor as one dimension. The tensor must be dense; its dimensions may have any order.
torch::Tensor flat(const torch::Tensor& tensor);

}  // namespace sinew::train
