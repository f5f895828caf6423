// Stand-ins for code that is written elsewhere and replaces this file when the branches meet.
#include "data/formats.h"

namespace sinew::data {

std::string to_string(Part part) { return part == Part::train ? "train" : part == Part::val ? "val" : "test"; }

PartIndices split_parts(int64_t size, double val_fraction, double test_fraction, uint64_t seed) {
  PartIndices parts;
  for (int64_t i = 0; i < size; ++i) {
    const double draw = RandomStream(derive(random_key({seed}), static_cast<uint64_t>(i))).uniform();
    (draw < val_fraction ? parts.val : draw < val_fraction + test_fraction ? parts.test : parts.train).push_back(i);
  }
  return parts;
}

std::unique_ptr<Dataset> open_dataset(const spec::DataOptions& options, uint64_t seed) { return open_images(options, seed); }

}  // namespace sinew::data

namespace sinew::spec {

bool AugmentOptions::any() const {
  return crop_padding > 0 || flip > 0 || rotate > 0 || translate > 0 || !scale.empty() || noise > 0;
}

}  // namespace sinew::spec
