// Private to data/, for image datasets: turns one file into one sample. Opening a dataset (for the statistics) and
// loading both use this.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/formats.h"
#include "data/image_files.h"

namespace sinew::data {

// The end of the hint about an unknown class of a tar.
inline constexpr char kClassesOfIndex[] =
    "; if the tars come from sinew data pack, copy pack.index beside them: it names their classes";

// The shape of every sample, and whether files of another size are resized to it.
struct ImageShape {
  ImageSize size;
  int64_t channels = 3;
  bool stretch = false;
  int64_t count() const { return channels * size.height * size.width; }
};

// The files of one split, and the target of each.
struct ImageSplit {
  std::vector<ImageFile> files;
  std::vector<int64_t> classes;  // classification
  std::vector<float> values;     // regression
};

// The files of a job, before any of them is read.
struct ListedImages {
  DataInfo info;  // task, classes, sizes and notes
  std::shared_ptr<ImageTexts> texts = std::make_shared<ImageTexts>();
  std::array<ImageSplit, 3> splits;
};
ListedImages list_images(const spec::DataOptions& options, uint64_t seed);

// Decodes one file into `out` ([channels, height, width] in [0, 1]). Returns "", or the reason why the file's bytes do
// not decode, or are not those that were packed. Throws Error if the file cannot be read, or if it has another size and
// `shape.stretch` is false. The bytes of the file may be read into `buffer`. Adds to `use`, unless it is null, what
// reading and decoding took.
std::string decode_sample(const ImageFile& file, const ImageShape& shape, std::span<float> out,
                          std::vector<std::byte>& buffer, LoadUse* use = nullptr);

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
