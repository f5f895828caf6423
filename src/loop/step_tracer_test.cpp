#include "loop/step_tracer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/hand_clock.h"

namespace sinew::loop {
namespace {

// Makes steps of a second, after which it ends. Returns the names of the steps in the trace; none if there is no trace.
std::vector<std::string> traced(int64_t first, int64_t steps) {
  HandClock clock;
  StageTimer timer(1, clock.seconds, clock);
  StepTracer tracer(&timer);
  std::optional<std::string> found;
  for (int64_t i = 0; i < steps; ++i) {
    if (auto trace = tracer.next_step(Step(first + i), clock.seconds)) {
      EXPECT_FALSE(found) << "there is one trace";
      found = std::move(trace);
    }
    timer.enter(0, Stage::forward);
    clock.seconds = clock.seconds + 1;
  }
  if (auto trace = tracer.end(clock.seconds)) found = std::move(trace);
  std::vector<std::string> names;
  if (!found) return names;
  const auto trace = nlohmann::json::parse(*found);
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    if (event.at("cat") == "step") names.push_back(event.at("name"));
    EXPECT_LE(event.at("dur"), 1e6);
  }
  return names;
}

TEST(StepTracer, RecordsTheSixthToTenthStepOfAnAttempt) {
  const std::vector<std::string> expected = {"step 5", "step 6", "step 7", "step 8", "step 9"};
  EXPECT_EQ(traced(0, 100), expected);
  EXPECT_EQ(traced(0, 10), expected);
  EXPECT_EQ(traced(1000, 100).front(), "step 1005") << "after a resume";
}

TEST(StepTracer, AShortAttemptRecordsWhatItHas) {
  EXPECT_EQ(traced(0, 7), (std::vector<std::string>{"step 5", "step 6"}));
  EXPECT_TRUE(traced(0, 5).empty());
}

TEST(StepTracer, WithoutATimerThereIsNoTrace) {
  StepTracer tracer(nullptr);
  for (int64_t i = 0; i < 20; ++i) EXPECT_FALSE(tracer.next_step(Step(i), 0));
  EXPECT_FALSE(tracer.end(0));
}

}  // namespace
}  // namespace sinew::loop
