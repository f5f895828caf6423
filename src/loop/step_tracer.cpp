#include "loop/step_tracer.h"

#include <utility>

namespace sinew::loop {
namespace {

constexpr int64_t kStepsBefore = 5, kTracedSteps = 5;
constexpr size_t kMostSpans = 20'000;  // of a lane; a few hundred are usual

}  // namespace

std::optional<std::string> StepTracer::next_step(Step step, double now) {
  if (stages_ == nullptr) return std::nullopt;
  const int64_t begun = seen_++;
  if (begun == kStepsBefore) stages_->record(kMostSpans);
  if (begun == kStepsBefore + kTracedSteps) return end(now);
  if (begun < kStepsBefore || begun > kStepsBefore + kTracedSteps) return std::nullopt;
  if (!traced_.empty()) traced_.back().ended = now;
  traced_.push_back({step.value, now, now});
  return std::nullopt;
}

std::optional<std::string> StepTracer::end(double now) {
  if (traced_.empty()) return std::nullopt;
  traced_.back().ended = now;
  return report::trace_json(stages_->recorded(), std::exchange(traced_, {}));
}

}  // namespace sinew::loop
