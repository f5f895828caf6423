#include <algorithm>
#include <future>
#include <numeric>

#include "base/error.h"
#include "data/array_dataset.h"
#include "data/formats.h"
#include "data/inference.h"
#include "data/splits.h"

namespace sinew::data {
namespace {

// Assembles the splits, resolves every option that is `auto`, and records the reasons.
class ArrayDatasetBuilder {
 public:
  ArrayDatasetBuilder(const spec::DataOptions& options, uint64_t seed) : options_(options), seed_(seed) {}

  std::unique_ptr<Dataset> build(ArraySplit train, std::optional<ArraySplit> val, std::optional<ArraySplit> test) {
    info().format = options_.format;
    contents_.augment = options_.augment;
    for (ArraySplit* split : {&train, val ? &*val : nullptr, test ? &*test : nullptr}) {
      if (split != nullptr) put_channels_first(split->inputs);
    }
    add_shape(train.inputs);
    add(Split::train, std::move(train), nullptr);
    ArraySamples& first = samples_of(Split::train);
    if (val) add(Split::val, std::move(*val), &first.arrays->inputs);
    if (test) add(Split::test, std::move(*test), &first.arrays->inputs);
    check_not_empty();
    add_labels();
    split_train();
    if (info().task != Task::classification) add_target_moments();
    add_normalization();
    info().train_size = samples_of(Split::train).size();
    info().val_size = samples_of(Split::val).size();
    info().test_size = samples_of(Split::test).size();
    digests_.push_back(options_digest(options_, seed_));
    info().digest = digest_of(digests_);
    return make_dataset(std::move(contents_));
  }

 private:
  DataInfo& info() { return contents_.info; }
  ArraySamples& samples_of(Split split) { return contents_.splits[index_of(split)]; }

  void add_shape(const FileArray& inputs) {
    const Shape row = inputs.shape.size() < 2 ? Shape{1} : inputs.row_shape();
    if (element_count(row) == 0) {
      throw Error("DATA_EMPTY", inputs.name + ": its samples hold no values", "write the file again with values in it");
    }
    info().input_shape = row.size() == 2 ? Shape{1, row[0], row[1]} : row;
    if (!options_.image.size.empty() && row.size() >= 2 &&
        options_.image.size != Shape(info().input_shape.end() - 2, info().input_shape.end())) {
      throw Error("DATA_BAD_OPTION",
                  inputs.name + ": its images are " + std::to_string(info().input_shape.end()[-2]) + " x " +
                      std::to_string(info().input_shape.end()[-1]) + ", but data.image.size gives another size",
                  "remove data.image.size: Sinew does not resize arrays");
    }
    if (options_.augment.any() && info().input_shape.size() != 3) {
      throw Error("DATA_BAD_OPTION", inputs.name + ": data.augment needs images, but the samples are not images",
                  "remove data.augment");
    }
  }

  void add(Split split, ArraySplit arrays, const FileArray* train) {
    const FileArray& inputs = arrays.inputs;
    if (inputs.shape.empty()) {
      throw Error("DATA_EMPTY", inputs.name + ": holds one value instead of the samples of data." + to_string(split),
                  "save an array whose first axis counts the samples");
    }
    if (arrays.targets.rows() != inputs.rows()) {
      throw Error("DATA_COUNT_MISMATCH",
                  inputs.name + " holds " + with_commas(inputs.rows()) + " samples, but " + arrays.targets.name +
                      " holds " + with_commas(arrays.targets.rows()) + " labels",
                  "check data." + to_string(split) + ": the two files must belong together");
    }
    if (train != nullptr && (train->row_shape() != inputs.row_shape() || train->dtype != inputs.dtype)) {
      throw Error("DATA_SHAPE_MISMATCH",
                  inputs.name + ": its samples have another shape or type than those of " + train->name,
                  "write all splits with the same shape and type");
    }
    if (arrays.files.empty()) arrays.files = {{0, inputs.name}};
    digests_.insert(digests_.end(), arrays.digests.begin(), arrays.digests.end());
    samples_of(split).arrays = std::make_shared<const ArraySplit>(std::move(arrays));
    samples_of(split).whole = true;
  }

  void check_not_empty() {
    const ArraySamples& train = samples_of(Split::train);
    if (train.size() > 0) return;
    throw Error("DATA_EMPTY",
                train.arrays->inputs.name + ": no training samples" +
                    (train.arrays->inputs.rows() > 0 ? " are left after the split" : ""),
                "check data.train and data.split");
  }

  // Takes val and test from train if they have no files of their own.
  void split_train() {
    ArraySamples& train = samples_of(Split::train);
    SplitRequest request = split_request(options_, train.arrays->inputs.rows(), seed_);
    if (samples_of(Split::val).arrays) request.val = 0, request.folds = 0;  // an archive may have splits of its own
    if (samples_of(Split::test).arrays) request.test = 0;
    if (request.takes_any()) {
      const bool stratify = options_.stratify && info().task == Task::classification && info().target_shape.empty();
      if (stratify) request.classes = train.labels.classes;
      SplitIndices indices = split_samples(request, info().notes);
      const auto chosen = [&](std::vector<int64_t> samples) {
        return ArraySamples{train.arrays, std::move(samples), false, train.labels};
      };
      if (request.val > 0 || request.folds > 0) samples_of(Split::val) = chosen(std::move(indices.val));
      if (request.test > 0) samples_of(Split::test) = chosen(std::move(indices.test));
      train = chosen(std::move(indices.train));
    }
    check_not_empty();
    if (info().task != Task::classification || !info().target_shape.empty()) return;
    std::vector<int64_t> classes;
    for (int64_t i = 0; i < train.size(); ++i)
      classes.push_back(train.labels.classes[static_cast<size_t>(train.row(i))]);
    count_classes(classes, info());
  }

