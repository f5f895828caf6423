// An experiment inside a run: in some steps one condition differs from the usual one, and the times of these steps are
// compared with those of usual steps between them. A condition changes how long a step takes, never its result.
//
// All is pure: a schedule of conditions, and statistics of the times that the caller has measured. The windows of all
// conditions take turns, in the reverse order in every second round, so that a machine that slowly becomes faster or
// slower favours none of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sinew {

enum class Condition : uint8_t {
  usual,
  samples_ready,  // a step begins when its samples are loaded, and this wait does not count as time of the step
  half_lanes,     // half of the lanes compute, the other ones rest
  cores_busy,     // half of the lanes compute; beside each of them, a thread computes without touching memory
  memory_busy,    // half of the lanes compute; beside each of them, a thread reads memory
};
inline constexpr size_t kConditions = static_cast<size_t>(Condition::memory_busy) + 1;
std::string_view name_of(Condition condition);  // as in report.json
std::optional<Condition> condition_of(std::string_view name);

// How long a step takes under a condition, in proportion to another condition. The true value lies between `low` and
// `high` with a probability of about 90 %.
struct StepRatio {
  double expected = 1, low = 1, high = 1;
  bool operator==(const StepRatio&) const = default;
};

// The finding of an experiment about one condition.
struct ConditionTime {
  Condition condition = Condition::usual;
  int64_t steps = 0;   // whose time was counted
  double seconds = 0;  // of a step, the mean over the rounds
  // Compared with the usual condition; memory_busy with cores_busy, because a core has the same work in both.
  StepRatio ratio;
  bool operator==(const ConditionTime&) const = default;
};

// A clause: "with its samples loaded, a step took 0.42 times as long (0.40 to 0.45)".
std::string text_of(const ConditionTime& found);
// The clauses of an experiment, with the time of a usual step; "" for no experiment.
std::string text_of(const std::vector<ConditionTime>& found);

class Experiment {
 public:
  // Steps of a window, so that a window lasts long enough to be measured. `step_seconds`: what a step takes now; 0:
  // unknown.
  static int64_t window_for(double step_seconds);
  // The usual condition takes part, whether `conditions` names it or not. `window` is at least 1.
  Experiment(const std::vector<Condition>& conditions, int64_t window);

  bool done() const;
  Condition next() const;  // the condition of the next step; `usual` when the experiment is done
  void after(double step_seconds);
  // One result for each condition, the usual one first; empty until the experiment is done.
  std::vector<ConditionTime> results() const;

 private:
  size_t window_at(int64_t step) const;  // index of the condition
  std::vector<Condition> conditions_;
  int64_t window_, not_counted_;
  int64_t steps_ = 0;                         // that were made
  std::vector<std::vector<double>> seconds_;  // for each condition, the sum of each round
};

}  // namespace sinew
