// Measures a sample of the files when an image dataset is opened. It finds their common size, and the mean and standard
// deviation of each channel.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <exception>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "data/image_folder.h"

namespace sinew::data {
namespace {

constexpr int64_t kMaxProbes = 64, kMaxMeasured = 2000;
constexpr int64_t kMaxImageSide = 16384, kMaxArea = 1 << 26;

std::string text_of(ImageSize size) {
  return std::to_string(size.width) + " x " + std::to_string(size.height);
}

// Returns up to `wanted` indices, spread evenly over 0..count-1.
std::vector<int64_t> spread(int64_t count, int64_t wanted) {
  const int64_t size = std::min(count, wanted);
  std::vector<int64_t> chosen(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i) chosen[static_cast<size_t>(i)] = i * count / size;
  return chosen;
}

ImageSize common_size(const std::vector<ImageFile>& train, bool skip_corrupt, spec::Reasons& reasons) {
  const ImageFile* first = nullptr;
  ImageSize size;
  const std::vector<int64_t> probes = spread(static_cast<int64_t>(train.size()), kMaxProbes);
  std::vector<std::byte> buffer;
  for (const int64_t i : probes) {
    const ImageFile& file = train[static_cast<size_t>(i)];
    const std::span<const std::byte> bytes = read_image_file(file, buffer);
    const std::string refused = refused_array(file, bytes);
    const Decoded<ImageSize> found = refused.empty() ? image_size(bytes) : Undecodable{refused};
    if (!found && !skip_corrupt) fail_corrupt(file, found.error());
    if (!found) continue;
    if (first == nullptr) {
      first = &file;
      size = *found;
    } else if (*found != size) {
      throw Error("DATA_SHAPE_MISMATCH",
                  "the images differ in size: " + first->path() + " is " + text_of(size) + ", " + file.path() + " is " +
                      text_of(*found) + " (width x height)",
                  "set data.image.size: [height, width], for example [224, 224]");
    }
  }
  if (first == nullptr) {
    throw Error("DATA_CORRUPT_IMAGE",
                "none of " + std::to_string(probes.size()) + " images decodes; the first is " + train.front().path(),
                "check that the files are JPEG, PNG, WebP, GIF, BMP or TIFF images");
  }
  reasons["data.image.size"] = "all " + std::to_string(probes.size()) + " inspected files are " + text_of(size);
  return size;
}

// Sums over one image, for each channel.
struct Sums {
  std::vector<double> sum, square;
  bool counted = false;
};

Sums sums_of(const ImageFile& file, const ImageShape& shape, bool skip_corrupt, std::vector<float>& pixels,
             std::vector<std::byte>& buffer) {
  const std::string why = decode_sample(file, shape, pixels, buffer);
  if (!why.empty() && !skip_corrupt) fail_corrupt(file, why);
  Sums sums{std::vector<double>(static_cast<size_t>(shape.channels)), {}, why.empty()};
  sums.square = sums.sum;
  if (!sums.counted) return sums;
  const int64_t plane = shape.size.height * shape.size.width;
  for (int64_t c = 0; c < shape.channels; ++c) {
    double sum = 0, square = 0;
    for (int64_t i = 0; i < plane; ++i) {
      const double value = pixels[static_cast<size_t>(c * plane + i)];
      sum += value;
      square += value * value;
    }
    sums.sum[static_cast<size_t>(c)] = sum;
    sums.square[static_cast<size_t>(c)] = square;
  }
  return sums;
}

// Returns one result for each chosen file. Several threads share the files; which thread takes which file does not
// matter. If files fail, rethrows the first failure in file order.
std::vector<Sums> sums_of_all(const std::vector<ImageFile>& files, const std::vector<int64_t>& chosen,
                              const ImageShape& shape, bool skip_corrupt, int64_t threads) {
  std::vector<Sums> results(chosen.size());
  std::vector<std::exception_ptr> failures(chosen.size());
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  const auto work = [&] {
    std::vector<float> pixels(static_cast<size_t>(shape.count()));
    std::vector<std::byte> buffer;
    for (size_t i = next++; i < chosen.size() && !failed; i = next++) {
      try {
        results[i] = sums_of(files[static_cast<size_t>(chosen[i])], shape, skip_corrupt, pixels, buffer);
      } catch (...) {
        failures[i] = std::current_exception();
        failed = true;
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (int64_t i = 1; i < std::min<int64_t>(threads, static_cast<int64_t>(chosen.size())); ++i)
      others.emplace_back(work);
    work();
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return results;
}

}  // namespace

ImageShape shape_of(const spec::DataOptions& options, const std::vector<ImageFile>& train, spec::Reasons& reasons) {
  ImageShape shape;
  shape.channels = options.image.channels;
  if (shape.channels != 1 && shape.channels != 3) {
    throw Error("DATA_BAD_OPTION", "data.image.channels is " + std::to_string(shape.channels),
                "use 1 (grey) or 3 (colour)");
  }
  if (options.image.size.empty()) {
    shape.size = common_size(train, options.on_corrupt == "skip", reasons);
    return shape;
  }
  if (options.image.size.size() != 2) {
    throw Error("DATA_BAD_OPTION", "data.image.size is not two numbers", "write [height, width]");
  }
  shape.size = {options.image.size[0], options.image.size[1]};
  shape.stretch = true;
  const bool sane = std::min(shape.size.height, shape.size.width) >= 1 &&
                    std::max(shape.size.height, shape.size.width) <= kMaxImageSide &&
                    shape.size.height * shape.size.width <= kMaxArea;
  if (!sane) {
    throw Error("DATA_BAD_OPTION", "data.image.size is " + text_of(shape.size) + " (width x height)",
                "use sizes from 1 to a few thousand");
  }
  return shape;
}

Normalization measure_normalization(const std::vector<ImageFile>& files, const ImageShape& shape, bool skip_corrupt,
                                    int64_t threads, spec::Reasons& reasons) {
  const std::vector<int64_t> chosen = spread(static_cast<int64_t>(files.size()), kMaxMeasured);
  const std::vector<Sums> results = sums_of_all(files, chosen, shape, skip_corrupt, threads);
  Normalization normalization;
  int64_t images = 0;
  for (const Sums& sums : results) images += sums.counted ? 1 : 0;
  if (images == 0) {
    throw Error("DATA_CORRUPT_IMAGE", "none of the training images decodes; the first is " + files.front().path(),
                "check that the files are JPEG, PNG, WebP, GIF, BMP or TIFF images");
  }
  const auto pixels = static_cast<double>(images * shape.size.height * shape.size.width);
  std::string means, deviations;
  for (size_t c = 0; c < static_cast<size_t>(shape.channels); ++c) {
    double sum = 0, square = 0;
    for (const Sums& sums : results) {
      sum += sums.sum[c];
      square += sums.square[c];
    }
    const double mean = sum / pixels, variance = square / pixels - mean * mean;
    const double deviation = variance > 1e-12 ? std::sqrt(variance) : 1.0;
    normalization.mean.push_back(static_cast<float>(mean));
    normalization.std.push_back(static_cast<float>(deviation));
    char text[32];
    std::snprintf(text, sizeof text, "%s%.4f", c == 0 ? "" : ", ", mean);
    means += text;
    std::snprintf(text, sizeof text, "%s%.4f", c == 0 ? "" : ", ", deviation);
    deviations += text;
  }
  reasons["data.normalize"] = "mean [" + means + "] and standard deviation [" + deviations + "] of " +
                              std::to_string(images) + " of the " + std::to_string(files.size()) + " training images";
  return normalization;
}

}  // namespace sinew::data
