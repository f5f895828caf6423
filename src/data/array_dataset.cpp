#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "base/error.h"
#include "data/arrays.h"
#include "data/formats.h"
#include "data/inputs.h"
#include "data/labels.h"

namespace sinew::data {
namespace {

constexpr size_t kParts = 3;

size_t index_of(Part part) {
  return static_cast<size_t>(part);
}

struct LoadedPart {
  std::shared_ptr<const ArrayPart> arrays;  // shared by the parts split from one file
  std::vector<int64_t> samples;             // rows of the file; empty with `whole`
  bool whole = false;                       // every row, in order
  Labels labels;                            // of the file's rows
  int64_t size() const { return whole ? arrays->inputs.rows() : static_cast<int64_t>(samples.size()); }
  int64_t row(int64_t sample) const { return whole ? sample : samples[static_cast<size_t>(sample)]; }
};

struct Contents {
  DataInfo info;
  spec::AugmentOptions augment;
  LoadedPart parts[kParts];
  bool per_element = false;          // rows of columns: one mean a column, not a channel
  int64_t area = 1;                  // elements of one channel
  double unit = 1;                   // 255 for bytes: what 1.0 is called in the file
  std::vector<double> mean, factor;  // in the file's units
};

class ArrayDataset final : public Dataset {
 public:
  explicit ArrayDataset(Contents contents) : is_(std::move(contents)) {}
  const DataInfo& info() const override { return is_.info; }
  int64_t size(Part part) const override { return is_.parts[index_of(part)].size(); }
  bool in_memory() const override { return !is_.augment.any(); }

  std::string describe(Part part, int64_t sample) const override {
    const LoadedPart& loaded = is_.parts[index_of(part)];
    SINEW_CHECK(sample >= 0 && sample < loaded.size(), sample, loaded.size());
    const int64_t row = loaded.row(sample);
    const auto& files = loaded.arrays->files;
    auto file = std::upper_bound(files.begin(), files.end(), row, [](int64_t r, const auto& f) { return r < f.first; });
    --file;
    return file_name(file->second) + '[' + std::to_string(row - file->first) + ']';
  }

  Batch load(Part part, std::span<const int64_t> samples, const SampleContext& context) const override {
    const LoadedPart& loaded = is_.parts[index_of(part)];
    Batch batch;
    batch.samples.assign(samples.begin(), samples.end());
    Shape shape{batch.count()}, target_shape{batch.count()};
    shape.insert(shape.end(), is_.info.input_shape.begin(), is_.info.input_shape.end());
    target_shape.insert(target_shape.end(), is_.info.target_shape.begin(), is_.info.target_shape.end());
    batch.input = Array(DType::f32, shape);
    batch.target = Array(is_.info.task == Task::regression ? DType::f32 : DType::i64, target_shape);
    const int64_t width = element_count(is_.info.input_shape);
    for (size_t i = 0; i < samples.size(); ++i) {
      SINEW_CHECK(samples[i] >= 0 && samples[i] < loaded.size(), samples[i], loaded.size());
      float* out = batch.input.as<float>() + static_cast<int64_t>(i) * width;
      const std::byte* row = loaded.arrays->inputs.row(loaded.row(samples[i]));
      if (context.augment && part == Part::train && is_.augment.any()) {
        augmented(loaded.arrays->inputs.dtype, row, augment_key(context.seed, context.epoch, samples[i]), out);
      } else {
        normalized(loaded.arrays->inputs.dtype, row, out);
      }
    }
    copy_targets(loaded, batch);
    return batch;
  }

 private:
  void normalized(DType dtype, const std::byte* row, float* out) const {
    if (is_.per_element) {
      convert_columns(dtype, row, is_.mean, is_.factor, out);
      return;
    }
    for (size_t c = 0; c < is_.mean.size();
         ++c, row += static_cast<size_t>(is_.area) * size_of(dtype), out += is_.area) {
      convert_row(dtype, row, is_.area, is_.mean[c], is_.factor[c], out);
    }
  }

  // Augmentation sees pixels in [0, 1]; normalisation comes after it, so that padding is black and not the mean.
  void augmented(DType dtype, const std::byte* row, RandomKey key, float* out) const {
    const auto channels = static_cast<int64_t>(is_.mean.size());
    convert_row(dtype, row, channels * is_.area, 0.0, 1.0 / is_.unit, out);
    augment_image(is_.augment, key, {out, static_cast<size_t>(channels * is_.area)}, channels, is_.info.input_shape[1],
                  is_.info.input_shape[2]);
    for (size_t c = 0; c < is_.mean.size(); ++c, out += is_.area) {
      const auto mean = static_cast<float>(is_.mean[c] / is_.unit),
                 factor = static_cast<float>(is_.factor[c] * is_.unit);
      for (int64_t i = 0; i < is_.area; ++i) out[i] = (out[i] - mean) * factor;
    }
  }

