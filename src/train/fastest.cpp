#include "train/fastest.h"

#include <algorithm>
#include <cmath>

#include "base/number_text.h"

namespace sinew::train {
namespace {

constexpr double kNearlyAsFast = 1.05;  // times the duration of the fastest one
// What rounding to bfloat16 changes in a loss is far below this, as a part of it.
constexpr double kLossDiffers = 0.05;
constexpr double kLeastLoss = 0.1;  // a loss below this counts as this: rounding changes it by a larger part

double shortest(const ArithmeticTrial& trial) {
  return *std::ranges::min_element(trial.rounds);
}

bool same_loss(const ArithmeticTrial& trial, const ArithmeticTrial& plain) {
  return std::abs(trial.loss - plain.loss) <= kLossDiffers * std::max(kLeastLoss, std::abs(plain.loss));
}

bool is_measured(const ArithmeticTrial& trial) {
  return trial.error.empty() && std::isfinite(trial.loss) && trial.rounds.size() >= kFewestRounds;
}

std::string name_of(const Arithmetic& how, bool with_format) {
  return how.precision + (with_format ? " " + how.memory_format : "");
}

std::string figures_of(const ArithmeticTrial& trial, const ArithmeticTrial& plain, bool with_format) {
  const std::string name = name_of(trial.how, with_format);
  if (!trial.error.empty()) return name + " does not train (" + trial.error + ")";
  if (trial.rounds.empty()) return name + " was not measured";
  std::string text = name + " " + rounded_text(1000 * shortest(trial), 3) + " ms";
  if (!same_loss(trial, plain))
    text += " but another loss (" + rounded_text(trial.loss, 4) + " instead of " + rounded_text(plain.loss, 4) + ")";
  return text;
}

}  // namespace

std::vector<Arithmetic> arithmetics_of(const spec::Job& job, const data::DataInfo& data, const Machine& machine) {
  const Arithmetic given{job.trainer.precision, job.trainer.memory_format};
  std::vector<Arithmetic> all;
  spec::Job in_precision = resolve(job, data, machine).job;
  for (const char* precision : {"fp32", "bf16"}) {
    if (given.precision == spec::kFastest) in_precision.trainer.precision = precision;
    for (const char* format : {"contiguous", "channels_last"}) {
      const bool images = data.input_shape.size() == 3;
      Arithmetic how{in_precision.trainer.precision, in_precision.trainer.memory_format};
      if (given.memory_format == spec::kFastest) how.memory_format = images ? format : "contiguous";
      if (given.memory_format == "auto") how.memory_format = usual_memory_format(in_precision, data, machine);
      if (std::ranges::find(all, how) == all.end()) all.push_back(how);
    }
  }
  return all;
}

std::optional<ArithmeticChoice> choose_arithmetic(const std::vector<ArithmeticTrial>& trials) {
  if (trials.empty() || !is_measured(trials.front())) return std::nullopt;
  const ArithmeticTrial& plain = trials.front();
  const auto counts = [&](const ArithmeticTrial& trial) { return is_measured(trial) && same_loss(trial, plain); };
  double fastest = shortest(plain);
  for (const ArithmeticTrial& trial : trials) {
    if (counts(trial)) fastest = std::min(fastest, shortest(trial));
  }
  const auto chosen = std::ranges::find_if(trials, [&](const ArithmeticTrial& trial) {
    return counts(trial) && shortest(trial) <= kNearlyAsFast * fastest;
  });
  const bool formats = std::ranges::any_of(
      trials, [&](const ArithmeticTrial& trial) { return trial.how.memory_format != plain.how.memory_format; });
  std::string figures;
  for (const ArithmeticTrial& trial : trials)
    figures += (figures.empty() ? "" : ", ") + figures_of(trial, plain, formats);
  return ArithmeticChoice{chosen->how,
                          "the fastest by more than 5 %, or else the plainest; a step when the run began: " + figures};
}

}  // namespace sinew::train
