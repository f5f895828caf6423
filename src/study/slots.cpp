#include "study/slots.h"

#include <algorithm>
#include <cmath>

#include "study/text.h"

namespace sinew::study {

bool TrialSlots::due(double seconds) const {
  return options_.adaptive && (!observed_at_ || seconds - *observed_at_ >= options_.every);
}

std::optional<std::string> TrialSlots::observe(double seconds, const CpuTimes& used) {
  const double passed = observed_at_ ? seconds - *observed_at_ : 0;
  const CpuTimes before = before_;
  observed_at_ = seconds;
  before_ = used;
  if (!(passed > 0)) return std::nullopt;
  const double others = std::max(0.0, (used.busy - before.busy) - (used.own - before.own)) / passed;
  const double free = std::min(options_.allowed, options_.cores - others);
  // The rounding counts a core that is nearly free as free.
  fitting_.push_back(std::clamp<int64_t>(std::llround(free / options_.each), 1, options_.most));
  if (fitting_.size() > options_.agreeing) fitting_.pop_front();
  if (fitting_.size() < options_.agreeing) return std::nullopt;
  const auto [fewest, most] = std::ranges::minmax(fitting_);
  const int64_t slots = std::clamp(slots_, fewest, most);
  if (slots == slots_) return std::nullopt;
  const bool fewer = slots < slots_;
  slots_ = slots;
  const std::string now =
      "from now on " + std::to_string(slots) + (slots == 1 ? " trial runs" : " trials run") + " at a time: ";
  if (!fewer) return now + "cores are free again";
  return now + "other programs use " + short_number(std::round(10 * others) / 10) + " of " +
         short_number(options_.cores) + " cores";
}

}  // namespace sinew::study
