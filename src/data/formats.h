// Private to data/: the functions that open_dataset calls for each format, and the code that these share.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "data/data.h"

namespace sinew::data {

// Each function opens every split that the options name. `options.format` is already resolved.
std::unique_ptr<Dataset> open_arrays(const spec::DataOptions& options, uint64_t seed);  // idx, cifar10/100, npy, npz
std::unique_ptr<Dataset> open_table(const spec::DataOptions& options, uint64_t seed);   // csv, tsv, jsonl
std::unique_ptr<Dataset> open_text(const spec::DataOptions& options, uint64_t seed);    // text
std::unique_ptr<Dataset> open_images(const spec::DataOptions& options, uint64_t seed);  // images in files or tars

// The formats that a job may name, in the order in which `--help` shows them.
struct Format {
  std::string_view name;
  std::unique_ptr<Dataset> (*open)(const spec::DataOptions& options, uint64_t seed);
  std::string_view help;
};
std::span<const Format> formats();

// Finds the format for `data.format: auto` from the names, the content and the folder of the files. Throws Error if
// they do not tell the format.
struct DetectedFormat {
  std::string format, reason;
};
DetectedFormat detect_format(const spec::DataSource& train, const spec::DataOptions& options);

// Returns the digest of the options that decide what the samples are. DataInfo.digest combines it with the digests of
// the files. It covers neither file names nor augmentation, because augmentation changes how a run uses its samples,
// not the samples.
Digest options_digest(const spec::DataOptions& options, uint64_t seed);

// Draws and applies the job's augmentation to one image, in place. `pixels` is [channels, height, width] in [0, 1],
// before normalisation. A pure function of its arguments.
void augment_image(const spec::AugmentOptions& options, RandomKey key, std::span<float> pixels, int64_t channels,
                   int64_t height, int64_t width);

// The key of one sample's augmentation.
RandomKey augment_key(uint64_t seed, int64_t epoch, int64_t sample);

// Computes (pixel - mean) / std for each channel. Runs after augmentation. Empty vectors mean no normalisation.
struct Normalization {
  std::vector<float> mean, std;               // one for each channel
  void apply(std::span<float> pixels) const;  // [channels, height, width]
};

// Sets info.target_mean, target_std, target_low and target_high of regression targets; info.target_shape must be set.
// `targets` has those of all samples, one after another. Constant targets get std 1.
void set_target_moments(std::span<const float> targets, DataInfo& info);

}  // namespace sinew::data
