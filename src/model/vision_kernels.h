// A kernel for images that takes the place of a slow one of libtorch on the CPU. Private to model/.
//
// It is replaced in the dispatcher, so every model uses it: those of Sinew, TorchScript and .pt2 programs. What it does
// not cover goes to the kernel of libtorch. It has the same bits on every processor, on any thread.
#pragma once

#include <torch/library.h>

namespace sinew::model {

// max_pool2d_with_indices with windows of 2x2 (contiguous float32 and bfloat16): the same bits as libtorch's kernel
// (but for those of a NaN), whose branches a processor cannot predict; it takes more than ten times as long.
void install_vision_kernels(torch::Library& library);

}  // namespace sinew::model
