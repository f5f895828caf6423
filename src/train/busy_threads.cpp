#include "train/busy_threads.h"

namespace sinew::train {
namespace {

constexpr int kSteps = 4096;  // between two looks at what to do: some microseconds

// A chain of multiplications in registers. The compiler cannot leave it out, because the result is stored.
void compute_a_while(double& kept) {
  double value = kept;
  for (int i = 0; i < kSteps; ++i) value = value * 0.999999 + 1e-6;
  kept = value;
}

// Reads one number of each cache line, in several sums, so that the memory and not the adder limits it.
size_t read_a_while(const std::vector<double>& numbers, size_t at, double& kept) {
  constexpr size_t kLine = 8;
  double sums[4] = {};
  for (int i = 0; i < kSteps / 4; ++i) {
    for (size_t k = 0; k < 4; ++k) sums[k] += numbers[at + k * kLine];
    at += 4 * kLine;
    if (at + 4 * kLine > numbers.size()) at = 0;
  }
  kept += sums[0] + sums[1] + sums[2] + sums[3];
  return at;
}

}  // namespace

BusyThreads::BusyThreads(int count) : numbers_(kBytes / sizeof(double), 1.0) {
  try {
    for (int thread = 0; thread < count; ++thread)
      threads_.emplace_back([this, thread] { loop(static_cast<size_t>(thread)); });
  } catch (...) {
    stop();
    throw;
  }
}

BusyThreads::~BusyThreads() {
  stop();
}

void BusyThreads::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    work_ = Work::rest;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void BusyThreads::work(Work what) {
  {
    const std::lock_guard lock(mutex_);
    work_ = what;
  }
  wake_.notify_all();
}

void BusyThreads::loop(size_t thread) {
  // the threads begin at different places, so that they do not share what they read
  size_t at = (thread * 999'983 * 32) % (numbers_.size() - 64);
  at -= at % 8;
  volatile double result = 0;
  double kept = 1;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || work_ != Work::rest; });
      if (stopping_) return;
    }
    for (Work what = work_; what != Work::rest; what = work_) {
      what == Work::compute ? compute_a_while(kept) : void(at = read_a_while(numbers_, at, kept));
    }
    result = kept;
  }
  static_cast<void>(result);
}

}  // namespace sinew::train
