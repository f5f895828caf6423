// Implements the higher-order operators that torch.export writes for common models. Their operands include bodies:
// graphs that the operator runs.
#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include <map>

#include "model/program_plan.h"

namespace sinew::model {
namespace {

using c10::IValue;
using torch::jit::Stack;

thread_local int64_t rounds_of_this_run = 0;

std::vector<IValue> take(Stack& stack, size_t first) {
  std::vector<IValue> values(std::make_move_iterator(stack.begin() + static_cast<int64_t>(first)),
                             std::make_move_iterator(stack.end()));
  stack.clear();
  return values;
}

std::vector<IValue> flat(const IValue& operands) {
  const auto list = operands.toListRef();
  return std::vector<IValue>(list.begin(), list.end());
}

// Runs a body. The file may give it another number of operands than the body takes.
std::vector<IValue> run_body_on(const Plan& body, std::vector<IValue> inputs, bool training) {
  TORCH_CHECK(inputs.size() == body.inputs.size(), "gives ", inputs.size(), " operands to a body that takes ",
              body.inputs.size());
  return run_plan(body, std::move(inputs), training);
}

// Counts the rounds of all loops in one run of a program, including loops inside loops. An endless loop would hang all
// workers.
void count_round() {
  constexpr int64_t kMost = 1'000'000;
  TORCH_CHECK(++rounds_of_this_run <= kMost, "the loops of the program did not end after ", kMost, " rounds");
}

bool as_bool(const IValue& value) {
  return value.isTensor() ? value.toTensor().item<bool>() : value.toBool();
}

// Tensors that only the other branch of a cond reads get the gradient zero, as in torch.cond. Otherwise they would get
// no gradient, and an optimizer with momentum or decay treats a missing gradient differently from zero.
struct WithZeroGradients : torch::autograd::Function<WithZeroGradients> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& value,
                               at::TensorList others) {
    context->save_for_backward({others.begin(), others.end()});
    return value.view_as(value);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    torch::autograd::variable_list all = {gradients[0]};
    for (const torch::Tensor& other : context->get_saved_variables()) all.push_back(torch::zeros_like(other));
    return all;
  }
};

// cond(pred, true_fn, false_fn, operands)
void cond(const HigherOrder& node, Stack& stack, bool training) {
  TORCH_CHECK(stack.size() == 2 && node.bodies.size() == 2, "expects a predicate, two bodies and their operands");
  const std::vector<IValue> operands = flat(stack[1]);
  std::vector<torch::Tensor> differentiable;
  for (const IValue& operand : operands) {
    if (operand.isTensor() && operand.toTensor().requires_grad()) differentiable.push_back(operand.toTensor());
  }
  std::vector<IValue> outputs = run_body_on(node.bodies[as_bool(stack[0]) ? 0 : 1], operands, training);
  for (IValue& output : outputs) {
    if (torch::GradMode::is_enabled() && !differentiable.empty() && output.isTensor() &&
        output.toTensor().is_floating_point())
      output = WithZeroGradients::apply(output.toTensor(), at::TensorList(differentiable));
  }
  stack = std::move(outputs);
}

// wrap_with_set_grad_enabled(enabled, body, *operands)
void with_gradients(const HigherOrder& node, Stack& stack, bool training) {
  TORCH_CHECK(!stack.empty() && node.bodies.size() == 1, "expects a flag and a body");
  const torch::AutoGradMode mode(stack[0].toBool() && torch::GradMode::is_enabled());
  stack = run_body_on(node.bodies[0], take(stack, 1), training);
}

// Restores the thread's autocast settings when it is destroyed.
class AutocastRestore {
 public:
  explicit AutocastRestore(at::DeviceType device)
      : device_(device),
        on_(at::autocast::is_autocast_enabled(device)),
        cached_(at::autocast::is_autocast_cache_enabled()),
        type_(at::autocast::get_autocast_dtype(device)) {}
  ~AutocastRestore() {
    at::autocast::set_autocast_enabled(device_, on_);
    at::autocast::set_autocast_cache_enabled(cached_);
    at::autocast::set_autocast_dtype(device_, type_);
  }
  AutocastRestore(const AutocastRestore&) = delete;
  AutocastRestore& operator=(const AutocastRestore&) = delete;

 private:
  at::DeviceType device_;
  bool on_, cached_;
  at::ScalarType type_;
};

// wrap_with_autocast(device, dtype, enabled, cache, body, *operands). Autocast's cache stays off, even if the program
// requests it. The cache outlives the block and identifies a weight only by its object. So every step would compute
// with the weights as they were when they were first cast.
void with_autocast(const HigherOrder& node, Stack& stack, bool training) {
  TORCH_CHECK(stack.size() >= 4 && node.bodies.size() == 1, "expects four settings and a body");
  const auto device = at::Device(stack[0].toStringRef()).type();
  if (!stack[1].isNone()) {
    const int64_t type = stack[1].toInt();
    const bool real = type == static_cast<int64_t>(at::kBFloat16) || type == static_cast<int64_t>(at::kHalf) ||
                      type == static_cast<int64_t>(at::kFloat) || type == static_cast<int64_t>(at::kDouble);
    TORCH_CHECK(real, "has an unknown type: ", type);
  }
  const AutocastRestore restore(device);
  at::autocast::set_autocast_cache_enabled(false);
  if (!stack[1].isNone()) at::autocast::set_autocast_dtype(device, static_cast<at::ScalarType>(stack[1].toInt()));
  at::autocast::set_autocast_enabled(device, stack[2].toBool());
  stack = run_body_on(node.bodies[0], take(stack, 4), training);
}

