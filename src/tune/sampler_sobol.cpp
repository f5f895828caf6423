// Suggests scrambled Sobol points (tune/sobol.h), which cover the space evenly for any number of trials.
#include "tune/allowed.h"
#include "tune/makers.h"

namespace sinew::tune {
namespace {

class SobolSampler : public Sampler {
 public:
  Suggestion suggest(const Study& study) override {
    return {design_.next_point(study), "sobol", "the next point of a space-filling design", {}};
  }

 private:
  SobolDesign design_{"sobol"};
};

}  // namespace

std::unique_ptr<Sampler> make_sobol() {
  return std::make_unique<SobolSampler>();
}

}  // namespace sinew::tune
