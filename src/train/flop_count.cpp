#include "train/flop_count.h"

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <string_view>

namespace sinew::train {
namespace {

thread_local double counted = 0;

std::vector<int64_t> sizes_at(c10::ArrayRef<const c10::IValue> inputs, size_t index) {
  if (index >= inputs.size() || !inputs[index].isTensor() || !inputs[index].toTensor().defined()) return {};
  return inputs[index].toTensor().sizes().vec();
}

// [..., n, k] times [..., k, m]: 2 n k m for each matrix of the batch
double product(const std::vector<int64_t>& left, const std::vector<int64_t>& right) {
  if (left.size() < 2 || right.empty()) return 0;
  double flops = 2.0 * static_cast<double>(right.back());
  for (const int64_t size : left) flops *= static_cast<double>(size);
  return flops;
}

// Each output element takes a product with the weights of its output channel.
double convolution(const std::vector<int64_t>& output, const std::vector<int64_t>& weight, bool transposed) {
  if (output.size() < 3 || weight.size() != output.size()) return 0;
  double flops = 2.0 * static_cast<double>(transposed ? weight[0] : weight[1]);
  for (size_t i = 2; i < weight.size(); ++i) flops *= static_cast<double>(weight[i]);
  for (const int64_t size : output) flops *= static_cast<double>(size);
  return flops;
}

// The size of a convolution's output follows from its gradient in the backward pass, and is computed in the forward
// pass: (input + 2 padding - dilation (kernel - 1) - 1) / stride + 1.
std::vector<int64_t> convolved(c10::ArrayRef<const c10::IValue> inputs) {
  std::vector<int64_t> input = sizes_at(inputs, 0);
  const std::vector<int64_t> weight = sizes_at(inputs, 1);
  if (inputs.size() < 7 || input.size() < 3 || weight.size() != input.size()) return {};
  const auto list = [&](size_t index, size_t i) {
    if (!inputs[index].isIntList()) return int64_t{index == 4 ? 0 : 1};
    const auto values = inputs[index].toIntVector();
    return values.empty() ? int64_t{index == 4 ? 0 : 1} : values[std::min(i, values.size() - 1)];
  };
  if (inputs[6].isBool() && inputs[6].toBool()) return {};  // transposed: counted by its input
  for (size_t i = 2; i < input.size(); ++i) {
    const int64_t reach = list(5, i - 2) * (weight[i] - 1) + 1;
    input[i] = (input[i] + 2 * list(4, i - 2) - reach) / list(3, i - 2) + 1;
  }
  input[1] = weight[0];
  return input;
}

double flops_of_call(std::string_view name, c10::ArrayRef<const c10::IValue> inputs) {
  if (name == "aten::mm" || name == "aten::bmm") return product(sizes_at(inputs, 0), sizes_at(inputs, 1));
  if (name == "aten::addmm" || name == "aten::baddbmm") return product(sizes_at(inputs, 1), sizes_at(inputs, 2));
  if (name == "aten::mv" || name == "aten::dot") {
    double flops = 2;
    for (const int64_t size : sizes_at(inputs, 0)) flops *= static_cast<double>(size);
    return flops;
  }
  if (name == "aten::convolution") {
    const bool transposed = inputs.size() > 6 && inputs[6].isBool() && inputs[6].toBool();
    if (transposed) return convolution(sizes_at(inputs, 0), sizes_at(inputs, 1), true);
    return convolution(convolved(inputs), sizes_at(inputs, 1), false);
  }
  if (name == "aten::convolution_backward") {  // (gradient, input, weight, ..., mask): one product for each gradient
    double products = 0;
    for (const c10::IValue& value : inputs) {
      if (!value.isBoolList()) continue;
      const auto mask = value.toBoolList();
      products = (mask.size() > 0 && mask.get(0) ? 1 : 0) + (mask.size() > 1 && mask.get(1) ? 1 : 0);
    }
    return products * convolution(sizes_at(inputs, 0), sizes_at(inputs, 2), false);
  }
  return 0;
}

std::unique_ptr<at::ObserverContext> count(const at::RecordFunction& call) {
  counted += flops_of_call(call.name(), call.inputs());
  return nullptr;
}

}  // namespace

double flops_of(const std::function<void()>& work) {
  counted = 0;
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(count).needsInputs(true).scopes(
      {at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  try {
    work();
  } catch (...) {
    at::removeCallback(handle);
    throw;
  }
  at::removeCallback(handle);
  return counted;
}

}  // namespace sinew::train
