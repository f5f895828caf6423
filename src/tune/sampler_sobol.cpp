// Scrambled Sobol points (tune/sobol.h): the most even cover of the space for any number of trials.
#include "tune/makers.h"
#include "tune/sobol.h"

namespace sinew::tune {
namespace {

class SobolSampler : public Sampler {
 public:
  Suggestion suggest(const Study& study) override {
    std::vector<double> unit(study.space().size());
    sobol_point(study.key("sobol"), static_cast<uint32_t>(study.next_id()), unit);
    return {study.space().from_unit(unit), "sobol", "the next point of an even cover", {}};
  }
};

}  // namespace

std::unique_ptr<Sampler> make_sobol() {
  return std::make_unique<SobolSampler>();
}

}  // namespace sinew::tune
