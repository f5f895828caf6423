// Makes a plain convolutional network: blocks of (3x3 convolution, norm, activation, 2x2 max pool), then one linear
// layer.
#include "base/error.h"
#include "model/makers.h"
#include "model/module_model.h"

namespace sinew::model {
namespace {

struct CnnNet : torch::nn::Module {
  CnnNet(const spec::ModelOptions& options, const Shape& image, int64_t outputs)
      : activation(options.activation), dropout(options.dropout) {
    int64_t channels = image[0], height = image[1], width = image[2];
    for (const int64_t size : options.channels) {
      if (height < 2 || width < 2) {
        throw Error("MODEL_DATA_MISMATCH",
                    "model.channels has too many blocks: each halves the image, which is " + std::to_string(image[1]) +
                        "x" + std::to_string(image[2]),
                    "list fewer channels");
      }
      convolutions->push_back(
          torch::nn::Conv2d(torch::nn::Conv2dOptions(channels, size, 3).padding(1).bias(options.norm != "batch")));
      if (options.norm == "batch") norms->push_back(torch::nn::BatchNorm2d(size));
      channels = size;
      height /= 2;
      width /= 2;
    }
    register_module("convolutions", convolutions);
    if (!norms->is_empty()) register_module("norms", norms);
    output = register_module("output", torch::nn::Linear(channels * height * width, outputs));
  }

  torch::Tensor forward(const torch::Tensor& input) {
    torch::Tensor x = input;  // [batch, channels, height, width]
    for (size_t i = 0; i < convolutions->size(); ++i) {
      x = convolutions[i]->as<torch::nn::Conv2d>()->forward(x);
      if (!norms->is_empty()) x = norms[i]->as<torch::nn::BatchNorm2d>()->forward(x);
      // ReLU keeps the order of numbers, so it may come after the pooling, where there are a quarter as many.
      const bool after = activation == "relu" || activation == "auto";
      x = after ? activate(torch::max_pool2d(x, 2), activation) : torch::max_pool2d(activate(x, activation), 2);
    }
    x = x.flatten(1);
    if (dropout > 0) x = torch::dropout(x, dropout, is_training());
    return output->forward(x);  // [batch, outputs]
  }

  std::string activation;
  double dropout;
  torch::nn::ModuleList convolutions, norms;
  torch::nn::Linear output{nullptr};
};

}  // namespace

std::unique_ptr<Model> make_cnn(const spec::ModelOptions& options, const data::DataInfo& data, int64_t outputs) {
  require_images(data, "cnn");
  return as_model(std::make_shared<CnnNet>(options, data.input_shape, outputs));
}

}  // namespace sinew::model
