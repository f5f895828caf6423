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

// Refuses data an architecture cannot take, saying what it takes.
void require_numbers(const data::DataInfo& data, const char* model);  // not tokens
void require_images(const data::DataInfo& data, const char* model);   // [channels, height, width]

torch::Tensor activate(const torch::Tensor& input, const std::string& name);  // relu | gelu | tanh | silu

}  // namespace sinew::model
