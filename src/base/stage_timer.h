// Measures on what the lanes of a worker spend their time.
//
// At each moment a lane is in one stage. It says when it enters another one, which costs one reading of the clock, so
// the stages of a lane add up to the time since it began. A worker's lanes train and evaluate (train/); lane 0 also runs
// the loop between the steps (loop/).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/clock.h"

namespace sinew {

enum class Stage : uint8_t {
  idle,         // the lane has nothing to do: another lane, or the part of a step that one thread does, is not done yet
  startup,      // lane 0: the run prepares its first step
  data_wait,    // the lane waits until a loader has read and decoded its samples, or copies them from memory
  forward,      // from the samples to the loss and the metrics
  backward,     // from the loss to the gradients
  reduction,    // sums of gradients are added, sent or received
  member_wait,  // the lane waits for results of other workers
  optimizer,    // the sums are divided, clipped and applied
  digest,       // digests of the state are computed or compared
  evaluation,   // forward passes of an evaluation
  checkpoint,   // the state is copied for a checkpoint; the writing itself goes on beside the training
  loop,         // lane 0 between two steps: control entries, metrics, logs, progress
};
inline constexpr size_t kStages = static_cast<size_t>(Stage::loop) + 1;
std::string_view name_of(Stage stage);  // as in report.json
std::optional<Stage> stage_of(std::string_view name);

// The seconds of all lanes together, by stage. They add up to `lanes` times the duration.
struct StageTimes {
  int64_t lanes = 0;
  std::array<double, kStages> seconds{};
  double& operator[](Stage stage) { return seconds[static_cast<size_t>(stage)]; }
  double operator[](Stage stage) const { return seconds[static_cast<size_t>(stage)]; }
  double total() const;
  bool operator==(const StageTimes&) const = default;
};

class StageTimer {
 public:
  // Measures from the time `began` on the clock's monotonic scale. Lane 0 begins in `startup`, the others idle. The
  // clock must outlive the timer.
  StageTimer(int64_t lanes, double began, const Clock& clock);
  ~StageTimer();

  void enter(int lane, Stage stage);  // one thread at a time for each lane
  StageTimes times() const;           // until now; any thread

 private:
  struct Lane;
  const int64_t lanes_;
  const Clock& clock_;
  std::unique_ptr<Lane[]> of_lanes_;
};

}  // namespace sinew
