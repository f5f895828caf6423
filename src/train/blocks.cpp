#include "train/blocks.h"

#include <algorithm>

#include "base/check.h"

namespace sinew::train {

Blocks make_blocks(const std::vector<torch::Tensor>& tensors) {
  Blocks result;
  int64_t in_group = 0;
  for (size_t p = 0; p < tensors.size(); ++p) {
    for (int64_t begin = 0; begin < tensors[p].numel(); begin += kBlockElements) {
      const int64_t end = std::min(begin + kBlockElements, tensors[p].numel());
      if (result.groups.empty() || in_group + (end - begin) > kBlockElements) {
        result.groups.push_back({result.blocks.size(), result.blocks.size()});
        in_group = 0;
      }
      result.blocks.push_back({p, begin, end});
      result.groups.back().last = result.blocks.size();
      in_group += end - begin;
    }
  }
  return result;
}

torch::Tensor flat(const torch::Tensor& tensor) {
  SINEW_CHECK(tensor.is_non_overlapping_and_dense(), tensor.sizes(), tensor.strides());
  return tensor.as_strided({tensor.numel()}, {1});
}

}  // namespace sinew::train
