#include "tune/allowed.h"

#include "tune/sobol.h"

namespace sinew::tune {

Point random_point(const Space& space, RandomStream& random) {
  std::vector<double> unit(space.size());
  for (double& u : unit) u = random.uniform();
  return space.from_unit(unit);
}

Point SobolDesign::next_point(const Study& study) {
  const Space& space = study.space();
  const int64_t wanted = study.next_id();
  if (const RandomKey key = study.key(purpose_); key != key_ || wanted < allowed_) {
    key_ = key;
    index_ = allowed_ = 0;
  }
  std::vector<double> unit(space.size());
  const auto point_at = [&](int64_t index) {
    sobol_point(key_, static_cast<uint32_t>(index), unit);
    return space.from_unit(unit);
  };
  if (space.constraints().empty()) return point_at(wanted);
  for (; index_ < (wanted + 1) * kAllowedDraws; ++index_) {
    Point point = point_at(index_);
    if (!space.allows(point)) continue;
    if (allowed_ == wanted) return point;
    ++allowed_;
  }
  // Hardly any point satisfies the constraints. If this one does not, suggest_next() replaces it.
  return point_at(wanted);
}

}  // namespace sinew::tune
