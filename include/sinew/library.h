// Your own model, loss or data set in C++, trained by Sinew.
//
// Include this, build a shared object against the libtorch that sinew-worker uses, and name it in the job file:
//
//   struct Net : torch::nn::Module {
//     explicit Net(const sinew::library::About& about) { ... register_module(...) ... }
//     torch::Tensor forward(const torch::Tensor& input) { ... }
//   };
//   SINEW_LIBRARY(library) { library.model = sinew::library::model<Net>(); }
//
//   model: {name: library, file: build/libnet.so}
//
// What Sinew asks of the code, because a step is cut into shards that any worker may compute:
//   - forward is a function of its input, the parameters, the buffers and torch's random numbers. Several models made
//     by the same library run side by side, one a thread: no globals that change.
//   - Random numbers come from torch (torch::dropout, torch::rand ...): those repeat whoever draws them.
//   - What forward remembers is a buffer (register_buffer). Floating-point buffers become the mean of the shards' ones,
//     integers must change alike in all shards.
//   - One thread: Sinew sets that up; do not start others.
// examples/cpp-module/ is a project to begin with.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// The number of this interface. Another number is refused when the library is opened, before any of it runs; likewise
// another Sinew, libtorch or string ABI.
#define SINEW_LIBRARY_INTERFACE 1
#define SINEW_VERSION "0.1.0"

namespace sinew::library {

// model.options of the job file: "width=64" -> {"width", "64"}.
using Options = std::map<std::string, std::string>;

// What a model is built for.
struct About {
  std::vector<int64_t> input_shape;  // of one sample: [channels, height, width], [columns], [window]
  bool tokens = false;               // the input is int64; else float32
  int64_t outputs = 0;               // numbers that forward returns a sample: classes, or targets; a token likewise
  int64_t classes = 0;               // 0: the target is a number
  std::vector<std::string> input_names;
  Options options;

  int64_t number(const std::string& name, int64_t otherwise) const {
    const auto found = options.find(name);
    return found == options.end() ? otherwise : std::stoll(found->second);
  }
  double real(const std::string& name, double otherwise) const {
    const auto found = options.find(name);
    return found == options.end() ? otherwise : std::stod(found->second);
  }
};

struct Model {
  std::shared_ptr<torch::nn::Module> module;
  std::function<torch::Tensor(const torch::Tensor& input)> forward;  // [batch, ...] -> [batch, outputs]
};
using MakeModel = std::function<Model(const About& about)>;

// Net: a torch::nn::Module made from an About, with `torch::Tensor forward(const torch::Tensor&)`.
template <typename Net>
MakeModel model() {
  return [](const About& about) {
    auto net = std::make_shared<Net>(about);
    return Model{net, [net](const torch::Tensor& input) { return net->forward(input); }};
  };
}

// A loss as a sum, and what it is to be divided by: samples, or whatever you weigh them by. Not a mean: shards are
// added as sums and divided once. `loss: library`.
struct Sum {
  torch::Tensor sum;  // one number, differentiable
  double weight = 0;
};
using LossOfBatch = std::function<Sum(const torch::Tensor& outputs, const torch::Tensor& targets)>;
using MakeLoss = std::function<LossOfBatch(const Options& options)>;

// One sample: an input of float32 (or int64 for tokens), always of the same shape; the target a class (int64, no
// dimensions), numbers (float32) or the next tokens (int64, [window]).
struct Sample {
  torch::Tensor input, target;
};

// The samples of one path of the job file. `data: {format: library, train: path}`.
class DataSet {
 public:
  virtual ~DataSet() = default;
  virtual int64_t size() const = 0;
  // The number of classes, or of tokens; 0: the target is a number.
  virtual int64_t classes() const = 0;
  // From any thread, in any order, as often as asked: always the same but for torch's random numbers, which are a
  // function of (seed, epoch, sample). `training`: augment now; never for validation.
  virtual Sample sample(int64_t index, bool training) const = 0;
  // A name a person can find the sample by.
  virtual std::string name(int64_t index) const { return "#" + std::to_string(index); }
};
using OpenData = std::function<std::unique_ptr<DataSet>(const std::string& path, const Options& options)>;

// What a library offers; each may be missing.
struct Library {
  MakeModel model;
  MakeLoss loss;
  OpenData data;
};

}  // namespace sinew::library

#define SINEW_TEXT_OF(value) #value
#define SINEW_TEXT(value) SINEW_TEXT_OF(value)
#if defined(__x86_64__)
#define SINEW_PLATFORM "x86_64"
#elif defined(__aarch64__)
#define SINEW_PLATFORM "aarch64"
#else
#define SINEW_PLATFORM "other"
#endif

// What the library was built for; Sinew reads it from the file before it opens the library.
#define SINEW_LIBRARY_STAMP                                                                                 \
  "interface " SINEW_TEXT(SINEW_LIBRARY_INTERFACE) "\nsinew " SINEW_VERSION "\ntorch " TORCH_VERSION        \
                                                   "\nstring_abi " SINEW_TEXT(                              \
                                                       _GLIBCXX_USE_CXX11_ABI) "\nplatform " SINEW_PLATFORM \
                                                                               "\ncompiler " __VERSION__ "\n"

// Once in a library: fills in what it offers.
#define SINEW_LIBRARY(name)                                                                                \
  extern "C" {                                                                                             \
  __attribute__((used, section(".sinew_library"))) const char sinew_library_stamp[] = SINEW_LIBRARY_STAMP; \
  }                                                                                                        \
  extern "C" __attribute__((visibility("default"))) void sinew_library_open(sinew::library::Library& name)
