#include "data/inference.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>

#include "base/error.h"
#include "base/joined.h"
#include "base/json_fields.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "data/text_folder.h"

namespace sinew::data {
namespace {

using nlohmann::json;

constexpr const char* kTasks[] = {"classification", "regression", "next_token"};

// The most classes of a model, and the most numbers in a sample and in a target. Predictions keep a class in 32 bits.
// The product of this limit, the bytes of a number and the samples of a batch does not overflow.
constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

Task task_named(const std::string& name) {
  for (size_t i = 0; i < std::size(kTasks); ++i) {
    if (name == kTasks[i]) return static_cast<Task>(i);
  }
  refuse_model_info("'" + printable_start(name) + "' is not a task");
}

json number_or_list(const std::vector<double>& values) {
  return values.size() == 1 ? json(values[0]) : json(values);
}

// One number for each number of a target. A single number is written as such, and holds for all.
std::vector<double> moments_from(const json& item) {
  if (item.is_number()) return {item.get<double>()};
  return item.get<std::vector<double>>();
}

// A fraction in JSON would become a whole number, whose value is undefined if it is too large.
int64_t whole_from(const json& document, const char* key) {
  const auto number = whole_of(document, key, 0, kMost);
  if (!number) refuse_model_info(std::string(key) + " is not a whole number from 0 to " + std::to_string(kMost));
  return *number;
}

// Returns a shape whose sizes are at least 1 and whose product is at most kMost.
Shape shape_from(const json& document, const char* key) {
  const json& sizes = document.at(key);
  if (!sizes.is_array()) refuse_model_info(std::string(key) + " is not a list of sizes");
  Shape shape;
  int64_t count = 1;
  for (const json& item : sizes) {
    const int64_t size = item.is_number_integer() ? item.get<int64_t>() : 0;  // a number over 2^63 becomes negative
    if (size < 1 || size > kMost / count)
      refuse_model_info(std::string(key) + " must have whole numbers from 1 whose product is at most " +
                        std::to_string(kMost));
    shape.push_back(size);
    count *= size;
  }
  return shape;
}

struct Opener {
  std::string_view format;
  std::unique_ptr<Dataset> (*open)(InferenceRequest);
  enum class Target : uint8_t { number, numbers, tokens } target;  // of one sample; a class is a number
};
using Target = Opener::Target;
constexpr Opener kOpeners[] = {
    {"idx", open_array_inference, Target::numbers},         {"cifar10", open_array_inference, Target::numbers},
    {"cifar100", open_array_inference, Target::numbers},    {"npy", open_array_inference, Target::numbers},
    {"npz", open_array_inference, Target::numbers},         {"csv", open_table_inference, Target::number},
    {"tsv", open_table_inference, Target::number},          {"jsonl", open_table_inference, Target::number},
    {"text_folder", open_table_inference, Target::number},  {"text", open_text_inference, Target::tokens},
    {"image_folder", open_image_inference, Target::number}, {"image_list", open_image_inference, Target::number},
    {"webdataset", open_image_inference, Target::number},
};

const Opener* opener_of(const std::string& format) {
  const auto* found = std::find_if(std::begin(kOpeners), std::end(kOpeners),
                                   [&](const Opener& opener) { return opener.format == format; });
  return found == std::end(kOpeners) ? nullptr : found;
}

std::string shape_text(const Shape& shape) {
  return "[" + joined_numbers(shape, ", ") + "]";
}

// The readers write targets without looking at their shape: a class or a number of each sample, or a window of tokens.
void check_target(const DataInfo& info) {
  const std::string task = kTasks[static_cast<size_t>(info.task)];
  const auto want = [&](bool fits, const std::string& wanted) {
    if (!fits)
      refuse_model_info("target_shape is " + shape_text(info.target_shape) + ", but with the task " + task +
                        " and the format " + printable_start(info.format) + " it must be " + wanted);
  };
  const Opener* opener = opener_of(info.format);  // none for a library, which checks its own samples against the shapes
  const bool tokens = info.task == Task::next_token;
  if (opener != nullptr && tokens != (opener->target == Target::tokens))
    refuse_model_info("the task is " + task + ", which the format " + info.format + " does not have");
  if (tokens) want(info.target_shape == info.input_shape, "input_shape, " + shape_text(info.input_shape));
  if (info.task == Task::classification || (opener != nullptr && opener->target == Target::number))
    want(info.target_shape.empty(), "[]");
}

void check_moments(const DataInfo& info) {
  const size_t means = info.target_mean.size(), count = static_cast<size_t>(element_count(info.target_shape));
  if (means == info.target_std.size() && (means == 1 || (info.task == Task::regression && means == count))) return;
  refuse_model_info("target_mean has " + std::to_string(means) + " numbers and target_std " +
                    std::to_string(info.target_std.size()) + ", but both must be one number, or a list with " +
                    "a number for each number of a target");
}

// Each of these fields becomes the size of a buffer or an index into one.
void check_info(const DataInfo& info) {
  check_target(info);
  check_moments(info);
  const bool tokens = info.task == Task::next_token;
  if (info.tokens_per_sample != (tokens ? element_count(info.input_shape) : 1))
    refuse_model_info("tokens_per_sample is " + std::to_string(info.tokens_per_sample) + ", but input_shape is " +
                      shape_text(info.input_shape));
  const bool library = opener_of(info.format) == nullptr;
  const bool whole = info.input_dtype == DType::i64;
  if ((tokens && !whole) || (!tokens && whole && !library))
    refuse_model_info("input_is_tokens does not fit the task and the format");
  if (info.task != Task::regression && info.classes == 0) refuse_model_info("classes is 0, but the task needs classes");
  if (!info.class_names.empty() && static_cast<int64_t>(info.class_names.size()) != info.classes)
    refuse_model_info("it has " + std::to_string(info.class_names.size()) + " class_names, but classes is " +
                      std::to_string(info.classes));
  if (!info.input_names.empty() && info.input_shape != Shape{static_cast<int64_t>(info.input_names.size())})
    refuse_model_info("its input columns do not match its input shape");
}

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
    info.input_shape = shape_from(document, "input_shape");
    info.input_dtype = document.at("input_is_tokens").get<bool>() ? DType::i64 : DType::f32;
    info.target_shape = shape_from(document, "target_shape");
    info.classes = whole_from(document, "classes");
    info.class_names = document.at("class_names").get<std::vector<std::string>>();
    info.input_names = document.at("input_names").get<std::vector<std::string>>();
    info.tokens_per_sample = whole_from(document, "tokens_per_sample");
    info.target_mean = moments_from(document.at("target_mean"));
    info.target_std = moments_from(document.at("target_std"));
    info.preparation = document.at("preparation").dump();
    check_info(info);
    return info;
  } catch (const json::exception& error) {
    refuse_model_info(error.what());
  }
}

std::vector<InputGroup> input_groups(const DataInfo& info) {
  const bool table =
      info.format == "csv" || info.format == "tsv" || info.format == "jsonl" || info.format == kTextFolder;
  if (!table) {
    std::vector<InputGroup> groups;
    for (int64_t i = 0; i < element_count(info.input_shape); ++i) groups.push_back({InputGroup::Kind::number, i, 1});
    return groups;
  }
  try {
    return table_groups(json::parse(info.preparation), info);
  } catch (const json::exception& error) {
    refuse_model_info(error.what());
  }
}

std::unique_ptr<Dataset> open_inference_data(const spec::DataOptions& options, const DataInfo& train,
                                             const spec::DataSource& source, bool labelled) {
  InferenceRequest request{options, source, labelled, train, {}};
  request.info.train_size = request.info.val_size = request.info.test_size = 0;
  const Opener* opener = opener_of(train.format);
  if (opener == nullptr) refuse_model_info("'" + printable_start(train.format) + "' is not a data format");
  try {
    request.preprocessing = json::parse(train.preparation);
    return opener->open(std::move(request));
  } catch (const json::exception& error) {
    refuse_model_info(error.what());
  }
}

}  // namespace sinew::data
