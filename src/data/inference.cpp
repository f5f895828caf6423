#include "data/inference.h"

#include <cstring>
#include <span>

#include "base/error.h"
#include "base/json_text.h"

namespace sinew::data {
namespace {

using nlohmann::json;

constexpr const char* kTasks[] = {"classification", "regression", "next_token"};

Task task_named(const std::string& name) {
  for (size_t i = 0; i < std::size(kTasks); ++i) {
    if (name == kTasks[i]) return static_cast<Task>(i);
  }
  refuse_model_info("'" + name + "' is not a task");
}

json number_or_list(const std::vector<double>& values) {
  return values.size() == 1 ? json(values[0]) : json(values);
}

// One number for each number of a target. A single number is written as such, and holds for all.
std::vector<double> moments_from(const json& item, const Shape& target_shape) {
  if (item.is_number()) return {item.get<double>()};
  auto values = item.get<std::vector<double>>();
  if (static_cast<int64_t>(values.size()) != element_count(target_shape))
    refuse_model_info("the means of its targets do not match their shape");
  return values;
}

struct Opener {
  std::string_view format;
  std::unique_ptr<Dataset> (*open)(InferenceRequest);
};
constexpr Opener kOpeners[] = {
    {"idx", open_array_inference},          {"cifar10", open_array_inference},    {"cifar100", open_array_inference},
    {"npy", open_array_inference},          {"npz", open_array_inference},        {"csv", open_table_inference},
    {"tsv", open_table_inference},          {"jsonl", open_table_inference},      {"text", open_text_inference},
    {"image_folder", open_image_inference}, {"image_list", open_image_inference},
};

}  // namespace

void refuse_model_info(const std::string& why) {
  throw Error("DATA_BAD_MODEL_INFO", "the model's description of its data cannot be used: " + why,
              "take model.json as the training wrote it; another version of Sinew may have written it, or someone "
              "changed it by hand");
}

Array blank_targets(const DataInfo& info, int64_t count) {
  Shape shape{count};
  shape.insert(shape.end(), info.target_shape.begin(), info.target_shape.end());
  Array targets(info.task == Task::regression ? DType::f32 : DType::i64, shape);
  if (targets.bytes.size() > 0) std::memset(targets.bytes.data(), 0, targets.bytes.size());
  return targets;
}

std::string info_json(const DataInfo& info) {
  const json document = {{"task", kTasks[static_cast<size_t>(info.task)]},
                         {"format", info.format},
                         {"input_shape", info.input_shape},
                         {"input_is_tokens", info.input_dtype == DType::i64},
                         {"target_shape", info.target_shape},
                         {"classes", info.classes},
                         {"class_names", info.class_names},
                         {"input_names", info.input_names},
                         {"tokens_per_sample", info.tokens_per_sample},
                         {"target_mean", number_or_list(info.target_mean)},
                         {"target_std", number_or_list(info.target_std)},
                         {"preparation", json::parse(info.preparation)}};
  return dump_json(document);
}

DataInfo info_from_json(const std::string& text) {
  try {
    const json document = json::parse(text);
    DataInfo info;
    info.task = task_named(document.at("task"));
    info.format = document.at("format");
    info.input_shape = document.at("input_shape").get<Shape>();
    info.input_dtype = document.at("input_is_tokens").get<bool>() ? DType::i64 : DType::f32;
    info.target_shape = document.at("target_shape").get<Shape>();
    info.classes = document.at("classes");
    info.class_names = document.at("class_names").get<std::vector<std::string>>();
    info.input_names = document.at("input_names").get<std::vector<std::string>>();
    info.tokens_per_sample = document.at("tokens_per_sample");
    info.target_mean = moments_from(document.at("target_mean"), info.target_shape);
    info.target_std = moments_from(document.at("target_std"), info.target_shape);
    info.preparation = document.at("preparation").dump();
    return info;
  } catch (const json::exception& error) {
    refuse_model_info(error.what());
  }
}

std::unique_ptr<Dataset> open_inference_data(const spec::DataOptions& options, const DataInfo& train,
                                             const spec::DataSource& source, bool labelled) {
  InferenceRequest request{options, source, labelled, train, {}};
  request.info.train_size = request.info.val_size = request.info.test_size = 0;
  for (const Opener& opener : kOpeners) {
    if (opener.format != train.format) continue;
    try {
      request.preprocessing = json::parse(train.preparation);
      return opener.open(std::move(request));
    } catch (const json::exception& error) {
      refuse_model_info(error.what());
    }
  }
  refuse_model_info("'" + train.format + "' is not a data format");
}

}  // namespace sinew::data
