#include "data/array_dataset.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "data/formats.h"

namespace sinew::data {
namespace {

class ArrayDataset final : public Dataset {
 public:
  explicit ArrayDataset(ArrayContents contents) : contents_(std::move(contents)) {}
  const DataInfo& info() const override { return contents_.info; }
  int64_t size(Split split) const override { return contents_.splits[index_of(split)].size(); }
  bool in_memory() const override { return !contents_.augment.any(); }

  std::string describe(Split split, int64_t sample) const override {
    const ArraySamples& loaded = contents_.splits[index_of(split)];
    SINEW_CHECK(sample >= 0 && sample < loaded.size(), sample, loaded.size());
    const int64_t row = loaded.row(sample);
    const auto& files = loaded.arrays->files;
    auto file = std::upper_bound(files.begin(), files.end(), row, [](int64_t r, const auto& f) { return r < f.first; });
    --file;
    return file_name(file->second) + '[' + std::to_string(row - file->first) + ']';
  }

  Batch load(Split split, std::span<const int64_t> samples, const SampleContext& context) const override {
    const ArraySamples& loaded = contents_.splits[index_of(split)];
    Batch batch;
    batch.samples.assign(samples.begin(), samples.end());
    Shape shape{batch.count()}, target_shape{batch.count()};
    shape.insert(shape.end(), contents_.info.input_shape.begin(), contents_.info.input_shape.end());
    target_shape.insert(target_shape.end(), contents_.info.target_shape.begin(), contents_.info.target_shape.end());
    batch.input = Array(DType::f32, shape);
    batch.target = Array(contents_.info.task == Task::regression ? DType::f32 : DType::i64, target_shape);
    const int64_t width = element_count(contents_.info.input_shape);
    const bool augments = context.augment && split == Split::train && contents_.augment.any();
    LoadWatch watch(batch.use, augments ? LoadWatch::Work::may_wait : LoadWatch::Work::never_waits);
    for (size_t i = 0; i < samples.size(); ++i) {
      SINEW_CHECK(samples[i] >= 0 && samples[i] < loaded.size(), samples[i], loaded.size());
      float* out = batch.input.as<float>() + static_cast<int64_t>(i) * width;
      const std::byte* row = loaded.arrays->inputs.row(loaded.row(samples[i]));
      if (augments) {
        augmented(loaded.arrays->inputs.dtype, row, augment_key(context.seed, context.epoch, samples[i]), out);
      } else {
        normalized(loaded.arrays->inputs.dtype, row, out);
      }
    }
    if (augments) watch.ended(LoadStage::augment);
    copy_targets(loaded, batch);
    return batch;
  }

 private:
  void normalized(DType dtype, const std::byte* row, float* out) const {
    if (contents_.per_element) {
      convert_columns(dtype, row, contents_.mean, contents_.factor, out);
      return;
    }
    for (size_t c = 0; c < contents_.mean.size();
         ++c, row += static_cast<size_t>(contents_.area) * size_of(dtype), out += contents_.area) {
      convert_row(dtype, row, contents_.area, contents_.mean[c], contents_.factor[c], out);
    }
  }

  // Augmentation works on pixels in [0, 1]. Normalisation follows it, so padding is black instead of the mean.
  void augmented(DType dtype, const std::byte* row, RandomKey key, float* out) const {
    const auto channels = static_cast<int64_t>(contents_.mean.size());
    convert_row(dtype, row, channels * contents_.area, 0.0, 1.0 / contents_.unit, out);
    augment_image(contents_.augment, key, {out, static_cast<size_t>(channels * contents_.area)}, channels,
                  contents_.info.input_shape[1], contents_.info.input_shape[2]);
    for (size_t c = 0; c < contents_.mean.size(); ++c, out += contents_.area) {
      const auto mean = static_cast<float>(contents_.mean[c] / contents_.unit),
                 factor = static_cast<float>(contents_.factor[c] * contents_.unit);
      for (int64_t i = 0; i < contents_.area; ++i) out[i] = (out[i] - mean) * factor;
    }
  }

  void copy_targets(const ArraySamples& loaded, Batch& batch) const {
    const auto width = static_cast<size_t>(element_count(contents_.info.target_shape));
    for (size_t i = 0; i < batch.samples.size(); ++i) {
      const auto row = static_cast<size_t>(loaded.row(batch.samples[i]));
      if (contents_.info.task == Task::regression) {
        std::memcpy(batch.target.as<float>() + i * width, loaded.labels.numbers.data() + row * width,
                    width * sizeof(float));
      } else {
        batch.target.as<int64_t>()[i] = loaded.labels.classes[row];
      }
    }
  }

  const ArrayContents contents_;
};

}  // namespace

std::unique_ptr<Dataset> make_dataset(ArrayContents contents) {
  return std::make_unique<ArrayDataset>(std::move(contents));
}

}  // namespace sinew::data
