// Opens image datasets: a folder for each class, a list of paths and labels, or tars. Images are decoded at each load.
#include "data/image_folder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <unordered_map>

#include "base/check.h"
#include "base/error.h"
#include "base/proc.h"
#include "data/inference.h"
#include "data/splits.h"
#include "data/target_rounding.h"
#include "data/webdataset.h"

namespace sinew::data {
namespace {

class ImageDataset : public Dataset {
 public:
  ImageDataset(ListedImages images, ImageShape shape, Normalization normalization, const spec::DataOptions& options)
      : info_(std::move(images.info)),
        texts_(std::move(images.texts)),
        splits_(std::move(images.splits)),
        shape_(shape),
        normalization_(std::move(normalization)),
        augment_(options.augment),
        skip_corrupt_(options.on_corrupt == "skip") {}

  const DataInfo& info() const override { return info_; }
  int64_t size(Split split) const override { return static_cast<int64_t>(split_of(split).files.size()); }
  Batch load(Split split, std::span<const int64_t> samples, const SampleContext& context) const override;
  std::string describe(Split split, int64_t sample) const override { return std::string(file_of(split, sample).name); }
  bool in_memory() const override { return false; }

 private:
  const ImageSplit& split_of(Split split) const { return splits_[static_cast<size_t>(split)]; }
  const ImageFile& file_of(Split split, int64_t sample) const {
    SINEW_CHECK(sample >= 0 && sample < size(split), sample, size(split));
    return split_of(split).files[static_cast<size_t>(sample)];
  }
  Array targets_of(Split split, const std::vector<int64_t>& samples) const;

