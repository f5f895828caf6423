// Private to data/, for image datasets: turns one file into one sample. Opening a dataset (for the statistics) and
// loading both use this.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "data/formats.h"
#include "data/image_files.h"

namespace sinew::data {

// The shape of every sample, and whether files of another size are resized to it.
struct ImageShape {
  ImageSize size;
  int64_t channels = 3;
  bool stretch = false;
  int64_t count() const { return channels * size.height * size.width; }
};

// Decodes one file into `out` ([channels, height, width] in [0, 1]). Returns "", or the reason why the file's bytes do
// not decode. Throws Error if the file cannot be read, or if it has another size and `shape.stretch` is false.
std::string decode_sample(const ImageFile& file, const ImageShape& shape, std::span<float> out);

// Throws the Error for a sample whose bytes do not decode, in a job that does not skip such samples.
[[noreturn]] void fail_corrupt(const ImageFile& file, const std::string& why);

// Returns the shape that data.image gives. If it gives no size, the headers of up to 64 files spread over the dataset
// give the size, and must agree.
ImageShape shape_of(const spec::DataOptions& options, const std::vector<ImageFile>& train, spec::Reasons& reasons);

// Returns the mean and standard deviation of each channel, over up to 2,000 training images spread evenly over the
// dataset. The result is the same on every machine and for any number of threads.
Normalization measure_normalization(const std::vector<ImageFile>& files, const ImageShape& shape, bool skip_corrupt,
                                    int64_t threads, spec::Reasons& reasons);

}  // namespace sinew::data
