#include <cmath>
#include <future>
#include <numeric>

#include "base/error.h"
#include "data/array_dataset.h"
#include "data/formats.h"
#include "data/inputs.h"

namespace sinew::data {
namespace {

// Puts the splits together, decides what was left to it and writes down why.
class Maker {
 public:
  Maker(const spec::DataOptions& options, uint64_t seed) : options_(options), seed_(seed) {}

  std::unique_ptr<Dataset> make(ArraySplit train, std::optional<ArraySplit> val, std::optional<ArraySplit> test) {
    info().format = options_.format;
    contents_.augment = options_.augment;
    for (ArraySplit* split : {&train, val ? &*val : nullptr, test ? &*test : nullptr}) {
      if (split != nullptr) put_channels_first(split->inputs);
    }
    add_shape(train.inputs);
    add(Split::train, std::move(train), nullptr);
    ArraySamples& first = loaded(Split::train);
    if (val) add(Split::val, std::move(*val), &first.arrays->inputs);
    if (test) add(Split::test, std::move(*test), &first.arrays->inputs);
    split(!val, !test);
    add_labels();
    add_normalization();
    info().train_size = loaded(Split::train).size();
    info().val_size = loaded(Split::val).size();
    info().test_size = loaded(Split::test).size();
    digests_.push_back(options_digest(options_, seed_));
    info().digest = digest_of(digests_);
    return serve_arrays(std::move(contents_));
  }

 private:
  DataInfo& info() { return contents_.info; }
  ArraySamples& loaded(Split split) { return contents_.splits[index_of(split)]; }

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

  void add(Split split, ArraySplit arrays, const FileArray* train) {
    const FileArray& inputs = arrays.inputs;
    if (inputs.shape.empty()) {
      throw Error(inputs.name + ": holds one value, not the samples of data." + to_string(split),
                  "save an array whose first size counts samples");
    }
    if (arrays.targets.rows() != inputs.rows()) {
      throw Error(inputs.name + " holds " + with_commas(inputs.rows()) + " samples, " + arrays.targets.name +
                      " holds " + with_commas(arrays.targets.rows()) + " labels",
                  "both must belong together: check data." + to_string(split));
    }
    if (train != nullptr && (train->row_shape() != inputs.row_shape() || train->dtype != inputs.dtype)) {
      throw Error(inputs.name + ": its samples have another shape or type than those of " + train->name,
                  "all splits must be written alike");
    }
    if (arrays.files.empty()) arrays.files = {{0, inputs.name}};
    digests_.insert(digests_.end(), arrays.digests.begin(), arrays.digests.end());
    loaded(split).arrays = std::make_shared<const ArraySplit>(std::move(arrays));
    loaded(split).whole = true;
  }

  void split(bool val, bool test) {
    ArraySamples& train = loaded(Split::train);
    const double val_share = val ? options_.split_val : 0, test_share = test ? options_.split_test : 0;
    if (val_share > 0 || test_share > 0) {
      SplitIndices indices = split_indices(train.arrays->inputs.rows(), val_share, test_share, seed_);
      const auto split_of = [&](std::vector<int64_t> samples) {
        return ArraySamples{train.arrays, std::move(samples), false, {}};
      };
      if (val_share > 0) loaded(Split::val) = split_of(std::move(indices.val));
      if (test_share > 0) loaded(Split::test) = split_of(std::move(indices.test));
      train = split_of(std::move(indices.train));
    }
    if (train.size() == 0) {
      throw Error(train.arrays->inputs.name + ": no training samples" +
                      (train.arrays->inputs.rows() > 0 ? " are left after the split" : ""),
                  "check data.train and data.split");
    }
  }

  void add_labels() {
    LabelRules rules = decide_labels(loaded(Split::train).arrays->targets, options_.task);
    info().task = rules.task;
    info().target_shape = rules.shape;
    if (!rules.reason.empty()) info().reasons["data.task"] = rules.reason;
    const auto& names = loaded(Split::train).arrays->class_names;
    if (rules.task == Task::classification) rules.classes = std::max(rules.classes, static_cast<int64_t>(names.size()));
    for (const Split split : {Split::train, Split::val, Split::test}) {
      if (loaded(split).arrays) loaded(split).labels = read_labels(loaded(split).arrays->targets, rules);
    }
    if (rules.task == Task::classification) {
      info().classes = rules.classes;
      if (static_cast<int64_t>(names.size()) == info().classes) info().class_names = names;
    } else {
      add_target_moments();
    }
  }

  void add_target_moments() {
    const ArraySamples& train = loaded(Split::train);
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
    const ArraySamples& train = loaded(Split::train);
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
    if (options_.augment.noise > 0 && inputs.dtype != DType::u8) check_pixels(train);
    contents_.mean = moments.mean;
    for (const double deviation : moments.std) contents_.factor.push_back(1.0 / deviation);
    info().preparation = array_preparation(inputs.dtype, contents_.mean, contents_.factor);
  }

  // Noise is added to pixels from 0 to 1 and stays within them. Bytes are such by definition; of other types only
  // the values tell, and images from 0 to 255 would become black and white without a word.
  void check_pixels(const ArraySamples& train) const {
    const FileArray& inputs = train.arrays->inputs;
    const int64_t width = element_count(contents_.info.input_shape);
    for (int64_t i = 0; i < train.size(); ++i) {
      for (int64_t j = 0; j < width; ++j) {
        const double value = value_at(inputs.dtype, inputs.row(train.row(i)), j);
        if (value >= 0 && value <= 1) continue;
        throw Error(inputs.name + '[' + std::to_string(train.row(i)) + "]: holds " + std::to_string(value) +
                        ", and data.augment.noise is for pixels from 0 to 1",
                    "save the images as uint8, or scaled to [0, 1]; or take data.augment.noise out");
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
  return Maker(options, seed).make(std::move(train), std::move(val), std::move(test));
}

std::unique_ptr<Dataset> open_arrays(const spec::DataOptions& options, uint64_t seed) {
  const auto read = [&](const spec::DataSource& source, Split split) {
    if (options.format == "idx") return read_idx(source, split);
    if (options.format == "npz") return read_npz(source, split);
    if (options.format == "npy") return read_npy(source, split);
    return read_cifar(source, split, options.format == "cifar100");
  };
  // All splits at once: gunzipping train is most of the time, the others hide behind it.
  std::future<ArraySplit> val, test;
  if (options.val.given()) val = std::async(std::launch::async, read, options.val, Split::val);
  if (options.test.given()) test = std::async(std::launch::async, read, options.test, Split::test);
  ArraySplit train = read(options.train, Split::train);
  const auto wait = [](std::future<ArraySplit>& split) {
    return split.valid() ? std::optional(split.get()) : std::nullopt;
  };
  std::optional<ArraySplit> val_part = wait(val), test_part = wait(test);
  return make_array_dataset(options, seed, std::move(train), std::move(val_part), std::move(test_part));
}

}  // namespace sinew::data
