// Prints how many nanoseconds a lane needs to say that it enters another stage (StageTimer), as the median of many
// rounds.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/stage_timer.h"

int main() {
  using namespace sinew;
  constexpr int kRounds = 101, kEntries = 20'000;
  Clock& clock = system_clock();
  StageTimer timer(2, clock.monotonic_seconds(), clock);
  std::vector<double> nanoseconds;
  for (int round = 0; round < kRounds; ++round) {
    const double began = clock.monotonic_seconds();
    for (int i = 0; i < kEntries; ++i) timer.enter(1, i % 2 == 0 ? Stage::forward : Stage::backward);
    nanoseconds.push_back(1e9 * (clock.monotonic_seconds() - began) / kEntries);
  }
  std::ranges::nth_element(nanoseconds, nanoseconds.begin() + kRounds / 2);
  std::printf("%.2f\n", nanoseconds[kRounds / 2]);
}
