// Private to data/: opens new samples for a trained model and preprocesses them as the training data was preprocessed.
//
// A format that opens training data writes the preprocessing that it fitted on train as JSON (DataInfo.preparation). To
// open new files, it needs only that JSON, not the training data. Both ways give the same bits for the same file.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "data/arrays.h"
#include "data/encoding.h"
#include "data/image_folder.h"
#include "data/table.h"
#include "data/target.h"

namespace sinew::data {

std::string array_preparation(DType dtype, const std::vector<double>& mean, const std::vector<double>& factor);
std::string table_preparation(const Encoding& encoding, const TargetSchema& schema, const TableStyle& style);
std::string text_preparation(const std::vector<uint32_t>& vocabulary);
std::string image_preparation(const ImageShape& shape, const Normalization& normalization);

// Reads what table_preparation wrote. Throws Error, or an exception of the JSON library.
Encoding encoding_of(const nlohmann::json& preprocessing, const DataInfo& info);

// The arguments of the functions below. `info` describes the training data, except that its three sizes are 0; the
// function sets test_size.
struct InferenceRequest {
  const spec::DataOptions& options;
  const spec::DataSource& source;
  bool labelled = false;  // false: targets are not read, and the targets of the batches are 0
  DataInfo info;
  nlohmann::json preprocessing;  // info.preparation, parsed
};
std::unique_ptr<Dataset> open_array_inference(InferenceRequest request);
std::unique_ptr<Dataset> open_table_inference(InferenceRequest request);
std::unique_ptr<Dataset> open_text_inference(InferenceRequest request);
std::unique_ptr<Dataset> open_image_inference(InferenceRequest request);

// Returns the groups of a table's input columns; `preprocessing` is info.preparation, parsed.
std::vector<InputGroup> table_groups(const nlohmann::json& preprocessing, const DataInfo& info);

// Throws the Error for a model with an inconsistent description of its data.
[[noreturn]] void refuse_model_info(const std::string& why);

// Returns targets for `count` samples, all zero: [count, target_shape...].
Array blank_targets(const DataInfo& info, int64_t count);

}  // namespace sinew::data
