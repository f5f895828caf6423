// Inside model/: the functions that make each architecture of the list in architectures.cpp.
#pragma once

#include <memory>
#include <string>

#include "model/model.h"

namespace sinew::model {

std::unique_ptr<Model> make_linear(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_mlp(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_cnn(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_resnet18(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_resnet34(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_resnet50(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_lstm(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);

// Models that the user wrote, with their inputs bound to the data.
std::unique_ptr<Model> make_program(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_script(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_library(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);

// Synthetic samples of the shapes and types in `data`, to try a model with: [count, ...] of the input, or of the
// target.
torch::Tensor synthetic_input(const data::DataInfo& data, int64_t count);
torch::Tensor synthetic_target(const data::DataInfo& data, int64_t count);
// Throws Error, naming `file`, if the model's output for `count` samples is not what the loss takes: `outputs` numbers
// for each sample (or token), or one number if `outputs` is 0.
void check_output_shape(const std::string& file, const torch::Tensor& made, const data::DataInfo& data, int64_t outputs,
                        int64_t count);

// inspect_file and save_model_file call these functions, one for each kind of file.
FileReport inspect_script(const std::string& file);
FileReport inspect_library(const std::string& file);
void save_library(const std::string& file, const std::string& to);
void save_script(const std::string& file, const std::vector<NamedTensor>& values, const std::string& to);

// These two throw Error if the architecture cannot take the data. The message says what the architecture takes.
void require_numbers(const data::DataInfo& data, const char* model);  // refuses tokens
void require_images(const data::DataInfo& data, const char* model);   // takes only [channels, height, width]

torch::Tensor activate(const torch::Tensor& input, const std::string& name);  // relu | gelu | tanh | silu

}  // namespace sinew::model
