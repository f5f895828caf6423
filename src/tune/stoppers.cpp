// The stoppers there are.
#include <cmath>

#include "base/error.h"
#include "tune/makers.h"

namespace sinew::tune {
namespace {

// Lets every trial run to its end.
class NoStopper : public Stopper {
 public:
  Verdict judge(const Study&, const Trial&) override { return {Course::go_on, "every trial runs to its end"}; }
};

std::unique_ptr<Stopper> make_none(const StopperOptions&) {
  return std::make_unique<NoStopper>();
}

constexpr StopperMaker kStoppers[] = {
    {"none", make_none, "every trial runs to its end"},
    {"auto", make_auto_stopper, "curve when max_resource is known, else median"},
    {"curve", make_curve, "goes on with the trials whose learning curve may become the best"},
    {"asha", make_asha, "on every rung one in reduction_factor goes on; the others wait"},
    {"hyperband", make_hyperband, "asha in brackets that begin on higher and higher rungs"},
    {"median", make_median, "ends trials worse than the median at the same step"},
};

}  // namespace

std::optional<Promotion> Stopper::promote(const Study&, bool) {
  return std::nullopt;
}

std::span<const StopperMaker> stoppers() {
  return kStoppers;
}

std::unique_ptr<Stopper> make_stopper(const StopperOptions& options) {
  if (!std::isfinite(options.max_resource) || !std::isfinite(options.min_resource))
    throw Error("'" + options.name + "': min_resource and max_resource must be finite", R"("max_resource":81)");
  std::string names;
  for (const StopperMaker& maker : kStoppers) {
    if (options.name == maker.name) return maker.make(options);
    names += (names.empty() ? "" : ", ") + std::string(maker.name);
  }
  throw Error("no stopper '" + options.name + "'", "one of " + names);
}

}  // namespace sinew::tune
