// Inside image datasets: turns one file into one sample. Opening (for the statistics) and loading share this. Private
// to the room.
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

// Decodes one file into `out` ([channels, height, width] in [0, 1]). Returns "" on success, else why its bytes do not
// decode. Throws Error when the file cannot be read, or when it has another size and `shape.stretch` is false.
std::string decode_sample(const ImageFile& file, const ImageShape& shape, std::span<float> out);

// Throws the Error for a sample whose bytes do not decode, where the job does not skip such samples.
[[noreturn]] void fail_corrupt(const ImageFile& file, const std::string& why);

// The shape that data.image gives. If it gives no size, the headers of up to 64 files spread over the dataset decide;
// they must agree.
ImageShape shape_of(const spec::DataOptions& options, const std::vector<ImageFile>& train, spec::Reasons& reasons);

// Mean and standard deviation of each channel, over up to 2,000 training images spread evenly over the dataset. The
// result is the same on every machine and for any number of threads.
Normalization measure_normalization(const std::vector<ImageFile>& files, const ImageShape& shape, bool skip_corrupt,
                                    int64_t threads, spec::Reasons& reasons);

}  // namespace sinew::data
