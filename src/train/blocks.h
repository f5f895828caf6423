// Divides tensors into the fixed blocks over which sums, norms and updates run. Private to train/.
//
// The blocks depend only on the sizes of the tensors. The results therefore do not depend on the number of lanes or on
// which lane handles a block.
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
  struct Group {  // blocks [first, last), about one full block together, so that small tensors share a call
    size_t first = 0, last = 0;
  };
  std::vector<Group> groups;
  bool empty() const { return blocks.empty(); }
};

inline constexpr int64_t kBlockElements = 16384;

Blocks make_blocks(const std::vector<torch::Tensor>& tensors);

// Returns a view of the tensor's memory with one dimension. The tensor must be dense; its dimensions may have any
// order.
torch::Tensor flat(const torch::Tensor& tensor);

}  // namespace sinew::train
