#include "data/loader_threads.h"

#include <algorithm>

#include "base/check.h"

namespace sinew::data {
namespace {

constexpr double kWaits = 0.1;         // of the time, in lanes, is worth more threads
constexpr double kMostlyWaiting = 2;   // seconds of reading for each second of CPU time
constexpr double kWorthKeeping = 1.1;  // the ratio of samples that a try must gain
constexpr int64_t kLongestRest = 256;

}  // namespace

LoaderThreads::LoaderThreads(int64_t begin, int64_t most) : threads_(begin), most_(most) {
  SINEW_CHECK(begin <= most, begin, most);
}

void LoaderThreads::after(const LoadWindow& window) {
  const double rate = window.seconds > 0 ? static_cast<double>(window.use.samples) / window.seconds : 0;
  if (before_ > 0) {
    const bool gained = rate >= kWorthKeeping * rate_before_;
    if (!gained) {
      threads_ = before_;
      rest_ = next_rest_;
      next_rest_ = std::min(kLongestRest, 2 * next_rest_);
    }
    before_ = 0;
    if (!gained) return;
  }
  if (rest_ > 0) {
    --rest_;
    return;
  }
  if (rate <= 0) return;  // nothing to compare with
  const bool lanes_wait = window.waited_seconds >= kWaits * window.seconds;
  const bool loaders_wait = window.use.read_seconds > kMostlyWaiting * window.use.cpu();
  if (threads_ == 0 || threads_ >= most_ || !lanes_wait || !loaders_wait) return;
  before_ = threads_;
  rate_before_ = rate;
  threads_ = std::min(most_, 2 * threads_);
}

}  // namespace sinew::data
