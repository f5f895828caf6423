// Opens new images for a trained model: one file, a folder of files at any depth, a list, or tars. Labels are read only
// if the request asks for them.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>

#include "base/check.h"
#include "base/disk.h"
#include "base/error.h"
#include "base/joined.h"
#include "data/inference.h"
#include "data/webdataset.h"

namespace sinew::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxDeclaredSide = 16384;  // the largest side of an image that model.json may declare

class ImageInferenceData final : public Dataset {
 public:
  ImageInferenceData(DataInfo info, std::shared_ptr<const ImageTexts> texts, std::vector<ImageFile> files,
                     std::vector<double> targets, ImageShape shape, Normalization normalization, bool skip_corrupt)
      : info_(std::move(info)),
        texts_(std::move(texts)),
        files_(std::move(files)),
        targets_(std::move(targets)),
        shape_(shape),
        normalization_(std::move(normalization)),
        skip_corrupt_(skip_corrupt) {}

  const DataInfo& info() const override { return info_; }
  int64_t size(Split split) const override { return split == Split::test ? static_cast<int64_t>(files_.size()) : 0; }
  bool in_memory() const override { return false; }
  std::string describe(Split, int64_t sample) const override {
    return std::string(files_[static_cast<size_t>(sample)].name);
  }

  Batch load(Split split, std::span<const int64_t> samples, const SampleContext&) const override {
    Batch batch;
    const auto row_size = static_cast<size_t>(shape_.count());
    std::vector<float> pixels(samples.size() * row_size);
    std::vector<std::byte> buffer;
    for (const int64_t sample : samples) {
      SINEW_CHECK(sample >= 0 && sample < size(split), sample, size(split));
      const ImageFile& file = files_[static_cast<size_t>(sample)];
      const std::span<float> row(pixels.data() + batch.samples.size() * row_size, row_size);
      if (const std::string why = decode_sample(file, shape_, row, buffer); !why.empty()) {
        if (!skip_corrupt_) fail_corrupt(file, why);
        batch.skipped.push_back({sample, std::string(file.name) + ": " + why});
        continue;
      }
      normalization_.apply(row);
      batch.samples.push_back(sample);
    }
    batch.input = Array(DType::f32, {batch.count(), shape_.channels, shape_.size.height, shape_.size.width});
    if (batch.count() > 0) std::memcpy(batch.input.bytes.data(), pixels.data(), batch.input.bytes.size());
    batch.target = blank_targets(info_, batch.count());
    for (size_t i = 0; i < batch.samples.size() && !targets_.empty(); ++i) {
      const double target = targets_[static_cast<size_t>(batch.samples[i])];
      if (info_.task == Task::regression) {
        batch.target.as<float>()[i] = static_cast<float>(target);
      } else {
        batch.target.as<int64_t>()[i] = static_cast<int64_t>(target);
      }
    }
    return batch;
  }

 private:
  DataInfo info_;
  std::shared_ptr<const ImageTexts> texts_;
  std::vector<ImageFile> files_;
  std::vector<double> targets_;  // the class or the number of each file; empty if the files are not labelled
  ImageShape shape_;
  Normalization normalization_;
  bool skip_corrupt_;
};

// Lists the files, and adds a note about files that are left out.
std::vector<ImageFile> files_of(InferenceRequest& request, ImageTexts& texts) {
  const std::string& path = request.source.path;
  const bool folder = fs::is_directory(path), tars = names_tars(path);
  if (!folder && !tars && (request.labelled || !is_image_name(path))) return list_image_list(path, texts);
  ImageListing listing;
  if (tars) {
    listing = list_webdataset(path, std::nullopt, texts, request.labelled);
    const std::set<Split> splits = folder ? splits_of_tars(path) : std::set<Split>();
    if (splits.size() > 1)
      request.info.notes.push_back(
          "the tars of all splits are read: " + joined(splits, ", ", [](Split split) { return to_string(split); }) +
          "; name those of one as a pattern, such as " + path + "/test-*.tar");
    if (request.labelled && !listing.class_names.empty() && request.info.task == Task::regression)
      throw Error("DATA_BAD_TARGET", path + ": is packed with names of classes, which are no numbers to predict",
                  "the model predicts numbers; pack a job with data.task: regression");
  } else if (!folder) {
    listing.files.push_back({.home = texts.home(fs::path(path).parent_path().string(), false),
                             .label = texts.label(""),
                             .name = texts.name(file_name(path)),
                             .bytes = system_disk().size(path)});
  } else if (request.labelled) {
    listing = list_image_folder(path, texts);
  } else {
    collect_images(path, "", "", listing, texts);
  }
  if (listing.files.empty()) refuse_no_images(path, listing, "give a folder of images, or one image");
  if (const std::string note = listing.left_out_text(); !note.empty()) request.info.notes.push_back(note);
  return std::move(listing.files);
}

double target_of(const ImageFile& file, const DataInfo& info) {
  if (info.task == Task::classification) {
    const auto found = std::find(info.class_names.begin(), info.class_names.end(), *file.label);
    if (found != info.class_names.end()) return static_cast<double>(found - info.class_names.begin());
    throw Error("DATA_UNKNOWN_CLASS",
                file.place() + ": class '" + *file.label + "' is not among the " + std::to_string(info.classes) +
                    " classes of the model",
                "remove it, or train with images of that class" +
                    std::string(file.home->tar != nullptr ? kClassesOfIndex : ""));
  }
  if (const std::optional<double> number = file.label_number()) return *number;
  throw Error("DATA_BAD_TARGET", file.place() + ": '" + *file.label + "' is not a number",
              "the model predicts numbers; correct the label");
}

}  // namespace

std::string image_preparation(const ImageShape& shape, const Normalization& normalization) {
  return nlohmann::json({{"stretch", shape.stretch}, {"mean", normalization.mean}, {"std", normalization.std}}).dump();
}

std::unique_ptr<Dataset> open_image_inference(InferenceRequest request) {
  DataInfo& info = request.info;
  const auto& sizes = info.input_shape;
  Normalization normalization;
  normalization.mean = request.preprocessing.at("mean").get<std::vector<float>>();
  normalization.std = request.preprocessing.at("std").get<std::vector<float>>();
  const bool fits = sizes.size() == 3 && (sizes[0] == 1 || sizes[0] == 3) && std::min(sizes[1], sizes[2]) >= 1 &&
                    std::max(sizes[1], sizes[2]) <= kMaxDeclaredSide &&
                    normalization.mean.size() == normalization.std.size() &&
                    (normalization.mean.empty() || static_cast<int64_t>(normalization.mean.size()) == sizes[0]);
  if (!fits) refuse_model_info("its normalisation does not match its image shape");
  const ImageShape shape{{sizes[1], sizes[2]}, sizes[0], request.preprocessing.at("stretch").get<bool>()};
  const auto texts = std::make_shared<ImageTexts>();
  std::vector<ImageFile> files = files_of(request, *texts);
  std::vector<double> targets;
  if (request.labelled) {
    for (const ImageFile& file : files) targets.push_back(target_of(file, info));
  }
  info.test_size = static_cast<int64_t>(files.size());
  return std::make_unique<ImageInferenceData>(std::move(info), texts, std::move(files), std::move(targets), shape,
                                              std::move(normalization), request.options.on_corrupt == "skip");
}

}  // namespace sinew::data
