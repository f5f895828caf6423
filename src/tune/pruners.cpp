// Lists all pruners.
#include <cmath>

#include "base/error.h"
#include "tune/makers.h"

namespace sinew::tune {
namespace {

// Lets every trial run to its end.
class NoPruner : public Pruner {
 public:
  Verdict judge(const Study&, const Trial&) override {
    return {PruneDecision::keep_running, "every trial runs to its end"};
  }
};

std::unique_ptr<Pruner> make_none(const PrunerOptions&) {
  return std::make_unique<NoPruner>();
}

constexpr PrunerMaker kPruners[] = {
    {"none", make_none, "every trial runs to its end"},
    {"auto", make_auto_pruner, "curve if max_resource is known, else median"},
    {"curve", make_curve, "continues the trials whose learning curve may become the best"},
    {"asha", make_asha, "promotes one in reduction_factor trials from every rung; the others stay paused"},
    {"hyperband", make_hyperband, "asha in brackets that start on higher and higher rungs"},
    {"median", make_median, "prunes trials that are worse than the median at the same step"},
};

}  // namespace

std::optional<Promotion> Pruner::promote(const Study&, bool) {
  return std::nullopt;
}

std::span<const PrunerMaker> pruners() {
  return kPruners;
}

std::unique_ptr<Pruner> make_pruner(const PrunerOptions& options) {
  if (!std::isfinite(options.max_resource) || !std::isfinite(options.min_resource))
    throw Error("TUNE_BAD_PRUNER", "pruner '" + options.name + "': min_resource and max_resource must be finite",
                R"(for example "max_resource":81)");
  std::string names;
  for (const PrunerMaker& maker : kPruners) {
    if (options.name == maker.name) return maker.make(options);
    names += (names.empty() ? "" : ", ") + std::string(maker.name);
  }
  throw Error("TUNE_UNKNOWN_PRUNER", "there is no pruner '" + options.name + "'", "use one of " + names);
}

}  // namespace sinew::tune
