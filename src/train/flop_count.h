// Counts the floating-point operations of tensor products and convolutions, whatever model makes them. Private to
// train/.
#pragma once

#include <functional>

namespace sinew::train {

// Returns the operations of all products that `work` computes on the calling thread, forward and backward: a multiply
// and an add count as two, as usual. Elementwise operators are not counted; they are limited by memory.
double flops_of(const std::function<void()>& work);

}  // namespace sinew::train
