// Chooses the arithmetic of a training, its precision and memory format, by what trials have measured: pure decisions.
// Private to train/.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/resolve.h"

namespace sinew::train {

// How the numbers of a step are computed and laid out.
struct Arithmetic {
  std::string precision = "fp32", memory_format = "contiguous";
  bool operator==(const Arithmetic&) const = default;
};

// Returns what comes into question for a job that wants the fastest, the plainest first: fp32 before bf16, contiguous
// before channels_last. An option that the job gives stays; a memory format that is auto follows the precision.
std::vector<Arithmetic> arithmetics_of(const spec::Job& job, const data::DataInfo& data, const Machine& machine);

// What the trials of one arithmetic have shown.
struct ArithmeticTrial {
  Arithmetic how;
  std::vector<double> rounds = {};  // the mean duration of a step in each round, in seconds
  double loss = 0;                  // the mean of the first steps; they have the same samples in all trials
  std::string error = {};           // why it cannot train the model; empty: it can
};

inline constexpr size_t kFewestRounds = 2;  // of a trial that counts

struct ArithmeticChoice {
  Arithmetic how;
  std::string reason;  // a sentence with the figures
};
// Chooses the plainest one that is nearly as fast as the fastest. An arithmetic whose loss differs much from that of
// the first trial does not count: the training would be another one. Returns nullopt if too little was measured.
std::optional<ArithmeticChoice> choose_arithmetic(const std::vector<ArithmeticTrial>& trials);

}  // namespace sinew::train
