// Inside model/: the makers behind the list of architectures.
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

// A model of the user's own, with its inputs bound to the data.
std::unique_ptr<Model> make_program(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_script(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);
std::unique_ptr<Model> make_library(const spec::ModelOptions&, const data::DataInfo&, int64_t outputs);

// The first samples of data like this, made up: [count, ...] of the input, or of the target. To try a model with.
torch::Tensor made_up_input(const data::DataInfo& data, int64_t count);
torch::Tensor made_up_target(const data::DataInfo& data, int64_t count);
// Throws Error, naming `file`, where a model gave something else for `count` samples than the loss takes: `outputs`
// numbers a sample (or a token), or, with 0, one number.
void check_made(const std::string& file, const torch::Tensor& made, const data::DataInfo& data, int64_t outputs,
                int64_t count);

// The parts of inspect_file and save_own_file.
FileReport inspect_script(const std::string& file);
FileReport inspect_library(const std::string& file);
void save_library(const std::string& file, const std::string& to);
void save_script(const std::string& file, const std::vector<NamedTensor>& values, const std::string& to);

// Refuses data an architecture cannot take, saying what it takes.
void require_numbers(const data::DataInfo& data, const char* model);  // not tokens
void require_images(const data::DataInfo& data, const char* model);   // [channels, height, width]

torch::Tensor activate(const torch::Tensor& input, const std::string& name);  // relu | gelu | tanh | silu

}  // namespace sinew::model
