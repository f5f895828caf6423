// The weights of model: tabular in the form that the steps of an export use. model/tabular.cpp has the formulas.
#include <cmath>
#include <numbers>

#include "exports/network.h"

namespace sinew::exports {
namespace {

// A linear layer without bias that picks columns: row i has a 1 at columns[i].
torch::Tensor choice_of(const std::vector<int64_t>& columns, int64_t width) {
  torch::Tensor weight = torch::zeros({static_cast<int64_t>(columns.size()), width});
  for (size_t i = 0; i < columns.size(); ++i) weight[static_cast<int64_t>(i)][columns[i]] = 1;
  return weight;
}

std::vector<int64_t> from_to(int64_t first, int64_t end) {
  std::vector<int64_t> columns;
  for (int64_t i = first; i < end; ++i) columns.push_back(i);
  return columns;
}

// The numbers, the plain columns, and for each category of two inputs their difference.
torch::Tensor flat_choice(const model::TabularLayout& layout, int64_t width) {
  std::vector<int64_t> columns = layout.numbers;
  columns.insert(columns.end(), layout.plain.begin(), layout.plain.end());
  torch::Tensor chosen = choice_of(columns, width);
  return torch::cat({chosen, choice_of(layout.yes, width) - choice_of(layout.no, width)}, 0);
}

}  // namespace

void Weights::derive_layer(const std::string& name, bool ntk) {
  const torch::Tensor& weight = at(name + ".weight");  // [inputs, outputs]
  const double gain = ntk ? 1 / std::sqrt(static_cast<double>(weight.size(0))) : 1;
  derive("layers." + name + ".weight", (weight * gain).t(), name + ".weight");
  derive("layers." + name + ".bias", at(name + ".bias").clone(), name + ".bias");
}

void Weights::derive_tabular(const spec::ModelOptions& options, const data::DataInfo& data) {
  const spec::TabularOptions& parts = options.tabular;
  const model::TabularLayout layout = model::tabular_layout(data, parts.max_one_hot);
  const int64_t width = element_count(data.input_shape), flat = layout.flat();
  const auto numbers = static_cast<int64_t>(layout.numbers.size());
  if (flat > 0) derive("select.flat.weight", flat_choice(layout, width), "");
  if (parts.numeric_embedding == "pbld" && numbers > 0) {
    derive("select.numbers.weight", choice_of(from_to(0, numbers), flat), "");
    if (flat > numbers) derive("select.others.weight", choice_of(from_to(numbers, flat), flat), "");
    derive("numbers.cycles", at("numbers.frequency").squeeze(1) * (2 * std::numbers::pi), "numbers.frequency");
    derive("numbers.shift", at("numbers.phase").squeeze(1).clone(), "numbers.phase");
    derive("numbers.matrix", at("numbers.weight").clone(), "numbers.weight");
    derive("numbers.offset", at("numbers.bias").flatten().clone(), "numbers.bias");
  }
  for (size_t i = 0; i < layout.embedded.size(); ++i) {
    const std::string name = "embedding_" + std::to_string(i);
    const torch::Tensor& embedding = at(name);  // [categories, size]
    torch::Tensor weight = torch::zeros({embedding.size(1), width});
    weight.narrow(1, layout.embedded[i].first, layout.embedded[i].count).copy_(embedding.t());
    derive("select." + name + ".weight", weight, name);
  }
  const bool ntk = parts.parametrization == "ntk";
  for (size_t i = 0; i < options.hidden.size(); ++i) derive_layer("hidden." + std::to_string(i), ntk);
  derive_layer("output", ntk);
  if (contains("range")) {
    derive("range.low", at("range")[0].clone(), "range");
    derive("range.high", at("range")[1].clone(), "range");
  }
}

}  // namespace sinew::exports
