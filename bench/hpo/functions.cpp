#include "functions.h"

#include <cmath>

#include "base/check.h"

namespace sinew::bench {

double shift(std::string_view function, int variant, int axis) {
  if (variant == 0) return 0;
  RandomStream random(derive(derive(derive(random_key({2311}), function), static_cast<uint64_t>(variant)),
                             static_cast<uint64_t>(axis)));
  return random.uniform(-1, 1);
}

size_t Values::index_of(std::string_view name) const {
  for (size_t i = 0; i < space_.size(); ++i) {
    if (space_[i].name == name) return i;
  }
  SINEW_CHECK(false, name);
}

double Values::operator()(std::string_view name) const {
  const double value = point_[index_of(name)];
  SINEW_CHECK(!std::isnan(value), name);
  return value;
}

double Values::log10(std::string_view name) const {
  return std::log10((*this)(name));
}

double Values::log2(std::string_view name) const {
  return std::log2((*this)(name));
}

bool Values::is(std::string_view name, std::string_view choice) const {
  const size_t i = index_of(name);
  return !std::isnan(point_[i]) &&
         space_[i].choices[static_cast<size_t>(point_[i])] == "\"" + std::string(choice) + "\"";
}

}  // namespace sinew::bench