// tag_activation_checkpoint(body, *operands). Activations are kept instead of being recomputed, which gives the same
// values.
void run_body(const HigherOrder& node, Stack& stack, bool training) {
  TORCH_CHECK(node.bodies.size() == 1, "expects one body");
  stack = run_body_on(node.bodies[0], take(stack, 0), training);
}

// while_loop(cond_fn, body_fn, carried, additional)
void while_loop(const HigherOrder& node, Stack& stack, bool training) {
  TORCH_CHECK(stack.size() == 2 && node.bodies.size() == 2, "expects two bodies and their inputs");
  std::vector<IValue> carried = flat(stack[0]);
  const std::vector<IValue> additional = flat(stack[1]);
  const auto inputs = [&] {
    std::vector<IValue> all = carried;
    all.insert(all.end(), additional.begin(), additional.end());
    return all;
  };
  const auto goes_on = [&] {
    const std::vector<IValue> made = run_body_on(node.bodies[0], inputs(), training);
    TORCH_CHECK(made.size() == 1, "has a condition that gives ", made.size(), " values");
    return as_bool(made[0]);
  };
  while (goes_on()) {
    count_round();
    carried = run_body_on(node.bodies[1], inputs(), training);
  }
  stack = std::move(carried);
}

// Returns slice i of every tensor in a list.
std::vector<IValue> slices(const std::vector<IValue>& tensors, int64_t i) {
  std::vector<IValue> all;
  for (const IValue& tensor : tensors) all.emplace_back(tensor.toTensor().select(0, i));
  return all;
}
int64_t length_of(const std::vector<IValue>& tensors) {
  TORCH_CHECK(!tensors.empty(), "expects tensors to iterate over");
  return tensors[0].toTensor().size(0);
}
void append(std::vector<IValue>& to, const std::vector<IValue>& more) {
  to.insert(to.end(), more.begin(), more.end());
}
IValue stacked(const std::vector<std::vector<IValue>>& rows, size_t column) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(rows.size());
  for (const auto& row : rows) tensors.push_back(row.at(column).toTensor());
  return at::stack(tensors);
}

// map_impl(body, over, additional)
void map_over(const HigherOrder& node, Stack& stack, bool training) {
  TORCH_CHECK(stack.size() == 2 && node.bodies.size() == 1, "expects a body and its inputs");
  const std::vector<IValue> over = flat(stack[0]), additional = flat(stack[1]);
  std::vector<std::vector<IValue>> rows;
  for (int64_t i = 0; i < length_of(over); ++i) {
    count_round();
    std::vector<IValue> inputs = slices(over, i);
    append(inputs, additional);
    rows.push_back(run_body_on(node.bodies[0], std::move(inputs), training));
  }
  TORCH_CHECK(!rows.empty(), "has no elements to iterate over");
  std::vector<IValue> outputs;
  for (size_t column = 0; column < rows[0].size(); ++column) outputs.push_back(stacked(rows, column));
  stack = std::move(outputs);
}

// scan(combine, init, xs, additional). `combine` returns the next carry, followed by the outputs.
void scan(const HigherOrder& node, Stack& stack, bool training) {
  TORCH_CHECK(stack.size() == 3 && node.bodies.size() == 1,
              "expects a body, its initial carry and tensors to iterate over");
  std::vector<IValue> carry = flat(stack[0]);
  const std::vector<IValue> over = flat(stack[1]), additional = flat(stack[2]);
  std::vector<std::vector<IValue>> rows;
  for (int64_t i = 0; i < length_of(over); ++i) {
    count_round();
    std::vector<IValue> inputs = carry;
    append(inputs, slices(over, i));
    append(inputs, additional);
    std::vector<IValue> made = run_body_on(node.bodies[0], std::move(inputs), training);
    TORCH_CHECK(made.size() >= carry.size(), "has a body that gives ", made.size(), " values for a carry of ",
                carry.size());
    const auto end = made.begin() + static_cast<int64_t>(carry.size());
    std::copy(made.begin(), end, carry.begin());
    rows.emplace_back(end, made.end());
  }
  TORCH_CHECK(!rows.empty(), "has no elements to iterate over");
  std::vector<IValue> outputs = carry;
  for (size_t column = 0; column < rows[0].size(); ++column) outputs.push_back(stacked(rows, column));
  stack = std::move(outputs);
}

}  // namespace

void begin_run() {
  rounds_of_this_run = 0;
}

HigherOrderRun higher_order_function(const std::string& name) {
  static const std::map<std::string, HigherOrderRun> all = {
      {"cond", cond},
      {"wrap_with_set_grad_enabled", with_gradients},
      {"wrap_with_autocast", with_autocast},
      {"tag_activation_checkpoint", run_body},
      {"wrap_activation_checkpoint", run_body},
      {"while_loop", while_loop},
      {"map_impl", map_over},
      {"scan", scan},
  };
  const auto found = all.find(name);
  return found == all.end() ? nullptr : found->second;
}

}  // namespace sinew::model
