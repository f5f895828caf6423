// With this header you write a model, a loss or a data set in C++, and Sinew trains with it.
//
// Include this header, build a shared object against the libtorch that sinew-worker uses, and name it in the job file:
//
//   struct Net : torch::nn::Module {
//     explicit Net(const sinew::library::About& about) { ... register_module(...) ... }
//     torch::Tensor forward(const torch::Tensor& input) { ... }
//   };
//   SINEW_LIBRARY(library) { library.model = sinew::library::model<Net>(); }
//
//   model: {name: library, file: build/libnet.so}
//
// A step is cut into shards that any worker may compute, so the code must follow four rules:
//   - forward is a function of its input, the parameters, the buffers and torch's random numbers. Several models of one
//     library run in parallel, one in each thread, so the code must not change global variables.
//   - Random numbers come from torch (torch::dropout, torch::rand ...). Sinew makes them the same on every worker.
//   - forward keeps its state in buffers (register_buffer). A floating-point buffer becomes the mean over the shards;
//     an integer buffer must change in the same way in all shards.
//   - forward runs on one thread, which Sinew configures. It must not start other threads.
// examples/cpp-module/ is a project to start from.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// The version of this interface. Sinew refuses a library that was built for another interface version, Sinew version,
// libtorch, string ABI or platform, before any code of the library runs.
#define SINEW_LIBRARY_INTERFACE 1
#define SINEW_VERSION "0.1.0"

namespace sinew::library {

// The entries of model.options in the job file: "width=64" becomes {"width", "64"}.
using Options = std::map<std::string, std::string>;

// Describes the data and the options for which a model is built.
struct About {
  std::vector<int64_t> input_shape;  // the shape of one sample: [channels, height, width], [columns] or [window]
  bool tokens = false;               // true: the input is int64; false: it is float32
  int64_t outputs = 0;               // numbers that forward returns for each sample or token (classes, or targets)
  int64_t classes = 0;               // 0 if the target is a number
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

// Returns a MakeModel for Net: a torch::nn::Module with a constructor from About and `torch::Tensor forward(const
// torch::Tensor&)`.
template <typename Net>
MakeModel model() {
  return [](const About& about) {
    auto net = std::make_shared<Net>(about);
    return Model{net, [net](const torch::Tensor& input) { return net->forward(input); }};
  };
}

// The loss of some samples (`loss: library`): the sum of their losses, and the divisor, which is the number of samples
// or the sum of their weights. Do not return a mean, because Sinew adds the sums of all shards and divides once.
struct Sum {
  torch::Tensor sum;  // one number, differentiable
  double weight = 0;
};
using LossOfBatch = std::function<Sum(const torch::Tensor& outputs, const torch::Tensor& targets)>;
using MakeLoss = std::function<LossOfBatch(const Options& options)>;

// One sample. The input is float32, or int64 for tokens, and has the same shape in every sample. The target is a class
// (int64, no dimensions), numbers (float32) or the next tokens (int64, [window]).
struct Sample {
  torch::Tensor input, target;
};

// The samples of one path of the job file, for `data: {format: library, train: path}`.
class DataSet {
 public:
  virtual ~DataSet() = default;
  virtual int64_t size() const = 0;
  // The number of classes, or of tokens; 0 if the target is a number.
  virtual int64_t classes() const = 0;
  // Any thread calls this, in any order and repeatedly. The result must always be the same, except for torch's random
  // numbers, which are a function of (seed, epoch, sample). `training`: true if the sample may be augmented.
  virtual Sample sample(int64_t index, bool training) const = 0;
  // Returns a name by which a user can find the sample.
  virtual std::string name(int64_t index) const { return "#" + std::to_string(index); }
};
using OpenData = std::function<std::unique_ptr<DataSet>(const std::string& path, const Options& options)>;

// The parts that a library offers; each may be missing.
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

// Describes what the library was built for. Sinew reads it from the file before it opens the library.
#define SINEW_LIBRARY_STAMP                                                                                 \
  "interface " SINEW_TEXT(SINEW_LIBRARY_INTERFACE) "\nsinew " SINEW_VERSION "\ntorch " TORCH_VERSION        \
                                                   "\nstring_abi " SINEW_TEXT(                              \
                                                       _GLIBCXX_USE_CXX11_ABI) "\nplatform " SINEW_PLATFORM \
                                                                               "\ncompiler " __VERSION__ "\n"

// Use it once in a library, to fill in the parts that the library offers.
#define SINEW_LIBRARY(name)                                                                                \
  extern "C" {                                                                                             \
  __attribute__((used, section(".sinew_library"))) const char sinew_library_stamp[] = SINEW_LIBRARY_STAMP; \
  }                                                                                                        \
  extern "C" __attribute__((visibility("default"))) void sinew_library_open(sinew::library::Library& name)
