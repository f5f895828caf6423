// Inside data/: the makers behind open_dataset's list of formats, and what they share. Private to the room.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "data/data.h"

namespace sinew::data {

// Each opens every part the options name. `options.format` is already resolved.
std::unique_ptr<Dataset> open_arrays(const spec::DataOptions& options, uint64_t seed);  // idx, cifar10/100, npy, npz
std::unique_ptr<Dataset> open_table(const spec::DataOptions& options, uint64_t seed);   // csv, tsv, jsonl
std::unique_ptr<Dataset> open_text(const spec::DataOptions& options, uint64_t seed);    // text
std::unique_ptr<Dataset> open_images(const spec::DataOptions& options, uint64_t seed);  // image_folder, image_list

// The formats a job may name, in the order `--help` shows them.
struct Format {
  std::string_view name;
  std::unique_ptr<Dataset> (*open)(const spec::DataOptions& options, uint64_t seed);
  std::string_view help;
};
std::span<const Format> formats();

// What data.format: auto means for these files, told by name, content and folder. Throws Error when it can't be told.
struct DetectedFormat {
  std::string format, reason;
};
DetectedFormat detect_format(const spec::DataSource& train, const spec::DataOptions& options);

// Which of the train file's samples each part gets: files named for val or test take nothing from train. A keyed
// permutation decides, so the split is a function of (seed, size, fractions) alone; samples stay in file order.
struct SplitIndices {
  std::vector<int64_t> train, val, test;
};
SplitIndices split_indices(int64_t size, double val_fraction, double test_fraction, uint64_t seed);

// Of the options that decide what the samples are, whatever the files are called: a part of DataInfo.digest beside the
// digests of the files. Augmentation is no part of it: it changes what a run does with its samples, not the samples.
Digest options_digest(const spec::DataOptions& options, uint64_t seed);

// A whole file, gunzipped when it starts with gzip's magic. Throws Error naming the file; `limit` bounds what a hostile
// file can make us allocate.
std::vector<std::byte> read_whole(const std::string& path, uint64_t limit = 1ULL << 36);

// Draws and applies the job's augmentation to one image in place. `pixels`: [channels, height, width], range [0, 1]
// before normalisation. A pure function of its arguments.
void augment_image(const spec::AugmentOptions& options, RandomKey key, std::span<float> pixels, int64_t channels,
                   int64_t height, int64_t width);

// The key of one sample's augmentation.
RandomKey augment_key(uint64_t seed, int64_t epoch, int64_t sample);

// (pixel - mean) / std per channel, after augmentation.
struct Normalization {
  std::vector<float> mean, std;  // one a channel; empty: none
};

}  // namespace sinew::data
