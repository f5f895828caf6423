// Random search: suggests uniformly random points (Bergstra, Bengio, "Random search for hyper-parameter optimization",
// JMLR 2012).
#include "tune/allowed.h"
#include "tune/makers.h"

namespace sinew::tune {
namespace {

class RandomSampler : public Sampler {
 public:
  Suggestion suggest(const Study& study) override {
    RandomStream random = study.random("random");
    const Space& space = study.space();
    Point point = first_allowed(space, kAllowedDraws, [&] { return random_point(space, random); });
    return {std::move(point), "random", "drawn at random", {}};
  }
};

}  // namespace

std::unique_ptr<Sampler> make_random() {
  return std::make_unique<RandomSampler>();
}

}  // namespace sinew::tune
