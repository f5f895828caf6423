// The figures are what halving usually gives: the work of a layer grows with the square of its width, and that of a
// convolution with the pixels.
#include <array>
#include <string_view>

#include "advise/rest.h"

namespace sinew::advise {
namespace {

constexpr int64_t kSmallestImage = 32;
constexpr std::array<std::string_view, 5> kActivations = {"gelu", "tanh", "silu", "elu", "mish"};

// The part of the measured operators that are activation functions other than relu.
double time_of_activations(const std::vector<OperatorUse>& operators) {
  double all = 0, found = 0;
  for (const OperatorUse& use : operators) {
    const bool bends = std::ranges::any_of(
        kActivations, [&](std::string_view name) { return std::string_view(use.name).starts_with(name); });
    all += use.seconds;
    found += bends ? use.seconds : 0;
  }
  return all > 0 ? found / all : 0;
}

}  // namespace

std::vector<Remedy> other_models(const Record& record, double computing, const spec::Job& job) {
  std::vector<Remedy> found;
  const auto add = [&](const char* what, const Rest& rest, const std::vector<std::string>& options = {}) {
    const Estimate gain = gain_of(rest);
    if (gain.expected >= kWorthTrying) found.push_back({what, gain, false, options});
  };
  // A part of the time that becomes shorter, by these parts of it.
  const auto shorter = [](double part, double expected, double most, double least) {
    return Rest{1 - expected * part, 1 - most * part, 1 - least * part};
  };
  if (computing < kMuchComputing) return found;
  const double bends = time_of_activations(record.operators) * computing;
  if (job.model.activation != "relu" && job.model.activation != "auto")
    add("a cheaper activation function", shorter(bends, 0.7, 1, 0.4), {"model.activation=relu"});
  if (!job.model.init_from.path.empty() && job.model.freeze.empty()) {
    const double backward = record.time[Stage::backward] / static_cast<double>(record.time.lanes) / record.seconds();
    add("train only the last layers: model.freeze", shorter(backward, 0.6, 1, 0.2));
  }
  add("a smaller model, of half the width", shorter(computing, 0.6, 0.75, 0.35));
  if (job.data.image.size.size() == 2 && job.data.image.size[0] >= kSmallestImage)
    add("smaller images, of half the size: data.image.size", shorter(computing, 0.65, 0.75, 0.4));
  return found;
}

}  // namespace sinew::advise
