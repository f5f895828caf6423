// Private to exports/: made-up samples, raw and as the model takes them, to compare an export with its model.
#pragma once

#include <map>
#include <string>

#include "exports/graph.h"

namespace sinew::exports {

struct Samples {
  std::map<std::string, Value> raw;  // the inputs of the graph by name
  torch::Tensor array;               // arrays and text: the only raw input, text as tokens
  torch::Tensor prepared;            // what the model takes
  std::string what;                  // "made-up rows", for a message
};
// The same samples at every call. Rows of a table have missing, rare and unknown values, too; data/ encodes them.
Samples make_samples(const train::LoadedModel& loaded, int64_t count);

// What the trained model computes for the samples, as a user gets it.
struct Results {
  torch::Tensor numbers;           // float64: [count, classes] probabilities, or [count, width] in the target's units
  std::vector<std::string> names;  // the most likely class of each sample
};
Results results_of(train::LoadedModel& loaded, const torch::Tensor& prepared);

// The largest difference between numbers that an export may have: of probabilities, or of predictions in standard
// deviations of the target.
inline constexpr double kMostDifference = 1e-4;
// Returns the largest difference. Throws Error if it is larger than kMostDifference.
double compare(const Outcomes& outcomes, const torch::Tensor& made, const torch::Tensor& wanted,
               const std::string& format);

}  // namespace sinew::exports
