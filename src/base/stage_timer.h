// Measures on what the lanes of a worker spend their time.
//
// At each moment a lane is in one stage. It says when it enters another one, which costs one reading of the clock, so
// the stages of a lane add up to the time since it began. A worker's lanes train and evaluate (train/). Between the
// phases in which all lanes work, one thread does what is left (train/, loop/), and every lane is in the stage of that
// thread, because all of them wait for it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace sinew {

enum class Stage : uint8_t {
  startup,      // the run prepares its first step
  data_wait,    // the lane waits until a loader has read and decoded its samples, or copies them from memory
  forward,      // from the samples to the loss and the metrics
  backward,     // from the loss to the gradients
  reduction,    // sums of gradients are added, sent or received
  member_wait,  // the lane waits for results of other workers
  imbalance,    // the lane has done its part of a phase and waits for the other lanes
  optimizer,    // the sums are divided, clipped and applied
  digest,       // digests of the state are computed or compared
  evaluation,   // forward passes of an evaluation
  checkpoint,   // the state is copied for a checkpoint; the writing itself goes on beside the training
  loop,         // between two steps: control entries, metrics, logs, progress
  finish,       // after the last step: the run saves its state and writes its model
  test,         // after the last step: the evaluation of that step, the choice of a threshold, the test
};
inline constexpr size_t kStages = static_cast<size_t>(Stage::test) + 1;
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
// The stages that took time worth showing, the longest first: at least 0.05 %, because less would show as 0.0 %.
std::vector<Stage> longest_stages(const StageTimes& times);

// What a lane did for a while. In seconds, on the monotonic scale of the clock.
struct StageSpan {
  int64_t lane = 0;
  Stage stage = Stage::startup;
  double began = 0, ended = 0;
  bool operator==(const StageSpan&) const = default;
};

class StageTimer {
 public:
  // Measures from the time `began` on the clock's monotonic scale; all lanes begin in `startup`. The clock must outlive
  // the timer.
  StageTimer(int64_t lanes, double began, const Clock& clock);
  ~StageTimer();

  void enter(int lane, Stage stage);  // called by the lane's thread, while it works
  void enter_all(Stage stage);        // called by the thread that works while no lane does
  // The times until now. Any thread may ask; while a lane enters a stage, the time of the one before may be missing or
  // counted twice.
  StageTimes times() const;
  // From now on keeps what each lane does, at most `most` spans of each lane. The thread that works while no lane does
  // calls it, and recorded(), which ends this and returns the spans, lane by lane.
  void record(size_t most);
  std::vector<StageSpan> recorded();

 private:
  struct Lane;
  static void enter(Lane& lane, Stage stage, double now);
  const int64_t lanes_;
  const Clock& clock_;
  std::unique_ptr<Lane[]> of_lanes_;
};

}  // namespace sinew
