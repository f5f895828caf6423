// Inside data/: samples that come after training, made ready with what the training data taught. Private to the room.
//
// Each format writes down, as JSON, what its opener learned of train (DataInfo.preparation), and opens later files by
// it alone: the training data need not be there any more. Both sides give the same bits for the same file.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "data/arrays.h"
#include "data/image_folder.h"
#include "data/table.h"
#include "data/target.h"

namespace sinew::data {

std::string array_preparation(DType dtype, const std::vector<double>& mean, const std::vector<double>& factor);
std::string table_preparation(const Encoding& encoding, const TargetRules& rules);
std::string text_preparation(const std::vector<uint32_t>& vocabulary);
std::string image_preparation(const ImageShape& shape, const Normalization& normalization);

// What an opener of later samples is given. `info` is train's, with the three sizes 0; openers fill in test_size.
struct InputsRequest {
  const spec::DataOptions& options;
  const spec::DataSource& source;
  bool labelled = false;  // targets are there and wanted; else they are not looked at, and those of the batches are 0
  DataInfo info;
  nlohmann::json learned;
};
std::unique_ptr<Dataset> open_array_inputs(InputsRequest request);
std::unique_ptr<Dataset> open_table_inputs(InputsRequest request);
std::unique_ptr<Dataset> open_text_inputs(InputsRequest request);
std::unique_ptr<Dataset> open_image_inputs(InputsRequest request);

// Of `count` samples: [count, target_shape...], zeros.
Array blank_targets(const DataInfo& info, int64_t count);

}  // namespace sinew::data
