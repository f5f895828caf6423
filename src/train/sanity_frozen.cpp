// Checks that no layer is frozen at values that nobody trained.
#include <algorithm>

#include "train/sanity.h"

namespace sinew::train::sanity {
namespace {

bool fits_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) { return spec::fits_pattern(pattern, name); });
}

// The layer that a parameter belongs to: "head" for "head.weight".
std::string layer_of(const std::string& parameter) {
  const size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? parameter : parameter.substr(0, dot);
}

}  // namespace

bool comes_with_weights(const spec::ModelOptions& model) {
  return model.name == "program" || model.name == "torchscript";
}

bool frozen_on_purpose(const spec::ModelOptions& model, const std::string& parameter) {
  return comes_with_weights(model) || fits_any(model.freeze, parameter);
}

void check_frozen(Subject& subject, SanityFinding& finding) {
  const spec::ModelOptions& options = subject.job.model;
  const auto model = subject.make_model();
  const std::vector<model::NamedTensor> parameters = model->parameters();
  const bool has_weights = comes_with_weights(options) || options.name == "library" || !options.init_from.path.empty();
  std::string frozen, untrained, last;
  int64_t still = 0;
  for (const model::NamedTensor& parameter : parameters) {
    if (parameter.tensor.dim() >= 2) last = parameter.name;
    if (parameter.tensor.requires_grad() || !frozen_on_purpose(options, parameter.name)) continue;
    ++still;
    frozen += (still <= 3 ? (still > 1 ? ", " : "") + parameter.name : still == 4 ? ", ..." : "");
    if (untrained.empty() && (!has_weights || fits_any(options.reinit, parameter.name))) untrained = parameter.name;
  }
  if (still == 0) {
    finding.what = "no layer is frozen";
    return;
  }
  finding.what =
      format("%lld of %zu parameters are frozen: ", static_cast<long long>(still), parameters.size()) + frozen;
  const auto head = std::ranges::find(parameters, last, &model::NamedTensor::name);
  const bool frozen_head =
      head != parameters.end() && !head->tensor.requires_grad() && still < static_cast<int64_t>(parameters.size());
  if (!untrained.empty()) {
    judge(finding, Verdict::fail, frozen_head ? "frozen_head" : "frozen",
          (frozen_head ? "the last layer, " + layer_of(last) + "," : "'" + untrained + "'") +
              " stays at random values: the job freezes it, but does not load trained ones",
          "remove it from model.freeze, or load trained weights: model.init_from");
  } else if (frozen_head) {
    judge(finding, Verdict::warn, "frozen_head",
          "the last layer, " + layer_of(last) + ", cannot adapt to this data, because it is frozen",
          "freeze the layers before it instead, and train the last one: model.freeze");
  }
}

}  // namespace sinew::train::sanity
