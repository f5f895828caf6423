#include "model/tabular_parts.h"

#include <cmath>
#include <numbers>

#include "model/makers.h"

namespace sinew::model {
namespace {

using Kind = data::InputGroup::Kind;

torch::Tensor indices(const std::vector<int64_t>& list) {
  return torch::tensor(list, torch::kInt64);
}

// The quantile of each column of sorted values, linear between two of them.
torch::Tensor value_at_quantile(const torch::Tensor& sorted, double q) {
  const double place = q * static_cast<double>(sorted.size(0) - 1);
  const auto below = static_cast<int64_t>(std::floor(place));
  const int64_t above = std::min(below + 1, sorted.size(0) - 1);
  return torch::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

// "He+5": the bias of a unit is minus a random point of the simplex between the unit's values for five random samples.
// So the kinks of the activation functions lie among the samples. `y`: [samples, units], without bias.
torch::Tensor simplex_bias(const torch::Tensor& y) {
  constexpr int64_t kCorners = 5;
  const torch::Tensor samples = torch::randint(0, y.size(0), {kCorners, y.size(1)}, torch::kInt64);
  const torch::Tensor shares = torch::empty({kCorners, y.size(1)}).exponential_();
  return -(y.gather(0, samples) * shares).sum(0) / shares.sum(0);
}

}  // namespace

TabularLayout tabular_layout(const data::DataInfo& data, int64_t max_one_hot) {
  TabularLayout layout;
  for (const data::InputGroup& group : data::input_groups(data)) {
    if (group.kind == Kind::number) {
      layout.numbers.push_back(group.first);
    } else if (group.kind == Kind::category && group.count > max_one_hot) {
      layout.embedded.push_back(group);
    } else if (group.kind == Kind::category && group.count == 2) {
      layout.no.push_back(group.first);
      layout.yes.push_back(group.first + 1);
    } else {
      for (int64_t i = 0; i < group.count; ++i) layout.plain.push_back(group.first + i);
    }
  }
  return layout;
}

TabularColumns::TabularColumns(const data::DataInfo& data, int64_t max_one_hot) {
  const TabularLayout layout = tabular_layout(data, max_one_hot);
  numbers = indices(layout.numbers);
  plain = indices(layout.plain);
  yes = indices(layout.yes);
  no = indices(layout.no);
  embedded = layout.embedded;
}

torch::Tensor TabularColumns::flatten(const torch::Tensor& input) const {
  torch::Tensor x = input.index_select(1, torch::cat({numbers, plain}));
  if (yes.numel() > 0) x = torch::cat({x, input.index_select(1, yes) - input.index_select(1, no)}, 1);
  return x;
}

RobustScaling::RobustScaling(int64_t columns) {
  center = register_buffer("center", torch::zeros({columns}));
  factor = register_buffer("factor", torch::ones({columns}));
}

// A column whose quartiles are equal is scaled by its range, and a constant one becomes 0.
void RobustScaling::fit(const torch::Tensor& x) {
  const torch::Tensor sorted = std::get<0>(x.sort(0));
  const torch::Tensor quartiles = value_at_quantile(sorted, 0.75) - value_at_quantile(sorted, 0.25);
  const torch::Tensor half_range = (sorted[-1] - sorted[0]) / 2;
  const torch::Tensor spread = torch::where(quartiles > 0, quartiles, half_range);
  center.copy_(value_at_quantile(sorted, 0.5));
  factor.copy_(torch::where(spread > 0, 1 / spread, torch::zeros_like(spread)));
}

torch::Tensor RobustScaling::forward(const torch::Tensor& x) const {
  const torch::Tensor scaled = (x - center) * factor;
  return scaled * torch::rsqrt(1 + (scaled / 3).square());
}

NumericEmbedding::NumericEmbedding(int64_t numbers, const spec::TabularOptions& options) {
  const int64_t waves = options.frequencies, made = options.numeric_embedding_size - 1;
  const double bound = 1 / std::sqrt(static_cast<double>(waves));  // as PyTorch initialises a linear layer
  const auto uniform = [](at::IntArrayRef sizes, double limit) { return torch::empty(sizes).uniform_(-limit, limit); };
  frequency = register_parameter("frequency", torch::randn({numbers, 1, waves}) * options.frequency_scale);
  phase = register_parameter("phase", uniform({numbers, 1, waves}, std::numbers::pi));
  weight = register_parameter("weight", uniform({numbers, waves, made}, bound));
  bias = register_parameter("bias", uniform({numbers, 1, made}, bound));
}

torch::Tensor NumericEmbedding::forward(const torch::Tensor& x) const {
  const torch::Tensor column = x.t().unsqueeze(2);  // [numbers, batch, 1]
  const torch::Tensor waves = torch::cos(torch::addcmul(phase, column, frequency, 2 * std::numbers::pi));
  const torch::Tensor made = torch::baddbmm(bias, waves, weight);  // [numbers, batch, size - 1]
  return torch::cat({made.transpose(0, 1).flatten(1), x}, 1);
}

TabularLayer::TabularLayer(int64_t inputs, int64_t outputs, const spec::ModelOptions& options, bool hidden)
    : activation(hidden ? options.activation : "") {
  const double usual = 1 / std::sqrt(static_cast<double>(inputs));
  const bool ntk = options.tabular.parametrization == "ntk";
  gain = ntk ? usual : 1;
  weight = register_parameter("weight", torch::randn({inputs, outputs}) * (ntk ? 1 : usual));
  bias = register_parameter("bias", torch::zeros({outputs}));
  if (hidden && options.tabular.parametric_activation)
    strength = register_parameter("strength", torch::ones({outputs}));
}

void TabularLayer::fit(const torch::Tensor& x) {
  torch::Tensor y = torch::mm(x, weight) * gain;
  const torch::Tensor deviation = (y - y.mean(0)).square().mean(0).sqrt();
  const torch::Tensor scale = torch::where(deviation > 1e-6, 1 / deviation, torch::ones_like(deviation));
  weight.mul_(scale);
  bias.copy_(simplex_bias(y.mul_(scale)));
}

torch::Tensor TabularLayer::forward(const torch::Tensor& x) const {
  const torch::Tensor y = torch::addmm(bias, x, weight, 1, gain).to(torch::kFloat32);  // autocast may return bfloat16
  if (activation.empty()) return y;
  const torch::Tensor bent = activate(y, activation);
  return strength.defined() ? torch::lerp(y, bent, strength) : bent;
}

}  // namespace sinew::model
