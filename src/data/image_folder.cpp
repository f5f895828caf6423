// Opens image datasets: a folder for each class, or a list of paths and labels. Files are decoded at each load.
#include "data/image_folder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "base/check.h"
#include "base/error.h"
#include "base/proc.h"
#include "data/inference.h"
#include "data/splits.h"
#include "data/target_rounding.h"

namespace sinew::data {
namespace {

struct ImageSplit {
  std::vector<ImageFile> files;
  std::vector<int64_t> classes;  // classification
  std::vector<float> values;     // regression
};

class ImageDataset : public Dataset {
 public:
  ImageDataset(DataInfo info, std::array<ImageSplit, 3> splits, ImageShape shape, Normalization normalization,
               const spec::DataOptions& options)
      : info_(std::move(info)),
        splits_(std::move(splits)),
        shape_(shape),
        normalization_(std::move(normalization)),
        augment_(options.augment),
        skip_corrupt_(options.on_corrupt == "skip") {}

  const DataInfo& info() const override { return info_; }
  int64_t size(Split split) const override { return static_cast<int64_t>(split_of(split).files.size()); }
  Batch load(Split split, std::span<const int64_t> samples, const SampleContext& context) const override;
  std::string describe(Split split, int64_t sample) const override { return file_of(split, sample).name(); }
  bool in_memory() const override { return false; }

 private:
  const ImageSplit& split_of(Split split) const { return splits_[static_cast<size_t>(split)]; }
  const ImageFile& file_of(Split split, int64_t sample) const {
    SINEW_CHECK(sample >= 0 && sample < size(split), sample, size(split));
    return split_of(split).files[static_cast<size_t>(sample)];
  }
  Array targets_of(Split split, const std::vector<int64_t>& samples) const;