  void copy_targets(const LoadedPart& loaded, Batch& batch) const {
    const auto width = static_cast<size_t>(element_count(is_.info.target_shape));
    for (size_t i = 0; i < batch.samples.size(); ++i) {
      const auto row = static_cast<size_t>(loaded.row(batch.samples[i]));
      if (is_.info.task == Task::regression) {
        std::memcpy(batch.target.as<float>() + i * width, loaded.labels.numbers.data() + row * width,
                    width * sizeof(float));
      } else {
        batch.target.as<int64_t>()[i] = loaded.labels.classes[row];
      }
    }
  }

  const Contents is_;
};

// Puts the parts together, decides what was left to it and writes down why.
class Maker {
 public:
  Maker(const spec::DataOptions& options, uint64_t seed) : options_(options), seed_(seed) {}

  std::unique_ptr<Dataset> make(ArrayPart train, std::optional<ArrayPart> val, std::optional<ArrayPart> test) {
    info().format = options_.format;
    contents_.augment = options_.augment;
    for (ArrayPart* part : {&train, val ? &*val : nullptr, test ? &*test : nullptr}) {
      if (part != nullptr) put_channels_first(part->inputs);
    }
    add_shape(train.inputs);
    add(Part::train, std::move(train), nullptr);
    LoadedPart& first = loaded(Part::train);
    if (val) add(Part::val, std::move(*val), &first.arrays->inputs);
    if (test) add(Part::test, std::move(*test), &first.arrays->inputs);
    split(!val, !test);
    add_labels();
    add_normalization();
    info().train_size = loaded(Part::train).size();
    info().val_size = loaded(Part::val).size();
    info().test_size = loaded(Part::test).size();
    digests_.push_back(options_digest(options_, seed_));
    info().digest = digest_of(digests_);
    return std::make_unique<ArrayDataset>(std::move(contents_));
  }

 private:
  DataInfo& info() { return contents_.info; }
  LoadedPart& loaded(Part part) { return contents_.parts[index_of(part)]; }

  void add_shape(const FileArray& inputs) {
    const Shape row = inputs.shape.size() < 2 ? Shape{1} : inputs.row_shape();
    if (element_count(row) == 0) throw Error(inputs.name + ": its samples hold no values");
    info().input_shape = row.size() == 2 ? Shape{1, row[0], row[1]} : row;
    if (!options_.image.size.empty() && row.size() >= 2 &&
        options_.image.size != Shape(info().input_shape.end() - 2, info().input_shape.end())) {
      throw Error(inputs.name + ": its images are " + std::to_string(info().input_shape.end()[-2]) + " x " +
                      std::to_string(info().input_shape.end()[-1]) + ", data.image.size says otherwise",
                  "arrays are not resized: take data.image.size out");
    }
    if (options_.augment.any() && info().input_shape.size() != 3) {
      throw Error(inputs.name + ": data.augment works on images, and this holds no images", "take data.augment out");
    }
  }

  void add(Part part, ArrayPart arrays, const FileArray* train) {
    const FileArray& inputs = arrays.inputs;
    if (arrays.targets.rows() != inputs.rows()) {
      throw Error(inputs.name + " holds " + with_commas(inputs.rows()) + " samples, " + arrays.targets.name +
                      " holds " + with_commas(arrays.targets.rows()) + " labels",
                  "both must belong together: check data." + to_string(part));
    }
    if (train != nullptr && (train->row_shape() != inputs.row_shape() || train->dtype != inputs.dtype)) {
      throw Error(inputs.name + ": its samples have another shape or type than those of " + train->name,
                  "all parts must be written alike");
    }
    if (arrays.files.empty()) arrays.files = {{0, inputs.name}};
    digests_.insert(digests_.end(), arrays.digests.begin(), arrays.digests.end());
    loaded(part).arrays = std::make_shared<const ArrayPart>(std::move(arrays));
    loaded(part).whole = true;
  }

