// Random search: Bergstra, Bengio, "Random search for hyper-parameter optimization" (JMLR 2012).
#include "tune/makers.h"

namespace sinew::tune {
namespace {

class RandomSampler : public Sampler {
 public:
  Suggestion suggest(const Study& study) override {
    RandomStream random = study.random("random");
    std::vector<double> unit(study.space().size());
    for (double& u : unit) u = random.uniform();
    return {study.space().from_unit(unit), "random", "drawn at random", {}};
  }
};

}  // namespace

std::unique_ptr<Sampler> make_random() {
  return std::make_unique<RandomSampler>();
}

}  // namespace sinew::tune
