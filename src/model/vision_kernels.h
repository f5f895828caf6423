// Kernels for images that take the place of slow ones of libtorch on the CPU. Private to model/.
//
// They are replaced in the dispatcher, so every model uses them: those of Sinew, TorchScript and .pt2 programs. What a
// kernel here does not cover goes to the kernel of libtorch. Each has the same bits on every processor, on any thread.
#pragma once

#include <torch/library.h>

namespace sinew::model {

// - max_pool2d_with_indices with windows of 2x2 (contiguous float32 and bfloat16): the same bits as libtorch's kernel
//   (but for those of a NaN), whose branches a processor cannot predict; it takes more than ten times as long.
// - native_batch_norm in training mode (contiguous float32): the statistics are sums in float64 in a fixed order, which
//   rounds no more than libtorch's kernel does.
void install_vision_kernels(torch::Library& library);

}  // namespace sinew::model
