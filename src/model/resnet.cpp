// Makes residual networks: He, Zhang, Ren, Sun, "Deep residual learning for image recognition" (CVPR 2016). A
// bottleneck has its stride in the 3x3 convolution, as in torchvision. The cifar stem (3x3, stride 1, no pool) keeps
// small images from shrinking to nothing.
#include <array>

#include "model/makers.h"
#include "model/module_model.h"

namespace sinew::model {
namespace {

torch::nn::Conv2d convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

struct Block : torch::nn::Module {
  // A block has `middle` channels inside and `out` outside. A bottleneck has out = 4 * middle and three convolutions.
  Block(int64_t in, int64_t middle, int64_t out, int64_t stride, bool bottleneck) : bottleneck_(bottleneck) {
    if (bottleneck) {
      conv1 = register_module("conv1", convolution(in, middle, 1, 1));
      conv2 = register_module("conv2", convolution(middle, middle, 3, stride));
      conv3 = register_module("conv3", convolution(middle, out, 1, 1));
      bn3 = register_module("bn3", torch::nn::BatchNorm2d(out));
    } else {
      conv1 = register_module("conv1", convolution(in, middle, 3, stride));
      conv2 = register_module("conv2", convolution(middle, out, 3, 1));
    }
    bn1 = register_module("bn1", torch::nn::BatchNorm2d(middle));
    bn2 = register_module("bn2", torch::nn::BatchNorm2d(bottleneck ? middle : out));
    if (stride != 1 || in != out) {
      downsample = register_module("downsample",
                                   torch::nn::Sequential(convolution(in, out, 1, stride), torch::nn::BatchNorm2d(out)));
    }
  }

  torch::Tensor forward(const torch::Tensor& input) {
    torch::Tensor x = torch::relu(bn1->forward(conv1->forward(input)));
    x = bn2->forward(conv2->forward(x));
    if (bottleneck_) x = bn3->forward(conv3->forward(torch::relu(x)));
    const torch::Tensor shortcut = downsample.is_empty() ? input : downsample->forward(input);
    return torch::relu(x + shortcut);
  }

  bool bottleneck_;
  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr}, conv3{nullptr};
  torch::nn::BatchNorm2d bn1{nullptr}, bn2{nullptr}, bn3{nullptr};
  torch::nn::Sequential downsample{nullptr};
};

struct ResNet : torch::nn::Module {
  ResNet(const spec::ModelOptions& options, const Shape& image, int64_t outputs, std::array<int, 4> depths,
         bool bottleneck) {
    const int64_t width = options.width, expansion = bottleneck ? 4 : 1;
    small_stem = has_small_stem(options, image);
    conv1 =
        register_module("conv1", small_stem ? convolution(image[0], width, 3, 1) : convolution(image[0], width, 7, 2));
    bn1 = register_module("bn1", torch::nn::BatchNorm2d(width));
    int64_t in = width;
    for (int stage = 0; stage < 4; ++stage) {
      torch::nn::Sequential blocks;
      const int64_t middle = width << stage;
      for (int i = 0; i < depths[static_cast<size_t>(stage)]; ++i) {
        blocks->push_back(Block(in, middle, middle * expansion, stage > 0 && i == 0 ? 2 : 1, bottleneck));
        in = middle * expansion;
      }
      stages.push_back(register_module("layer" + std::to_string(stage + 1), blocks));
    }
    fc = register_module("fc", torch::nn::Linear(in, outputs));
    initialise();
  }

  void initialise() {
    for (const auto& module : modules(/*include_self=*/false)) {
      if (auto* conv = module->as<torch::nn::Conv2d>()) {
        torch::nn::init::kaiming_normal_(conv->weight, 0.0, torch::kFanOut, torch::kReLU);
      }
    }
  }

  torch::Tensor forward(const torch::Tensor& input) {
    torch::Tensor x = torch::relu(bn1->forward(conv1->forward(input)));
    if (!small_stem) x = torch::max_pool2d(x, 3, 2, 1);
    for (auto& stage : stages) x = stage->forward(x);
    x = torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1);
    return fc->forward(x);  // [batch, outputs]
  }

  bool small_stem;
  torch::nn::Conv2d conv1{nullptr};
  torch::nn::BatchNorm2d bn1{nullptr};
  std::vector<torch::nn::Sequential> stages;
  torch::nn::Linear fc{nullptr};
};

std::unique_ptr<Model> make_resnet(const spec::ModelOptions& options, const data::DataInfo& data, int64_t outputs,
                                   std::array<int, 4> depths, bool bottleneck) {
  require_images(data, options.name.c_str());
  return as_model(std::make_shared<ResNet>(options, data.input_shape, outputs, depths, bottleneck));
}

}  // namespace

bool has_small_stem(const spec::ModelOptions& options, const Shape& image) {
  return options.stem == "cifar" || (options.stem == "auto" && image.at(1) <= 64 && image.at(2) <= 64);
}

std::unique_ptr<Model> make_resnet18(const spec::ModelOptions& options, const data::DataInfo& data, int64_t outputs) {
  return make_resnet(options, data, outputs, {2, 2, 2, 2}, false);
}
std::unique_ptr<Model> make_resnet34(const spec::ModelOptions& options, const data::DataInfo& data, int64_t outputs) {
  return make_resnet(options, data, outputs, {3, 4, 6, 3}, false);
}
std::unique_ptr<Model> make_resnet50(const spec::ModelOptions& options, const data::DataInfo& data, int64_t outputs) {
  return make_resnet(options, data, outputs, {3, 4, 6, 3}, true);
}

}  // namespace sinew::model
