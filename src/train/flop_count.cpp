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

// Each element of `points` takes part in a product with weight[1:]: an output of a convolution, or an input of a
// transposed one.
double convolution(const std::vector<int64_t>& points, const std::vector<int64_t>& weight) {
  if (points.size() < 3 || weight.size() != points.size()) return 0;
  double flops = 2.0 * static_cast<double>(weight[1]);
  for (size_t i = 2; i < weight.size(); ++i) flops *= static_cast<double>(weight[i]);
  for (const int64_t size : points) flops *= static_cast<double>(size);
  return flops;
}

bool flag_at(c10::ArrayRef<const c10::IValue> inputs, size_t index) {
  return index < inputs.size() && inputs[index].isBool() && inputs[index].toBool();
}

// The size of a convolution's output: (input + 2 padding - dilation (kernel - 1) - 1) / stride + 1.
std::vector<int64_t> convolved(c10::ArrayRef<const c10::IValue> inputs) {
  std::vector<int64_t> output = sizes_at(inputs, 0);
  const std::vector<int64_t> weight = sizes_at(inputs, 1);
  if (inputs.size() < 7 || output.size() < 3 || weight.size() != output.size()) return {};
  const auto option = [&](size_t index, size_t i, int64_t usual) {
    const auto values = inputs[index].isIntList() ? inputs[index].toIntVector() : std::vector<int64_t>();
    return values.empty() ? usual : values[std::min(i, values.size() - 1)];
  };
  for (size_t i = 2; i < output.size(); ++i) {
    const int64_t stride = option(3, i - 2, 1), padding = option(4, i - 2, 0), dilation = option(5, i - 2, 1);
    output[i] = (output[i] + 2 * padding - dilation * (weight[i] - 1) - 1) / stride + 1;
  }
  output[1] = weight[0];
  return output;
}

// (gradient, input, weight, bias sizes, stride, padding, dilation, transposed, ..., mask): one product for each
// gradient that is wanted.
double convolution_backward(c10::ArrayRef<const c10::IValue> inputs) {
  double products = 0;
  for (const c10::IValue& value : inputs) {
    if (!value.isBoolList()) continue;
    const auto mask = value.toBoolList();
    products = (mask.size() > 0 && mask.get(0) ? 1 : 0) + (mask.size() > 1 && mask.get(1) ? 1 : 0);
  }
  return products * convolution(sizes_at(inputs, flag_at(inputs, 7) ? 1 : 0), sizes_at(inputs, 2));
}

// The scores and the values: two products of [L, E] and [S, E] for each head.
double attention(const std::vector<int64_t>& query, const std::vector<int64_t>& key) {
  if (query.size() < 2 || key.size() < 2) return 0;
  double flops = 4.0 * static_cast<double>(key[key.size() - 2]);
  for (const int64_t size : query) flops *= static_cast<double>(size);
  return flops;
}

// One layer and direction of an LSTM: input [T, N, in], weights [4 h, in] and [4 h, h].
double recurrent(const std::vector<int64_t>& input, const std::vector<int64_t>& from_input,
                 const std::vector<int64_t>& from_state) {
  if (input.size() != 3 || from_input.size() != 2 || from_state.size() != 2) return 0;
  const double weights = static_cast<double>(from_input[0] * from_input[1] + from_state[0] * from_state[1]);
  return 2.0 * static_cast<double>(input[0] * input[1]) * weights;
}

double flops_of_call(std::string_view name, c10::ArrayRef<const c10::IValue> inputs) {
  if (name == "aten::mm" || name == "aten::bmm") return product(sizes_at(inputs, 0), sizes_at(inputs, 1));
  if (name == "aten::addmm" || name == "aten::baddbmm") return product(sizes_at(inputs, 1), sizes_at(inputs, 2));
  if (name == "aten::mv" || name == "aten::dot") {
    double flops = 2;
    for (const int64_t size : sizes_at(inputs, 0)) flops *= static_cast<double>(size);
    return flops;
  }
  if (name == "aten::convolution")
    return convolution(flag_at(inputs, 6) ? sizes_at(inputs, 0) : convolved(inputs), sizes_at(inputs, 1));
  if (name == "aten::convolution_backward") return convolution_backward(inputs);
  if (name == "aten::_scaled_dot_product_flash_attention_for_cpu")
    return attention(sizes_at(inputs, 0), sizes_at(inputs, 1));
  if (name == "aten::_scaled_dot_product_flash_attention_for_cpu_backward")  // it computes the scores again
    return 2.5 * attention(sizes_at(inputs, 1), sizes_at(inputs, 2));
  if (name == "aten::mkldnn_rnn_layer") return recurrent(sizes_at(inputs, 0), sizes_at(inputs, 1), sizes_at(inputs, 2));
  if (name == "aten::mkldnn_rnn_layer_backward")
    return 2 * recurrent(sizes_at(inputs, 0), sizes_at(inputs, 1), sizes_at(inputs, 2));
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