  DataInfo info_;
  std::array<ImageSplit, 3> splits_;
  ImageShape shape_;
  Normalization normalization_;
  spec::AugmentOptions augment_;
  bool skip_corrupt_;
};

Array ImageDataset::targets_of(Split split, const std::vector<int64_t>& samples) const {
  const bool classes = info_.task == Task::classification;
  Array targets(classes ? DType::i64 : DType::f32, {static_cast<int64_t>(samples.size())});
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto sample = static_cast<size_t>(samples[i]);
    if (classes) {
      targets.as<int64_t>()[i] = split_of(split).classes[sample];
    } else {
      targets.as<float>()[i] = split_of(split).values[sample];
    }
  }
  return targets;
}

Batch ImageDataset::load(Split split, std::span<const int64_t> samples, const SampleContext& context) const {
  Batch batch;
  const auto shape_for = [&](size_t count) {
    return Shape{static_cast<int64_t>(count), shape_.channels, shape_.size.height, shape_.size.width};
  };
  batch.input = Array(DType::f32, shape_for(samples.size()));
  const auto row_size = static_cast<size_t>(shape_.count());
  for (const int64_t sample : samples) {
    const ImageFile& file = file_of(split, sample);
    const std::span<float> row(batch.input.as<float>() + batch.samples.size() * row_size, row_size);
    if (const std::string why = decode_sample(file, shape_, row); !why.empty()) {
      if (!skip_corrupt_) fail_corrupt(file, why);
      batch.skipped.push_back({sample, file.name() + ": " + why});
      continue;
    }
    if (context.augment && split == Split::train) {
      augment_image(augment_, augment_key(context.seed, context.epoch, sample), row, shape_.channels,
                    shape_.size.height, shape_.size.width);
    }
    normalization_.apply(row);
    batch.samples.push_back(sample);
  }
  if (batch.samples.size() < samples.size()) {
    Array kept(DType::f32, shape_for(batch.samples.size()));
    if (kept.count() > 0)
      std::memcpy(kept.bytes.data(), batch.input.bytes.data(), batch.samples.size() * row_size * sizeof(float));
    batch.input = std::move(kept);
  }
  batch.target = targets_of(split, batch.samples);
  return batch;
}

// Lists the files of a split, and adds a note about files that are left out.
std::vector<ImageFile> list_files(const std::string& format, const spec::DataSource& source, Split split,
                                  DataInfo& info) {
  if (source.path.empty()) {
    throw Error("DATA_BAD_SOURCE", "data.format: " + format + " needs a path:, not images: and labels:",
                "name the folder or the list as path:");
  }
  if (format == "image_list") return list_image_list(source.path);
  ImageListing listing = list_image_folder(source.path);
  if (listing.left_out + listing.loose > 0) info.notes.push_back(to_string(split) + ": " + listing.left_out_text());
  return std::move(listing.files);
}

// The folders of an image_folder are classes. The labels of a list are numbers to predict if the job says so. If the
// job says auto, they are numbers if all of them parse as numbers and at least one has a fraction.
Task task_of(const spec::DataOptions& options, const std::vector<ImageFile>& train, spec::Reasons& reasons) {
  if (options.format == "image_folder") {
    if (options.task == "regression") {
      throw Error("DATA_BAD_OPTION", "data.task is regression, but the folders of an image_folder are classes",
                  "use data.format: image_list with a number for each image");
    }
    reasons["data.task"] = "each folder is a class";
    return Task::classification;
  }
  if (options.task != "auto") return options.task == "regression" ? Task::regression : Task::classification;
  bool numbers = true, fractions = false;
  for (const ImageFile& file : train) {
    const std::optional<double> number = file.label_number();
    numbers = numbers && number;
    fractions = fractions || (numbers && *number != std::floor(*number));
  }
  const bool regression = numbers && fractions;
  reasons["data.task"] =
      regression ? "the labels are numbers, some with a fraction" : "the labels are words or whole numbers";
  return regression ? Task::regression : Task::classification;
}

// The index of each class name.
using ClassIndex = std::unordered_map<std::string, int64_t>;

ClassIndex index_of(const std::vector<std::string>& names) {
  ClassIndex index;
  for (const std::string& name : names) index.emplace(name, static_cast<int64_t>(index.size()));
  return index;
}

// Returns the files of train, val and test. A split without files of its own takes a fraction of the training files.
std::array<ImageSplit, 3> list_splits(const spec::DataOptions& options, std::vector<ImageFile> all, uint64_t seed,
                                      DataInfo& info) {
  std::array<ImageSplit, 3> splits;
  if (options.val.given()) splits[1].files = list_files(options.format, options.val, Split::val, info);
  if (options.test.given()) splits[2].files = list_files(options.format, options.test, Split::test, info);
  SplitRequest request = split_request(options, static_cast<int64_t>(all.size()), seed);
  std::vector<int64_t> classes;
  if (options.stratify && info.task == Task::classification) {
    const ClassIndex index = index_of(info.class_names);
    for (const ImageFile& file : all) classes.push_back(index.at(file.label));
    request.classes = classes;
  }
  const SplitIndices indices = split_samples(request, info.notes);
  const auto take = [&](const std::vector<int64_t>& from, std::vector<ImageFile>& to) {
    for (const int64_t i : from) to.push_back(std::move(all[static_cast<size_t>(i)]));
  };
  take(indices.val, splits[1].files);
  take(indices.test, splits[2].files);
  take(indices.train, splits[0].files);
  if (splits[0].files.empty()) {
    throw Error("DATA_EMPTY", "no image is left for training after the split",
                "lower data.split.val and data.split.test");
  }
  return splits;
}

// Sets the class of every file. info.class_names lists the classes of all training files before the split, because val
// or test may take every file of a rare class.
void set_classes(const std::string& path, std::array<ImageSplit, 3>& splits, DataInfo& info) {
  const ClassIndex index = index_of(info.class_names);
  info.classes = static_cast<int64_t>(info.class_names.size());
  if (info.classes == 1)
    throw Error("DATA_BAD_SOURCE",
                path + ": all images are of the class '" + info.class_names[0] + "', so there is nothing to predict",
                "add a folder, or lines of the list, for each other class");
  for (ImageSplit& split : splits) {
    for (const ImageFile& file : split.files) {
      const auto found = index.find(file.label);
      if (found == index.end()) {
        throw Error("DATA_UNKNOWN_CLASS",
                    file.place() + ": class '" + file.label + "' is not among the " + std::to_string(info.classes) +
                        " classes of data.train",
                    "add training images of that class, or remove the class here");
      }
      split.classes.push_back(found->second);
    }
  }
  count_classes(splits[0].classes, info);
}

void set_values(std::array<ImageSplit, 3>& splits, DataInfo& info) {
  TargetRounding rounding;  // for the training targets
  for (ImageSplit& split : splits) {
    for (const ImageFile& file : split.files) {
      const std::optional<double> number = file.label_number();
      if (!number) {
        throw Error("DATA_BAD_TARGET", file.place() + ": '" + file.label + "' is not a number",
                    "data.task: regression needs numbers; correct the label, or set data.task: classification");
      }
      split.values.push_back(static_cast<float>(*number));
      if (&split == splits.data()) rounding.add(*number);
    }
  }
  rounding.check("data.train");
  set_target_moments(splits[0].values, info);
}

// Adds two things to the digests: the names, sizes and labels of all files of one split, and the content of up to 64 of
// them. Reading every image to open a dataset would take as long as an epoch.
void add_identity(const std::vector<ImageFile>& files, std::string text, std::vector<Digest>& digests) {
  for (const ImageFile& file : files)
    text += file.name() + "\t" + std::to_string(file.bytes) + "\t" + file.label + "\n";
  digests.push_back(digest_of(text));
  const size_t probes = std::min<size_t>(64, files.size());
  for (size_t i = 0; i < probes; ++i) digests.push_back(digest_of(read_image_file(files[i * files.size() / probes])));
}

// The digest covers every split, because metrics on different images cannot be compared.
Digest identity_of(const std::array<ImageSplit, 3>& splits, const ImageShape& shape, Digest options) {
  std::vector<Digest> digests = {options};
  add_identity(splits[0].files,
               std::to_string(shape.size.height) + " " + std::to_string(shape.size.width) + " " +
                   std::to_string(shape.channels) + "\n",
               digests);
  for (const Split split : {Split::val, Split::test}) {
    const std::vector<ImageFile>& files = splits[static_cast<size_t>(split)].files;
    if (!files.empty()) add_identity(files, to_string(split) + "\n", digests);
  }
  return digest_of(digests);
}

int64_t measuring_threads(const spec::DataOptions& options) {
  const int64_t wanted = options.prefetch_threads.value_or(usable_cores());
  return std::clamp<int64_t>(wanted, 1, 16);
}

}  // namespace

