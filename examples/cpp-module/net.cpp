// A small residual network, its loss and its data, as a library for Sinew.
#include <sinew/library.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace {

using sinew::library::About;

struct ResidualImpl : torch::nn::Module {
  ResidualImpl(int64_t width, double dropout)
      : first(register_module("first", torch::nn::Linear(width, width))),
        norm(register_module("norm", torch::nn::BatchNorm1d(width))),
        second(register_module("second", torch::nn::Linear(width, width))),
        rate(dropout) {}

  torch::Tensor forward(const torch::Tensor& x) {  // [batch, width]
    const torch::Tensor inner = torch::relu(norm(first(x)));
    return x + second(torch::dropout(inner, rate, is_training()));
  }

  torch::nn::Linear first;
  torch::nn::BatchNorm1d norm;
  torch::nn::Linear second;
  double rate;
};
TORCH_MODULE(Residual);

// Options: width, depth, dropout.
struct Net : torch::nn::Module {
  explicit Net(const About& about) {
    int64_t inputs = 1;
    for (const int64_t size : about.input_shape) inputs *= size;
    const int64_t width = about.number("width", 32);
    stem = register_module("stem", torch::nn::Linear(inputs, width));
    for (int64_t i = 0; i < about.number("depth", 2); ++i)
      blocks->push_back(Residual(width, about.real("dropout", 0.1)));
    register_module("blocks", blocks);
    head = register_module("head", torch::nn::Linear(width, about.outputs));
  }

  torch::Tensor forward(const torch::Tensor& input) {
    torch::Tensor x = stem(input.flatten(1));
    for (const auto& block : *blocks) x = block->as<ResidualImpl>()->forward(x);
    return head(x);  // [batch, outputs]
  }

  torch::nn::Linear stem{nullptr};
  torch::nn::ModuleList blocks;
  torch::nn::Linear head{nullptr};
};

// Focal loss (Lin et al. 2017): samples that the model already predicts well count less. Returns a sum and its divisor.
sinew::library::LossOfBatch focal(const sinew::library::Options& options) {
  const auto found = options.find("gamma");
  const double gamma = found == options.end() ? 2.0 : std::stod(found->second);
  return [gamma](const torch::Tensor& outputs, const torch::Tensor& targets) {
    const torch::Tensor right = outputs.log_softmax(1).gather(1, targets.unsqueeze(1));
    return sinew::library::Sum{-((1 - right.exp()).pow(gamma) * right).sum(), static_cast<double>(targets.size(0))};
  };
}

// A file of lines "x y class". Training samples are moved a little, with random numbers of torch.
class Points : public sinew::library::DataSet {
 public:
  explicit Points(const std::string& path) : path_(path) {
    std::ifstream file(path);
    for (Point point{}; file >> point.x >> point.y >> point.label;) points_.push_back(point);
    if (points_.empty()) throw std::runtime_error(path + " has no lines 'x y class'");
    for (const Point& point : points_) classes_ = std::max(classes_, point.label + 1);
  }
  int64_t size() const override { return static_cast<int64_t>(points_.size()); }
  int64_t classes() const override { return classes_; }
  sinew::library::Sample sample(int64_t index, bool training) const override {
    const Point& point = points_.at(static_cast<size_t>(index));
    torch::Tensor place = torch::tensor({point.x, point.y});
    if (training) place += 0.05 * torch::randn({2});
    return {place, torch::tensor(point.label, torch::kInt64)};
  }
  std::string name(int64_t index) const override { return path_ + ":" + std::to_string(index + 1); }

 private:
  struct Point {
    float x, y;
    int64_t label;
  };
  std::string path_;
  std::vector<Point> points_;
  int64_t classes_ = 0;
};

}  // namespace

SINEW_LIBRARY(library) {
  library.model = sinew::library::model<Net>();
  library.loss = focal;
  library.data = [](const std::string& path, const sinew::library::Options&) { return std::make_unique<Points>(path); };
}
