#include "base/stage_timer.h"

#include <algorithm>

#include "base/check.h"

namespace sinew {
namespace {

constexpr std::array<std::string_view, kStages> kNames = {
    "startup",   "data_wait", "forward",    "backward",   "reduction", "member_wait", "imbalance",
    "optimizer", "digest",    "evaluation", "checkpoint", "loop",      "finish",      "test"};

}  // namespace

std::string_view name_of(Stage stage) {
  return kNames.at(static_cast<size_t>(stage));
}

std::optional<Stage> stage_of(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Stage>(found - kNames.begin());
}

double StageTimes::total() const {
  double sum = 0;
  for (const double one : seconds) sum += one;
  return sum;
}

std::vector<Stage> longest_stages(const StageTimes& times) {
  constexpr double kWorthShowing = 0.0005;
  std::vector<Stage> stages;
  for (size_t i = 0; i < kStages; ++i) {
    if (times.seconds[i] > 0 && times.seconds[i] >= kWorthShowing * times.total())
      stages.push_back(static_cast<Stage>(i));
  }
  std::ranges::stable_sort(stages, std::ranges::greater(), [&](Stage stage) { return times[stage]; });
  return stages;
}

// The fields are atomic because another thread may read them while a lane works.
struct alignas(64) StageTimer::Lane {
  std::atomic<Stage> stage{Stage::startup};
  std::atomic<double> since{0};
  std::array<std::atomic<double>, kStages> seconds{};
  std::vector<StageSpan> spans;  // only the lane uses it, and record() and recorded() while no lane works
  size_t most_spans = 0;         // 0: nothing is recorded
};

StageTimer::StageTimer(int64_t lanes, double began, const Clock& clock)
    : lanes_(lanes), clock_(clock), of_lanes_(std::make_unique<Lane[]>(static_cast<size_t>(lanes))) {
  for (int64_t lane = 0; lane < lanes_; ++lane) of_lanes_[static_cast<size_t>(lane)].since = began;
}

StageTimer::~StageTimer() = default;

void StageTimer::enter(Lane& lane, Stage stage, double now) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  std::atomic<double>& seconds = lane.seconds[static_cast<size_t>(lane.stage.load(kRelaxed))];
  seconds.store(seconds.load(kRelaxed) + now - lane.since.load(kRelaxed), kRelaxed);
  if (lane.spans.size() < lane.most_spans)
    lane.spans.push_back({0, lane.stage.load(kRelaxed), lane.since.load(kRelaxed), now});
  lane.since.store(now, kRelaxed);
  lane.stage.store(stage, kRelaxed);
}

void StageTimer::enter(int lane, Stage stage) {
  SINEW_CHECK(lane >= 0 && lane < lanes_, lane);
  enter(of_lanes_[static_cast<size_t>(lane)], stage, clock_.monotonic_seconds());
}

void StageTimer::enter_all(Stage stage) {
  const double now = clock_.monotonic_seconds();
  for (int64_t lane = 0; lane < lanes_; ++lane) enter(of_lanes_[static_cast<size_t>(lane)], stage, now);
}

StageTimes StageTimer::times() const {
  StageTimes times{.lanes = lanes_};
  for (int64_t i = 0; i < lanes_; ++i) {
    const Lane& lane = of_lanes_[static_cast<size_t>(i)];
    for (size_t stage = 0; stage < kStages; ++stage) times.seconds[stage] += lane.seconds[stage];
    times[lane.stage] += std::max(0.0, clock_.monotonic_seconds() - lane.since);
  }
  return times;
}

void StageTimer::record(size_t most) {
  const double now = clock_.monotonic_seconds();
  for (int64_t i = 0; i < lanes_; ++i) {
    Lane& lane = of_lanes_[static_cast<size_t>(i)];
    enter(lane, lane.stage, now);  // a span begins here
    lane.spans.clear();
    lane.most_spans = most;
  }
}

std::vector<StageSpan> StageTimer::recorded() {
  const double now = clock_.monotonic_seconds();
  std::vector<StageSpan> all;
  for (int64_t i = 0; i < lanes_; ++i) {
    Lane& lane = of_lanes_[static_cast<size_t>(i)];
    enter(lane, lane.stage, now);
    for (StageSpan& span : lane.spans) {
      span.lane = i;
      all.push_back(span);
    }
    lane.spans = {};
    lane.most_spans = 0;
  }
  return all;
}

}  // namespace sinew
