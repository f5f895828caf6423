// Loads the training samples of an image data set in batches, in the random order of an epoch, in one thread. Prints
// how many samples a second it loads, after a warm-up of 30 % of the time.
// usage: input_loop PATH SIDE CROP_PADDING BATCH SECONDS
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/clock.h"
#include "data/data.h"

namespace {

int run(char** words) {
  using namespace sinew;
  spec::DataOptions options;
  options.train.path = words[1];
  options.image.size = {std::atoll(words[2]), std::atoll(words[2])};
  options.augment.crop_padding = std::atoll(words[3]);
  options.augment.flip = options.augment.crop_padding > 0 ? 0.5 : 0.0;
  const int64_t batch = std::atoll(words[4]);
  const double seconds = std::atof(words[5]);

  const auto dataset = data::open_dataset(options, 0);
  Clock& clock = system_clock();
  const double began = clock.monotonic_seconds();
  double first = 0;  // the end of the warm-up
  int64_t loaded = 0;
  for (int64_t epoch = 0;; ++epoch) {
    const int64_t size = dataset->size(data::Split::train);
    const data::Permutation order = data::epoch_order(0, epoch, size);
    for (int64_t at = 0; at + batch <= size; at += batch) {
      std::vector<int64_t> samples(static_cast<size_t>(batch));
      for (int64_t i = 0; i < batch; ++i) samples[static_cast<size_t>(i)] = order[at + i];
      dataset->load(data::Split::train, samples, {0, epoch, true});
      const double now = clock.monotonic_seconds();
      if (first == 0 && now - began > 0.3 * seconds) {
        first = now;
      } else if (first > 0) {
        loaded += batch;
      }
      if (now - began < seconds || first == 0 || loaded == 0) continue;
      std::printf("%.1f\n", static_cast<double>(loaded) / (now - first));
      return 0;
    }
    if (size < batch)
      return std::fprintf(stderr, "the data set has only %lld samples\n", static_cast<long long>(size)), 2;
  }
}

}  // namespace

int main(int count, char** words) {
  if (count != 6) return std::fprintf(stderr, "usage: input_loop PATH SIDE CROP_PADDING BATCH SECONDS\n"), 2;
  try {
    return run(words);
  } catch (const sinew::Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
}
