#include "base/load_use.h"

#include <algorithm>
#include <ctime>
#include <numeric>

#include "base/clock.h"

namespace sinew {
namespace {

double thread_cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

std::string_view name_of(LoadStage stage) {
  constexpr std::array<std::string_view, kLoadStages> kNames = {"read", "decode", "augment", "copy"};
  return kNames[static_cast<size_t>(stage)];
}

double LoadUse::cpu() const {
  return std::accumulate(cpu_seconds.begin(), cpu_seconds.end(), 0.0);
}

LoadUse& LoadUse::operator+=(const LoadUse& use) {
  for (size_t i = 0; i < kLoadStages; ++i) cpu_seconds[i] += use.cpu_seconds[i];
  read_seconds += use.read_seconds;
  samples += use.samples;
  read_bytes += use.read_bytes;
  return *this;
}

LoadUse between(const LoadUse& earlier, const LoadUse& later) {
  LoadUse use = later;
  for (size_t i = 0; i < kLoadStages; ++i) use.cpu_seconds[i] -= earlier.cpu_seconds[i];
  use.read_seconds -= earlier.read_seconds;
  use.samples -= earlier.samples;
  use.read_bytes -= earlier.read_bytes;
  return use;
}

double LoadWatch::cpu_seconds() const {
  return work_ == Work::never_waits ? system_clock().monotonic_seconds() : thread_cpu_seconds();
}

LoadWatch::LoadWatch(LoadUse& use, Work work)
    : use_(use),
      work_(work),
      cpu_(cpu_seconds()),
      clock_(system_clock().monotonic_seconds()),
      cpu_at_begin_(cpu_),
      counted_at_begin_(use.cpu()) {}

void LoadWatch::ended(LoadStage stage) {
  const double cpu = cpu_seconds(), clock = system_clock().monotonic_seconds();
  use_[stage] += cpu - cpu_;
  if (stage == LoadStage::read) use_.read_seconds += clock - clock_;
  cpu_ = cpu;
  clock_ = clock;
}

void LoadWatch::rest(LoadStage stage) {
  cpu_ = cpu_seconds();
  use_[stage] += std::max(0.0, cpu_ - cpu_at_begin_ - (use_.cpu() - counted_at_begin_));
}

}  // namespace sinew
