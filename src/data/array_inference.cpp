// Opens new samples in the array formats for a trained model. If the samples have no labels, IDX and NumPy need only
// the file of inputs.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/error.h"
#include "base/joined.h"
#include "data/inference.h"
#include "data/labels.h"

namespace sinew::data {
namespace {

class ArrayInferenceData final : public Dataset {
 public:
  ArrayInferenceData(DataInfo info, FileArray inputs, std::optional<Labels> labels, std::vector<double> mean,
                     std::vector<double> factor)
      : info_(std::move(info)),
        inputs_(std::move(inputs)),
        labels_(std::move(labels)),
        mean_(std::move(mean)),
        factor_(std::move(factor)) {}

  const DataInfo& info() const override { return info_; }
  int64_t size(Split split) const override { return split == Split::test ? inputs_.rows() : 0; }
  bool in_memory() const override { return true; }
  std::string describe(Split, int64_t sample) const override {
    return file_name(inputs_.name) + '[' + std::to_string(sample) + ']';
  }

  Batch load(Split split, std::span<const int64_t> samples, const SampleContext&) const override {
    Batch batch;
    batch.samples.assign(samples.begin(), samples.end());
    Shape shape{batch.count()};
    shape.insert(shape.end(), info_.input_shape.begin(), info_.input_shape.end());
    batch.input = Array(DType::f32, shape);
    batch.target = blank_targets(info_, batch.count());
    const int64_t width = element_count(info_.input_shape);
    for (size_t i = 0; i < samples.size(); ++i) {
      SINEW_CHECK(samples[i] >= 0 && samples[i] < size(split), samples[i], size(split));
      convert(inputs_.row(samples[i]), batch.input.as<float>() + static_cast<int64_t>(i) * width);
      if (labels_) copy_target(static_cast<size_t>(samples[i]), i, batch.target);
    }
    return batch;
  }

 private:
  void convert(const std::byte* row, float* out) const {
    if (info_.input_shape.size() == 1) {
      convert_columns(inputs_.dtype, row, mean_, factor_, out);
      return;
    }
    const int64_t area = element_count(info_.input_shape) / static_cast<int64_t>(mean_.size());
    for (size_t c = 0; c < mean_.size(); ++c) {
      convert_row(inputs_.dtype, row, area, mean_[c], factor_[c], out);
      row += static_cast<size_t>(area) * size_of(inputs_.dtype);
      out += area;
    }
  }

  void copy_target(size_t sample, size_t row, Array& targets) const {
    const auto width = static_cast<size_t>(element_count(info_.target_shape));
    if (info_.task == Task::regression) {
      std::memcpy(targets.as<float>() + row * width, labels_->numbers.data() + sample * width, width * sizeof(float));
    } else {
      targets.as<int64_t>()[row] = labels_->classes[sample];
    }
  }

  DataInfo info_;
  FileArray inputs_;
  std::optional<Labels> labels_;
  std::vector<double> mean_, factor_;
};

FileArray read_array_file(const std::string& path, bool idx) {
  std::vector<std::byte> bytes = read_file(path).bytes;
  const ArrayHeader header = idx ? parse_idx(bytes, path) : parse_npy(bytes, path);
  return make_array(std::move(bytes), header, path);
}

ArraySplit read_split(const InferenceRequest& request) {
  const std::string& format = request.info.format;
  if (format == "cifar10" || format == "cifar100") return read_cifar(request.source, Split::test, format == "cifar100");
  if (format == "npz") return read_npz(request.source, Split::test);
  if (request.labelled) {
    return format == "idx" ? read_idx(request.source, Split::test) : read_npy(request.source, Split::test);
  }
  ArraySplit split;
  const std::string& path = request.source.images.empty() ? request.source.path : request.source.images;
  split.inputs = read_array_file(path, format == "idx");
  return split;
}

// Returns the shape of one sample as the model takes it. For example, an image [28, 28] counts as [1, 28, 28].
Shape shape_of_samples(const FileArray& inputs) {
  const Shape row = inputs.shape.size() < 2 ? Shape{1} : inputs.row_shape();
  return row.size() == 2 ? Shape{1, row[0], row[1]} : row;
}

std::string text_of_shape(const Shape& shape) {
  return joined_numbers(shape, " x ");
}

}  // namespace

std::string array_preparation(DType dtype, const std::vector<double>& mean, const std::vector<double>& factor) {
  return nlohmann::json({{"dtype", name_of(dtype)}, {"mean", mean}, {"factor", factor}}).dump();
}

std::unique_ptr<Dataset> open_array_inference(InferenceRequest request) {
  ArraySplit split = read_split(request);
  put_channels_first(split.inputs);
  DataInfo& info = request.info;
  if (shape_of_samples(split.inputs) != info.input_shape) {
    throw Error("DATA_SHAPE_MISMATCH",
                split.inputs.name + ": its samples have the shape " + text_of_shape(shape_of_samples(split.inputs)) +
                    ", but the model was trained on " + text_of_shape(info.input_shape),
                "give samples of the shape that the training data had");
  }
  const std::string dtype = request.preprocessing.at("dtype");
  if (name_of(split.inputs.dtype) != dtype) {
    throw Error("DATA_SHAPE_MISMATCH",
                split.inputs.name + ": its values are " + std::string(name_of(split.inputs.dtype)) +
                    ", but the training data held " + dtype,
                "write the file in the type and the units of the training data");
  }
  const auto mean = request.preprocessing.at("mean").get<std::vector<double>>(),
             factor = request.preprocessing.at("factor").get<std::vector<double>>();
  if (static_cast<int64_t>(mean.size()) != info.input_shape[0] || factor.size() != mean.size()) {
    refuse_model_info("its mean and factor do not match its input shape");
  }
  std::optional<Labels> labels;
  if (request.labelled) {
    if (split.targets.rows() != split.inputs.rows()) {
      throw Error("DATA_COUNT_MISMATCH",
                  split.inputs.name + " holds " + with_commas(split.inputs.rows()) + " samples, but " +
                      split.targets.name + " holds " + with_commas(split.targets.rows()) + " labels",
                  "give two files that belong together");
    }
    labels = read_labels(split.targets, {info.task, info.target_shape, info.classes, ""});
  }
  info.test_size = split.inputs.rows();
  return std::make_unique<ArrayInferenceData>(std::move(info), std::move(split.inputs), std::move(labels), mean,
                                              factor);
}

}  // namespace sinew::data
