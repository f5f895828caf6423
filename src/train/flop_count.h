// Counts what operators do: floating-point operations, bytes and calls, whatever model makes them. Private to train/.
#pragma once

#include <functional>
#include <vector>

#include "advise/advise.h"

namespace sinew::train {

struct OperatorWork {
  // Of tensor products and convolutions; a multiply and an add count as two, as usual. Elementwise operators are not
  // counted; they are limited by memory.
  double flops = 0;
  double bytes = 0;  // that operators read and write, as if no cache kept anything; a view moves nothing
  double calls = 0;  // of operators that move something
};

// Returns what `work` computes on the calling thread, forward and backward.
OperatorWork work_of(const std::function<void()>& work);

// What the operators took that `work` calls on the calling thread, the longest first. Observing a call takes about
// 1 us, so small operators seem longer than they are.
std::vector<advise::OperatorUse> operators_of(const std::function<void()>& work);

}  // namespace sinew::train
