#include "study/slots.h"

#include <algorithm>
#include <cmath>

#include "study/text.h"

namespace sinew::study {

bool StudyPlaces::due(double seconds) const {
  return options_.follows && (!looked_ || seconds - *looked_ >= options_.every);
}

std::optional<std::string> StudyPlaces::look(double seconds, const CpuTimes& used) {
  const double passed = looked_ ? seconds - *looked_ : 0;
  const CpuTimes before = before_;
  looked_ = seconds;
  before_ = used;
  if (!(passed > 0)) return std::nullopt;
  const double others = std::max(0.0, (used.busy - before.busy) - (used.own - before.own)) / passed;
  const double free = std::min(options_.allowed, options_.cores - others);
  // Rounded: a core that is nearly free is one.
  const auto wish = std::clamp<int64_t>(std::llround(free / options_.each), 1, options_.most);
  wishes_.push_back(wish);
  if (wishes_.size() > options_.looks) wishes_.pop_front();
  if (wishes_.size() < options_.looks) return std::nullopt;
  const auto [fewest, largest] = std::ranges::minmax(wishes_);
  // The least change that all the looks agree on.
  const int64_t places = std::clamp(places_, fewest, largest);
  if (places == places_) return std::nullopt;
  const bool fewer = places < places_;
  places_ = places;
  const std::string side_by_side = std::to_string(places) + (places == 1 ? " training at a time" : " side by side");
  if (!fewer) return side_by_side + " from now on: there are cores free again";
  return side_by_side + " from now on: other programs use " + short_number(std::round(10 * others) / 10) + " of " +
         short_number(options_.cores) + " cores";
}

}  // namespace sinew::study
