// Decides how many trials run side by side: as many as there are free cores for.
//
// The cores used by other programs are all busy cores minus those of this study's processes. The number of slots
// changes only if several observations in a row agree, so a short burst of other work changes nothing. It then changes
// by the smallest amount that any of these observations asks for. The caller reads the load of the machine
// (base/proc.h).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "base/proc.h"

namespace sinew::study {

struct SlotOptions {
  int64_t most = 1;       // the most slots; always this many if `adaptive` is false
  bool adaptive = false;  // follow the free cores
  double cores = 1;       // cores that this process may run on
  double allowed = 1;     // cores that this process may use at the same time
  double each = 1;        // cores of one trial
  double every = 10;      // seconds between two observations
  size_t agreeing = 3;    // observations in a row that must agree
};

class TrialSlots {
 public:
  explicit TrialSlots(const SlotOptions& options) : options_(options), slots_(options.most) {}

  int64_t now() const { return slots_; }
  int64_t most() const { return options_.most; }
  bool adaptive() const { return options_.adaptive; }
  // Returns whether it is time for the next observation.
  bool due(double seconds) const;
  // `used` is the CPU time used so far. Returns a sentence for the user if the number of slots changes.
  std::optional<std::string> observe(double seconds, const CpuTimes& used);

 private:
  SlotOptions options_;
  int64_t slots_;
  std::optional<double> observed_at_;
  CpuTimes before_;
  std::deque<int64_t> fitting_;  // how many trials fit the free cores, according to each of the newest observations
};

}  // namespace sinew::study
