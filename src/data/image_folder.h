// Inside image data sets: how one file becomes one sample, shared by opening (statistics) and loading. Private to the
// room.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "data/formats.h"
#include "data/image_files.h"

namespace sinew::data {

// The shape every sample has, and whether files of another size are stretched to it.
struct ImageShape {
  ImageSize size;
  int64_t channels = 3;
  bool stretch = false;
  int64_t count() const { return channels * size.height * size.width; }
};

// Decodes one file into `out` ([channels, height, width], [0, 1]). "" on success, else why its bytes do not decode.
// Throws Error when the file cannot be read, or is of another size and not to be stretched.
std::string decode_sample(const ImageFile& file, const ImageShape& shape, std::span<float> out);

// A sample's bytes do not decode and the job says fail.
[[noreturn]] void fail_corrupt(const ImageFile& file, const std::string& why);

// The shape from data.image, or, where it gives no size, from the headers of up to 64 files spread over the set, which
// must agree.
ImageShape shape_of(const spec::DataOptions& options, const std::vector<ImageFile>& train, spec::Reasons& reasons);

// Mean and deviation of each channel over up to 2,000 training images spread evenly over the set; the same on every
// machine and with any number of threads.
Normalization measure(const std::vector<ImageFile>& files, const ImageShape& shape, bool skip_corrupt, int64_t threads,
                      spec::Reasons& reasons);

}  // namespace sinew::data
