// Population based training (population.cpp decides which member copies which).
//
// A trial trains one member for one generation: with a population of P, trial i is generation i / P of member i % P. It
// starts from the final state of a trial of the generation before: that of the same member, or that of a better member.
// The sampler waits until a whole generation has ended, so that it compares all members after the same amount of
// training. A suggestion therefore depends on their values, and never on the order in which they ended.
#include <cmath>

#include "tune/makers.h"

namespace sinew::tune {
namespace {

class PbtSampler : public Sampler {
 public:
  Suggestion suggest(const Study& study) override {
    const int64_t index = static_cast<int64_t>(study.started()), population = study.options().population;
    if (index < population) return first(study);
    const int64_t first_before = study.next_id() - index % population - population;
    std::vector<PopulationMember> members;
    for (int64_t member = 0; member < population; ++member) {
      const Trial& trial = study.trial(first_before + member);
      members.push_back({trial.point, study.loss(trial)});
    }
    const auto me = static_cast<size_t>(index % population);
    PopulationStep step = population_step(study.space(), members, me, study.random("pbt"));
    if (!std::isfinite(members[step.from].loss)) return first(study);  // no member has a usable state
    return {.point = std::move(step.point),
            .by = "pbt",
            .why = std::move(step.why),
            .sampler_state = {},
            .from = first_before + static_cast<int64_t>(step.from)};
  }

  bool ready(const Study& study) const override {
    const auto index = static_cast<int64_t>(study.started());
    const int64_t generation_start = study.next_id() - index % study.options().population;
    return study.open().empty() || study.open().front() >= generation_start;
  }

  // Trial `id`'s state is needed until all trials of the next generation have ended, because each may start from it.
  bool needs(const Study& study, int64_t id) const override {
    const int64_t population = study.options().population;
    const int64_t generation = index_of(study, id) / population, next = (generation + 1) * population;
    if (study.options().budget > 0 && next >= study.options().budget) return false;  // this is the last generation
    const auto started = static_cast<int64_t>(study.started());
    const bool open = !study.open().empty() && index_of(study, study.open().front()) < next + population;
    return started < next + population || open;
  }

 private:
  static int64_t index_of(const Study& study, int64_t id) {
    return id - (study.next_id() - static_cast<int64_t>(study.started()));
  }

  Suggestion first(const Study& study) {
    Suggestion suggestion = design_->suggest(study);
    suggestion.by = "pbt";
    suggestion.why = study.started() < static_cast<size_t>(study.options().population)
                         ? "the first generation: a space-filling point"
                         : "no member has a usable state: it starts again";
    return suggestion;
  }

  std::unique_ptr<Sampler> design_ = make_sobol();
};

}  // namespace

std::unique_ptr<Sampler> make_pbt() {
  return std::make_unique<PbtSampler>();
}

}  // namespace sinew::tune