  void add_labels() {
    LabelSchema schema = infer_labels(samples_of(Split::train).arrays->targets, options_.task);
    info().task = schema.task;
    info().target_shape = schema.shape;
    if (!schema.reason.empty()) info().reasons["data.task"] = schema.reason;
    const auto& names = samples_of(Split::train).arrays->class_names;
    if (schema.task == Task::classification) {
      schema.classes = std::max(schema.classes, static_cast<int64_t>(names.size()));
    }
    for (const Split split : {Split::train, Split::val, Split::test}) {
      ArraySamples& samples = samples_of(split);
      if (samples.arrays) samples.labels = read_labels(samples.arrays->targets, schema);
    }
    if (schema.task == Task::classification) {
      info().classes = schema.classes;
      if (static_cast<int64_t>(names.size()) == info().classes) info().class_names = names;
    }
  }

  void add_target_moments() {
    const ArraySamples& train = samples_of(Split::train);
    const int64_t width = element_count(info().target_shape);
    for (size_t j = 0; j < train.labels.rounding.size(); ++j) {
      const std::string place = width == 1 ? "" : ": number " + std::to_string(j) + " of each target";
      train.labels.rounding[j].check(train.arrays->targets.name + place);
    }
    // Older versions standardised all numbers of a target alike. A run of such a version must not be continued.
    if (width > 1) digests_.push_back(digest_of(std::string_view("a mean for each number of a target")));
    std::vector<float> targets;
    targets.reserve(static_cast<size_t>(train.size() * width));
    for (int64_t i = 0; i < train.size(); ++i) {
      const float* first = train.labels.numbers.data() + train.row(i) * width;
      targets.insert(targets.end(), first, first + width);
    }
    set_target_moments(targets, info());
  }

  void add_normalization() {
    const ArraySamples& train = samples_of(Split::train);
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
        info().reasons["data.normalize"] = std::string("mean and standard deviation of each ") +
                                           (image ? "channel" : "column") + " over the " + with_commas(train.size()) +
                                           " training samples";
      }
    }
    if (options_.augment.noise > 0 && inputs.dtype != DType::u8) check_pixels(train);
    contents_.mean = moments.mean;
    for (const double deviation : moments.std) contents_.factor.push_back(1.0 / deviation);
    info().preparation = array_preparation(inputs.dtype, contents_.mean, contents_.factor);
  }

  // Noise is added to pixels in [0, 1], and the sum is clipped to [0, 1]. Bytes are scaled to that range. Other types
  // are not, so this function checks every value: clipping would silently turn images with values up to 255 black and
  // white.
  void check_pixels(const ArraySamples& train) const {
    const FileArray& inputs = train.arrays->inputs;
    const int64_t width = element_count(contents_.info.input_shape);
    for (int64_t i = 0; i < train.size(); ++i) {
      for (int64_t j = 0; j < width; ++j) {
        const double value = value_at(inputs.dtype, inputs.row(train.row(i)), j);
        if (value >= 0 && value <= 1) continue;
        throw Error("DATA_BAD_OPTION",
                    inputs.name + '[' + std::to_string(train.row(i)) + "]: holds " + std::to_string(value) +
                        ", but data.augment.noise needs pixels from 0 to 1",
                    "save the images as uint8 or scaled to [0, 1], or remove data.augment.noise");
      }
    }
  }

  const spec::DataOptions& options_;
  const uint64_t seed_;
  ArrayContents contents_;
  std::vector<Digest> digests_;
};

}  // namespace

std::unique_ptr<Dataset> make_array_dataset(const spec::DataOptions& options, uint64_t seed, ArraySplit train,
                                            std::optional<ArraySplit> val, std::optional<ArraySplit> test) {
  return ArrayDatasetBuilder(options, seed).build(std::move(train), std::move(val), std::move(test));
}

std::unique_ptr<Dataset> open_arrays(const spec::DataOptions& options, uint64_t seed) {
  const auto read = [&](const spec::DataSource& source, Split split) {
    if (options.format == "idx") return read_idx(source, split);
    if (options.format == "npz") return read_npz(source, split);
    if (options.format == "npy") return read_npy(source, split);
    return read_cifar(source, split, options.format == "cifar100");
  };
  // Reads all splits in parallel. Gunzipping train usually takes the longest, so val and test add no time.
  std::future<ArraySplit> val, test;
  if (options.val.given()) val = std::async(std::launch::async, read, options.val, Split::val);
  if (options.test.given()) test = std::async(std::launch::async, read, options.test, Split::test);
  ArraySplit train = read(options.train, Split::train);
  const auto wait = [](std::future<ArraySplit>& split) {
    return split.valid() ? std::optional(split.get()) : std::nullopt;
  };
  std::optional<ArraySplit> val_split = wait(val), test_split = wait(test);
  return make_array_dataset(options, seed, std::move(train), std::move(val_split), std::move(test_split));
}

}  // namespace sinew::data
