// Decides a precision and a memory format that are `fastest`.
#include <algorithm>

#include "train/fastest_trial.h"
#include "train/resolve.h"

namespace sinew::train {
namespace {

constexpr double kMostFastestSeconds = 45, kFastestPart = 0.1;  // of budget.time

// Why nothing was measured.
std::string unmeasured_text(const FastestTrials& found) {
  if (found.end == ChildEnd::impossible) return "this process cannot start another one for it";
  if (found.killed) return "the process that measured was killed, probably for its memory";
  if (found.end == ChildEnd::too_long) return "a step takes too long";
  if (!found.trials.front().error.empty()) return "the first step failed: " + found.trials.front().error;
  return "the training is too short for it";
}

}  // namespace

bool choose_fastest(Resolved& resolved, const spec::Job& job, const data::Dataset& dataset, const Machine& machine,
                    const FastestOptions& options) {
  if (!spec::wants_fastest(job) || dataset.info().train_size == 0) return true;
  const std::vector<Arithmetic> all = arithmetics_of(job, dataset.info(), machine);
  std::optional<ArithmeticChoice> choice;
  if (all.size() == 1) {
    choice = {all.front(), "nothing else comes into question for this data"};
  } else {
    if (options.say) options.say("measuring which precision or memory format is the fastest");
    const double most = options.budget_seconds > 0
                            ? std::min(kMostFastestSeconds, kFastestPart * options.budget_seconds)
                            : kMostFastestSeconds;
    const FastestTrials found = try_arithmetics({.job = resolved.job,
                                                 .dataset = &dataset,
                                                 .most_seconds = most,
                                                 .most_bytes = job.budget.memory,
                                                 .stop_signals = options.stop_signals},
                                                all);
    if (found.end == ChildEnd::stopped) return false;
    choice = choose_arithmetic(found.trials);
    const auto& trainer = resolved.job.trainer;
    if (!choice)
      choice = {{trainer.precision, trainer.memory_format},
                "as with auto, because nothing was measured: " + unmeasured_text(found)};
  }
  for (spec::Job* one : {&resolved.job, &resolved.written}) {
    one->trainer.precision = choice->how.precision;
    one->trainer.memory_format = choice->how.memory_format;
  }
  if (job.trainer.precision == spec::kFastest) resolved.reasons["trainer.precision"] = choice->reason;
  if (job.trainer.memory_format == spec::kFastest) resolved.reasons["trainer.memory_format"] = choice->reason;
  if (job.trainer.memory_format == "auto")
    resolved.reasons["trainer.memory_format"] = "faster for this model on images of this size on this machine";
  return true;
}

}  // namespace sinew::train
