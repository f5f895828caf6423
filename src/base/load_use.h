// Measures on what the threads that load samples spend their time.
//
// A loader reads files, decodes them, augments the samples and copies them into a batch. Reading mostly waits, so its
// time on the clock counts as well; everything else computes, so only its CPU time counts: a loader that has no core
// would seem slow otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sinew {

enum class LoadStage : uint8_t {
  read,     // open and read files
  decode,   // from the bytes of a file to pixels of the sample's size
  augment,  // random changes of a training sample, and normalisation
  copy,     // everything else: conversion of numbers, and copies within the memory
};
inline constexpr size_t kLoadStages = static_cast<size_t>(LoadStage::copy) + 1;
std::string_view name_of(LoadStage stage);  // as in report.json

// The sums of all threads that loaded samples.
struct LoadUse {
  int64_t threads = 0;                            // threads that load samples ahead
  std::array<double, kLoadStages> cpu_seconds{};  // by stage
  double read_seconds = 0;                        // time on the clock in LoadStage::read
  int64_t samples = 0, read_bytes = 0;
  double& operator[](LoadStage stage) { return cpu_seconds[static_cast<size_t>(stage)]; }
  double operator[](LoadStage stage) const { return cpu_seconds[static_cast<size_t>(stage)]; }
  double cpu() const;                       // of all stages
  LoadUse& operator+=(const LoadUse& use);  // keeps `threads`
  bool operator==(const LoadUse&) const = default;
};

LoadUse between(const LoadUse& earlier, const LoadUse& later);  // what came in between; has the threads of `later`

// Measures the calling thread. Each reading of the thread's CPU time is a call of the kernel, of about 0.3 us, so it is
// for work that takes far longer: the file of an image, or a whole batch.
class LoadWatch {
 public:
  // The clock is ten times cheaper than the CPU time. It measures work that waits for nothing as well, as long as no
  // other thread takes the core. So it is for lanes that copy samples, and not for loaders, which have a low priority.
  enum class Work { may_wait, never_waits };
  explicit LoadWatch(LoadUse& use, Work work = Work::may_wait);
  void ended(LoadStage stage);  // the time since the constructor or the last call was spent in `stage`
  // What no call of ended(), of this or of another watch of the same thread, has counted since the constructor belongs
  // to `stage`.
  void rest(LoadStage stage);

 private:
  double cpu_seconds() const;
  LoadUse& use_;
  const Work work_;
  double cpu_, clock_;
  const double cpu_at_begin_, counted_at_begin_;
};

}  // namespace sinew