  void split(bool val, bool test) {
    LoadedPart& train = loaded(Part::train);
    const double val_share = val ? options_.split_val : 0, test_share = test ? options_.split_test : 0;
    if (val_share > 0 || test_share > 0) {
      PartIndices indices = split_parts(train.arrays->inputs.rows(), val_share, test_share, seed_);
      const auto part_of = [&](std::vector<int64_t> samples) {
        return LoadedPart{train.arrays, std::move(samples), false, {}};
      };
      if (val_share > 0) loaded(Part::val) = part_of(std::move(indices.val));
      if (test_share > 0) loaded(Part::test) = part_of(std::move(indices.test));
      train = part_of(std::move(indices.train));
    }
    if (train.size() == 0) {
      throw Error(train.arrays->inputs.name + ": no training samples" +
                      (train.arrays->inputs.rows() > 0 ? " are left after the split" : ""),
                  "check data.train and data.split");
    }
  }

  void add_labels() {
    LabelRules rules = decide_labels(loaded(Part::train).arrays->targets, options_.task);
    info().task = rules.task;
    info().target_shape = rules.shape;
    if (!rules.reason.empty()) info().reasons["data.task"] = rules.reason;
    const auto& names = loaded(Part::train).arrays->class_names;
    if (rules.task == Task::classification) rules.classes = std::max(rules.classes, static_cast<int64_t>(names.size()));
    for (const Part part : {Part::train, Part::val, Part::test}) {
      if (loaded(part).arrays) loaded(part).labels = read_labels(loaded(part).arrays->targets, rules);
    }
    if (rules.task == Task::classification) {
      info().classes = rules.classes;
      if (static_cast<int64_t>(names.size()) == info().classes) info().class_names = names;
    } else {
      add_target_moments();
    }
  }

  void add_target_moments() {
    const LoadedPart& train = loaded(Part::train);
    const auto width = static_cast<size_t>(element_count(info().target_shape));
    double sum = 0, squares = 0;
    const double count = static_cast<double>(train.size()) * static_cast<double>(width);
    const auto each = [&](auto&& visit) {
      for (int64_t i = 0; i < train.size(); ++i) {
        for (size_t j = 0; j < width; ++j) visit(train.labels.numbers[static_cast<size_t>(train.row(i)) * width + j]);
      }
    };
    each([&](double value) { sum += value; });
    info().target_mean = sum / count;
    each([&](double value) { squares += (value - info().target_mean) * (value - info().target_mean); });
    info().target_std = squares > 0 ? std::sqrt(squares / count) : 1;
  }

  void add_normalization() {
    const LoadedPart& train = loaded(Part::train);
    const FileArray& inputs = train.arrays->inputs;
    const bool image = info().input_shape.size() == 3;
    const auto channels = info().input_shape[0];
    contents_.per_element = info().input_shape.size() == 1;
    contents_.area = element_count(info().input_shape) / channels;
    contents_.unit = inputs.dtype == DType::u8 && image ? 255 : 1;
    Moments moments{std::vector(static_cast<size_t>(channels), 0.0),
                    std::vector(static_cast<size_t>(channels), contents_.unit)};
    if (options_.normalize != "none") {
      std::vector<int64_t> every;
      if (train.whole) {
        every.resize(static_cast<size_t>(inputs.rows()));
        std::iota(every.begin(), every.end(), 0);
      }
      moments = moments_of(inputs, train.whole ? every : train.samples, channels);
      if (options_.normalize == "auto") {
        info().reasons["data.normalize"] = std::string("mean and deviation per ") + (image ? "channel" : "column") +
                                           " of the " + with_commas(train.size()) + " training samples";
      }
    }
    contents_.mean = moments.mean;
    for (const double deviation : moments.std) contents_.factor.push_back(1.0 / deviation);
    info().preparation = array_preparation(inputs.dtype, contents_.mean, contents_.factor);
  }

  const spec::DataOptions& options_;
  const uint64_t seed_;
  Contents contents_;
  std::vector<Digest> digests_;
};

}  // namespace

std::unique_ptr<Dataset> make_array_dataset(const spec::DataOptions& options, uint64_t seed, ArrayPart train,
                                            std::optional<ArrayPart> val, std::optional<ArrayPart> test) {
  return Maker(options, seed).make(std::move(train), std::move(val), std::move(test));
}

std::unique_ptr<Dataset> open_arrays(const spec::DataOptions& options, uint64_t seed) {
  const auto read = [&](const spec::DataSource& source, Part part) {
    if (options.format == "idx") return read_idx(source, part);
    if (options.format == "npz") return read_npz(source, part);
    if (options.format == "npy") return read_npy(source, part);
    return read_cifar(source, part, options.format == "cifar100");
  };
  std::optional<ArrayPart> val, test;
  ArrayPart train = read(options.train, Part::train);
  if (options.val.given()) val = read(options.val, Part::val);
  if (options.test.given()) test = read(options.test, Part::test);
  return make_array_dataset(options, seed, std::move(train), std::move(val), std::move(test));
}

}  // namespace sinew::data
