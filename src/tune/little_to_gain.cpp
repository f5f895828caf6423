// Decides when a study has converged.
//
// Every suggestion of the Gaussian process carries its expected improvement: the best that the sampler found. If
// several suggestions in a row expect a negligible improvement, the rest of the budget is not worth spending (Nguyen,
// Gupta, Rana, Li, Venkatesh, "Regret for expected improvement over the best-observed value and stopping condition",
// ACML 2017).
#include <algorithm>
#include <cstdio>

#include "tune/tune.h"

namespace sinew::tune {
std::optional<std::string> little_to_gain(const Study& study) {
  const size_t d = study.space().size();
  if (study.observed().size() < 10 + 2 * d) return std::nullopt;
  const size_t needed = std::max<size_t>(5, d);
  size_t said = 0;
  double most = 0;
  // Trials that run side by side were suggested from nearly the same trial history. Together they count as one
  // suggestion.
  const auto side_by_side = static_cast<int64_t>(study.open().size()) + 1;
  int64_t next = study.next_id();
  for (auto trial = study.trials().rbegin(); trial != study.trials().rend() && said < needed; ++trial) {
    if (!trial->gain) continue;  // another sampler made the suggestion, or it was made within one choice
    most = std::max(most, *trial->gain);
    if (trial->id >= next) continue;
    next = trial->id - side_by_side + 1;
    ++said;
  }
  if (said < needed || !(most < kLittleGain)) return std::nullopt;
  char text[160];
  std::snprintf(text, sizeof text,
                "none of the last %zu suggestions was expected to gain more than %.2g %% of the best value's lead over "
                "the median",
                needed, 100 * most);
  return text;
}

}  // namespace sinew::tune
