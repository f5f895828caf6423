#include "tune/allowed.h"

#include "tune/sobol.h"

namespace sinew::tune {

Point random_point(const Space& space, RandomStream& random) {
  std::vector<double> unit(space.size());
  for (double& u : unit) u = random.uniform();
  return space.from_unit(unit);
}

Point next_of_cover(const Study& study, std::string_view purpose) {
  const Space& space = study.space();
  const RandomKey key = study.key(purpose);
  std::vector<double> unit(space.size());
  const int64_t wanted = study.next_id();
  int64_t index = space.constraints().empty() ? wanted : 0, allowed = index;
  while (true) {
    sobol_point(key, static_cast<uint32_t>(index), unit);
    Point point = space.from_unit(unit);
    const bool counts = space.allows(point);
    if ((counts && allowed == wanted) || index >= (wanted + 1) * kAllowedDraws) return point;
    allowed += counts;
    ++index;
  }
}

}  // namespace sinew::tune
