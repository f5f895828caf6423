// Counts what operators do: floating-point operations, bytes and calls, whatever model makes them. Private to train/.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
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

// Names what a call of an operator counts for. `caller`: the name of the operator that calls it, or "". A product is a
// matrix product or a convolution.
using NameCall = std::function<std::string(const at::RecordFunction& call, const std::string& caller, bool is_product)>;
// "relu 2x4x10x8": the operator and the sizes of its first tensors, at most `most` of them.
std::string name_with_sizes(const at::RecordFunction& call, size_t most);
// Calls `visit` for each tensor that has memory, also in a list.
void visit_tensors(const c10::IValue& value, const std::function<void(const at::Tensor&)>& visit);

// Counts what operators do, by the name that `name` gives them.
class OperatorCount {
 public:
  explicit OperatorCount(NameCall name) : name_(std::move(name)) {}
  // Counts what `work` computes on the calling thread, in addition to all before.
  void observe(const std::function<void()>& work);
  const std::map<std::string, advise::OperatorUse>& uses() const { return uses_; }

 private:
  NameCall name_;
  std::map<std::string, advise::OperatorUse> uses_;
};

// What the operators took that `work` calls on the calling thread, the longest first. Observing a call takes about
// 1 us, so small operators seem longer than they are.
std::vector<advise::OperatorUse> operators_of(const std::function<void()>& work);

}  // namespace sinew::train
