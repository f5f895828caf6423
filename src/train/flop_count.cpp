#include "train/flop_count.h"

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/joined.h"

namespace sinew::train {
namespace {

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
  if (name == "aten::addmm" || name == "aten::baddbmm" || name == "aten::addbmm")
    return product(sizes_at(inputs, 1), sizes_at(inputs, 2));
  if (name == "aten::addmv") {
    double flops = 2;
    for (const int64_t size : sizes_at(inputs, 1)) flops *= static_cast<double>(size);
    return flops;
  }
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

}  // namespace

void visit_tensors(const c10::IValue& value, const std::function<void(const at::Tensor&)>& visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined() && value.toTensor().has_storage()) visit(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) {
      if (tensor.defined() && tensor.has_storage()) visit(tensor);
    }
  }
}

namespace {

double bytes_of(const c10::IValue& value) {
  double bytes = 0;
  visit_tensors(value, [&](const at::Tensor& tensor) { bytes += static_cast<double>(tensor.nbytes()); });
  return bytes;
}

// A call of an operator that has begun. Operators call others.
struct OpenCall : at::ObserverContext {
  OpenCall* caller = nullptr;
  advise::OperatorUse* product = nullptr;  // the use of the product that this call is, or is a part of
  bool others_move = false;                // an operator that it called moves bytes
  double began = 0, of_others = 0;         // seconds
  // The inputs are known only when a call begins.
  std::string name;
  std::vector<const void*> read;  // the memory of its inputs
  double bytes = 0;               // of its inputs
  double written_in_place = 0;    // bytes of the first input, if it is written
};

// What the operators of one thread do.
struct Profile {
  const NameCall& name;
  std::map<std::string, advise::OperatorUse>& uses;  // by name
  OpenCall* innermost = nullptr;
};
thread_local Profile* profile = nullptr;

}  // namespace

std::string name_with_sizes(const at::RecordFunction& call, size_t most) {
  std::string_view name = call.name();
  if (name.starts_with("aten::")) name.remove_prefix(6);
  std::string text(name);
  for (size_t i = 0, found = 0; i < call.inputs().size() && found < most; ++i) {
    const std::vector<int64_t> sizes = sizes_at(call.inputs(), i);
    if (sizes.empty()) continue;
    text += (found++ == 0 ? " " : " * ") + joined_numbers(sizes, "x");
  }
  return text;
}

namespace {

advise::OperatorUse& use_of(const std::string& name) {
  advise::OperatorUse& use = profile->uses[name];
  use.name = name;
  return use;
}

std::unique_ptr<at::ObserverContext> begin_call(const at::RecordFunction& call) {
  auto open = std::make_unique<OpenCall>();
  open->caller = profile->innermost;
  if (open->caller != nullptr) open->product = open->caller->product;
  const double flops = open->product == nullptr ? flops_of_call(call.name(), call.inputs()) : 0;
  open->name = profile->name(call, open->caller == nullptr ? "" : open->caller->name, flops > 0);
  if (flops > 0) {
    open->product = &use_of(open->name);
    open->product->flops += flops;
  }
  for (const c10::IValue& input : call.inputs()) {
    open->bytes += bytes_of(input);
    visit_tensors(input, [&](const at::Tensor& tensor) { open->read.push_back(tensor.storage().data()); });
  }
  if (std::string_view(call.name()).ends_with('_') && !call.inputs().empty())
    open->written_in_place = bytes_of(call.inputs()[0]);
  profile->innermost = open.get();
  open->began = system_clock().monotonic_seconds();
  return open;
}

// What a call reads and writes. A call whose outputs share the memory of its inputs is a view, which moves nothing,
// unless its name says that it writes into its first input. Making memory moves nothing either.
double bytes_of_call(const at::RecordFunction& call, const OpenCall& open) {
  const std::string_view name = call.name();
  if (name.starts_with("aten::empty") || name.starts_with("aten::new_empty")) return 0;
  double written = open.written_in_place;
  for (const c10::IValue& output : call.outputs()) {
    visit_tensors(output, [&](const at::Tensor& tensor) {
      if (std::ranges::find(open.read, tensor.storage().data()) == open.read.end())
        written += static_cast<double>(tensor.nbytes());
    });
  }
  return written > 0 ? open.bytes + written : 0;
}

// A product counts as a whole, whatever it calls. Of other operators, the innermost ones that move bytes count for
// them.
void end_call(const at::RecordFunction& call, at::ObserverContext* context) {
  const auto* open = static_cast<const OpenCall*>(context);
  const double seconds = system_clock().monotonic_seconds() - open->began;
  OpenCall* const caller = profile->innermost = open->caller;
  if (caller != nullptr) caller->of_others += seconds;
  if (open->product != nullptr && caller != nullptr && caller->product == open->product) return;  // a part of it
  const bool is_product = open->product != nullptr;
  const double bytes = open->others_move && !is_product ? 0 : bytes_of_call(call, *open);
  if (caller != nullptr) caller->others_move |= open->others_move || bytes > 0;
  if (!is_product && bytes <= 0 && seconds <= open->of_others) return;
  advise::OperatorUse& use = is_product ? *open->product : use_of(open->name);
  ++use.calls;
  use.seconds += is_product ? seconds : seconds - open->of_others;
  use.bytes += bytes;
  use.moving_calls += bytes > 0 ? 1 : 0;
}

}  // namespace

void OperatorCount::observe(const std::function<void()>& work) {
  Profile own{name_, uses_};
  Profile* const outer = std::exchange(profile, &own);
  const auto handle =
      at::addThreadLocalCallback(at::RecordFunctionCallback(begin_call, end_call)
                                     .needsInputs(true)
                                     .needsOutputs(true)
                                     .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  const auto end = std::shared_ptr<void>(nullptr, [handle, outer](void*) {
    at::removeCallback(handle);
    profile = outer;
  });
  work();
}

std::vector<advise::OperatorUse> operators_of(const std::function<void()>& work) {
  OperatorCount count([](const at::RecordFunction& call, const std::string&, bool is_product) {
    return name_with_sizes(call, is_product ? 2 : 1);
  });
  count.observe(work);
  std::vector<advise::OperatorUse> uses;
  for (const auto& [name, use] : count.uses()) uses.push_back(use);
  std::ranges::sort(uses, std::ranges::greater(), &advise::OperatorUse::seconds);
  return uses;
}

OperatorWork work_of(const std::function<void()>& work) {
  OperatorWork all;
  for (const advise::OperatorUse& use : operators_of(work)) {
    all.flops += use.flops;
    all.bytes += use.bytes;
    all.calls += static_cast<double>(use.moving_calls);
  }
  return all;
}

}  // namespace sinew::train