  DataInfo info_;
  std::shared_ptr<const ImageTexts> texts_;
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
  std::vector<std::byte> buffer;
  for (const int64_t sample : samples) {
    const ImageFile& file = file_of(split, sample);
    const std::span<float> row(batch.input.as<float>() + batch.samples.size() * row_size, row_size);
    if (const std::string why = decode_sample(file, shape_, row, buffer, &batch.use); !why.empty()) {
      if (!skip_corrupt_) fail_corrupt(file, why);
      batch.skipped.push_back({sample, std::string(file.name) + ": " + why});
      continue;
    }
    LoadWatch watch(batch.use);
    if (context.augment && split == Split::train) {
      augment_image(augment_, augment_key(context.seed, context.epoch, sample), row, shape_.channels,
                    shape_.size.height, shape_.size.width);
    }
    normalization_.apply(row);
    watch.ended(LoadStage::augment);
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
ImageListing list_files(const std::string& format, const spec::DataSource& source, Split split, ListedImages& images) {
  if (source.path.empty()) {
    throw Error("DATA_BAD_SOURCE", "data.format: " + format + " needs a path:, not images: and labels:",
                "name the folder, the list or the tars as path:");
  }
  ImageListing listing;
  if (format == "image_list") {
    listing.files = list_image_list(source.path, *images.texts);
  } else if (format == "webdataset") {
    listing = list_webdataset(source.path, split, *images.texts);
  } else {
    listing = list_image_folder(source.path, *images.texts);
  }
  if (const std::string note = listing.left_out_text(); !note.empty())
    images.info.notes.push_back(to_string(split) + ": " + note);
  return listing;
}

[[noreturn]] void refuse_classes(const std::string& path) {
  throw Error("DATA_BAD_OPTION", path + ": is packed with names of classes, which are no numbers to predict",
              "set data.task: classification, or pack a job with data.task: regression");
}

// The folders of an image_folder are classes. The labels of a list or of tars are numbers to predict if the job says
// so. If the index of a pack names classes, they are classes. If the job says auto, they are numbers if all of them
// parse as numbers and at least one has a fraction.
Task task_of(const spec::DataOptions& options, const ImageListing& train, spec::Reasons& reasons) {
  if (options.format == "image_folder") {
    if (options.task == "regression") {
      throw Error("DATA_BAD_OPTION", "data.task is regression, but the folders of an image_folder are classes",
                  "use data.format: image_list with a number for each image");
    }
    reasons["data.task"] = "each folder is a class";
    return Task::classification;
  }
  if (!train.class_names.empty()) {  // the names may be numbers, but they are names
    if (options.task == "regression") refuse_classes(options.train.path);
    reasons["data.task"] = "the index of the pack names the classes";
    return Task::classification;
  }
  if (options.task != "auto") return options.task == "regression" ? Task::regression : Task::classification;
  bool numbers = true, fractions = false;
  for (const ImageFile& file : train.files) {
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

// A folder of tars whose names say no split is read whole for each split that names it.
void refuse_shared_tars(const std::vector<ImageFile>& train, const std::array<ImageSplit, 3>& others) {
  std::map<std::string_view, const std::vector<ImageFile>*> of_tar;
  for (const std::vector<ImageFile>* files : {&train, &others[1].files, &others[2].files}) {
    const ImageHome* last = nullptr;
    for (const ImageFile& file : *files) {
      if (file.home->tar == nullptr) break;
      if (file.home == last) continue;
      last = file.home;
      if (of_tar.emplace(last->path, files).first->second == files) continue;
      throw Error("DATA_BAD_SOURCE", last->path + ": belongs to two splits of the job",
                  "name the tars of each split, for example path: data/val-{000000..000009}.tar");
    }
  }
}

// Puts the files of train, val and test into images.splits. A split without files of its own takes a fraction of the
// training files.
void list_splits(const spec::DataOptions& options, std::vector<ImageFile> all, uint64_t seed, ListedImages& images) {
  DataInfo& info = images.info;
  std::array<ImageSplit, 3>& splits = images.splits;
  const auto list = [&](const spec::DataSource& source, Split split) {
    if (!source.given()) return;
    ImageListing listing = list_files(options.format, source, split, images);
    if (info.task == Task::regression && !listing.class_names.empty()) refuse_classes(source.path);
    splits[static_cast<size_t>(split)].files = std::move(listing.files);
  };
  list(options.val, Split::val);
  list(options.test, Split::test);
  refuse_shared_tars(all, images.splits);
  SplitRequest request = split_request(options, static_cast<int64_t>(all.size()), seed);
  std::vector<int64_t> classes;
  if (options.stratify && info.task == Task::classification) {
    const ClassIndex index = index_of(info.class_names);
    for (const ImageFile& file : all) classes.push_back(index.at(*file.label));
    request.classes = classes;
  }
  const SplitIndices indices = split_samples(request, info.notes);
  const auto take = [&](const std::vector<int64_t>& from, std::vector<ImageFile>& to) {
    to.reserve(to.size() + from.size());
    for (const int64_t i : from) to.push_back(all[static_cast<size_t>(i)]);
  };
  take(indices.val, splits[1].files);
  take(indices.test, splits[2].files);
  take(indices.train, splits[0].files);
  if (splits[0].files.empty()) {
    throw Error("DATA_EMPTY", "no image is left for training after the split",
                "lower data.split.val and data.split.test");
  }
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
      const auto found = index.find(*file.label);
      if (found == index.end()) {
        throw Error("DATA_UNKNOWN_CLASS",
                    file.place() + ": class '" + *file.label + "' is not among the " + std::to_string(info.classes) +
                        " classes of data.train",
                    "add training images of that class, or remove the class here" +
                        std::string(file.home->tar != nullptr ? kClassesOfIndex : ""));
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
        throw Error("DATA_BAD_TARGET", file.place() + ": '" + *file.label + "' is not a number",
                    "data.task: regression needs numbers; correct the label, or set data.task: classification");
      }
      split.values.push_back(static_cast<float>(*number));
      if (&split == splits.data()) rounding.add(*number);
    }
  }
  rounding.check("data.train");
  set_target_moments(splits[0].values, info);
}

// Adds two things to the digests: the names, sizes, labels and, if they are known, checksums of all files of one split,
// and the content of up to 64 of them. Reading every image to open a dataset would take as long as an epoch.
void add_identity(const std::vector<ImageFile>& files, std::string text, std::vector<Digest>& digests) {
  for (const ImageFile& file : files)
    text += std::string(file.name) + "\t" + std::to_string(file.bytes) + "\t" + *file.label +
            (file.checksum != 0 ? "\t" + std::to_string(file.checksum) : "") + "\n";
  digests.push_back(digest_of(text));
  const size_t probes = std::min<size_t>(64, files.size());
  std::vector<std::byte> buffer;
  for (size_t i = 0; i < probes; ++i)
    digests.push_back(digest_of(read_image_file(files[i * files.size() / probes], buffer)));
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

ListedImages list_images(const spec::DataOptions& options, uint64_t seed) {
  ListedImages images;
  DataInfo& info = images.info;
  info.format = options.format;
  ImageListing train = list_files(options.format, options.train, Split::train, images);
  info.task = task_of(options, train, info.reasons);
  if (info.task == Task::classification)
    info.class_names = train.class_names.empty() ? class_names_of(train.files) : std::move(train.class_names);
  list_splits(options, std::move(train.files), seed, images);
  if (info.task == Task::classification) {
    set_classes(options.train.path, images.splits, info);
  } else {
    set_values(images.splits, info);
  }
  info.train_size = static_cast<int64_t>(images.splits[0].files.size());
  info.val_size = static_cast<int64_t>(images.splits[1].files.size());
  info.test_size = static_cast<int64_t>(images.splits[2].files.size());
  return images;
}

std::unique_ptr<Dataset> open_images(const spec::DataOptions& options, uint64_t seed) {
  ListedImages images = list_images(options, seed);
  DataInfo& info = images.info;
  const std::vector<ImageFile>& train = images.splits[0].files;
  const ImageShape shape = shape_of(options, train, info.reasons);
  Normalization normalization;
  if (options.normalize == "auto") {
    normalization =
        measure_normalization(train, shape, options.on_corrupt == "skip", measuring_threads(options), info.reasons);
  }
  info.input_shape = {shape.channels, shape.size.height, shape.size.width};
  info.preparation = image_preparation(shape, normalization);
  info.digest = identity_of(images.splits, shape, options_digest(options, seed));
  return std::make_unique<ImageDataset>(std::move(images), shape, std::move(normalization), options);
}

}  // namespace sinew::data