std::unique_ptr<Dataset> open_images(const spec::DataOptions& options, uint64_t seed) {
  DataInfo info;
  info.format = options.format;
  std::vector<ImageFile> files = list_files(options.format, options.train, Split::train, info);
  info.task = task_of(options, files, info.reasons);
  if (info.task == Task::classification) info.class_names = class_names_of(files);
  std::array<ImageSplit, 3> splits = list_splits(options, std::move(files), seed, info);
  if (info.task == Task::classification) {
    set_classes(options.train.path, splits, info);
  } else {
    set_values(splits, info);
  }
  const ImageShape shape = shape_of(options, splits[0].files, info.reasons);
  Normalization normalization;
  if (options.normalize == "auto") {
    normalization = measure_normalization(splits[0].files, shape, options.on_corrupt == "skip",
                                          measuring_threads(options), info.reasons);
  }
  info.input_shape = {shape.channels, shape.size.height, shape.size.width};
  info.preparation = image_preparation(shape, normalization);
  info.train_size = static_cast<int64_t>(splits[0].files.size());
  info.val_size = static_cast<int64_t>(splits[1].files.size());
  info.test_size = static_cast<int64_t>(splits[2].files.size());
  info.digest = identity_of(splits, shape, options_digest(options, seed));
  return std::make_unique<ImageDataset>(std::move(info), std::move(splits), shape, std::move(normalization), options);
}

}  // namespace sinew::data
