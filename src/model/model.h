// Makes models: objects that compute outputs from inputs, as the `model` section of a job describes. Each lane has a
// replica.
//
// train/ uses models and owns the parameters, the buffers and the step; worker/ uses them too. A model computes no loss
// (except programs that do so themselves), applies no update and knows nothing of shards. A Model belongs to one thread
// at a time. Different replicas run side by side and share the memory of their parameters (Model::share).
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "data/data.h"
#include "spec/spec.h"

namespace sinew::model {

// Limits libtorch to one thread in the calling thread, because a sum over several threads has other bits. Also makes
// MKL choose its code, before a second thread can call MKL. Every thread that computes, or that loads data by a model's
// code, calls this function before its first kernel. A later call undoes what the program has set since.
void use_one_thread();

struct NamedTensor {
  std::string name;  // "layers.0.weight"
  torch::Tensor tensor;
};

class Model {
 public:
  virtual ~Model() = default;

  // Returns the outputs before any loss: [batch, outputs], or [batch, window, outputs] for tokens. Only programs that
  // compute their loss themselves read `target`, the target of the same samples. Such a program returns that loss.
  virtual torch::Tensor forward(const torch::Tensor& input, const torch::Tensor& target = {}) = 0;
  virtual void set_training(bool on) = 0;

  // Both lists have a fixed order, which is the same in every replica. Parameters are autograd leaves. Frozen
  // parameters require no gradient.
  virtual std::vector<NamedTensor> parameters() = 0;
  virtual std::vector<NamedTensor> buffers() = 0;

  // Makes parameter `index` use this memory, and clears its gradient. The memory has the parameter's shape. It is
  // float32, or bfloat16 for a low-precision shadow. Buffers are not shared: each shard starts from a copy.
  virtual void share(size_t index, const torch::Tensor& memory) = 0;

  // Identifies the part of the model that the job file does not describe. For a model file it is a digest of the graph
  // and the constants, for a library a digest of its code, and for a built-in architecture "".
  virtual std::string identity() const { return ""; }

  // Returns why the model cannot take batches of so many samples, or "" if it can. A program takes only the sizes for
  // which it was exported.
  virtual std::string batch_problem(int64_t /*samples*/) const { return ""; }

  // Returns warnings about a model that trains correctly but was probably exported by mistake.
  virtual std::vector<std::string> remarks() const { return {}; }

  // The factors of the learning rate and of the weight decay of a parameter, in addition to optimizer.lr_scale.
  struct UpdateFactors {
    double lr = 1, weight_decay = 1;
  };
  virtual UpdateFactors update_factors(size_t /*index*/) const { return {}; }

  // A model whose initial weights or buffers depend on the data sets them in fit(). The engine calls it once, for one
  // replica, before the first state exists; the caller has a RandomScope. `input`: training samples, at least one.
  virtual bool fits_data() const { return false; }
  virtual void fit(const torch::Tensor& /*input*/) {}

  // Multiplies the probability of dropout by this factor from now on (model.dropout_schedule).
  virtual void set_dropout_factor(double /*factor*/) {}

  // Returns true if autocast would cast this parameter to bfloat16 at every use, as it does in linear, convolution and
  // recurrent layers. All lanes share one bfloat16 shadow of such a parameter instead.
  virtual bool wants_shadow(size_t index) = 0;
};

// An architecture that a job can name.
struct Architecture {
  const char* name;
  std::unique_ptr<Model> (*make)(const spec::ModelOptions& options, const data::DataInfo& data, int64_t outputs);
  const char* help;  // what the model takes and how its weights are initialised
};
const std::vector<Architecture>& architectures();

// Returns whether a ResNet with these options begins with the cifar stem, which keeps small images large. `image` is
// [channels, height, width].
bool has_small_stem(const spec::ModelOptions& options, const Shape& image);

// The activation function that `auto` stands for in model.activation; otherwise model.activation itself.
std::string activation_of(const spec::ModelOptions& options, data::Task task);

// How model: tabular takes the columns of an encoded table; all lists hold indices of columns.
struct TabularLayout {
  std::vector<int64_t> numbers;
  std::vector<int64_t> plain;              // small categories, and what is neither a number nor a category
  std::vector<int64_t> yes, no;            // a category of two columns becomes one number: 1, -1, or 0 without a value
  std::vector<data::InputGroup> embedded;  // categories of more than max_one_hot columns
  int64_t flat() const { return static_cast<int64_t>(numbers.size() + plain.size() + yes.size()); }
};
TabularLayout tabular_layout(const data::DataInfo& data, int64_t max_one_hot);

// Makes a replica. Its initial weights are a function of (options, data shapes, outputs, seed) alone. A program starts
// with the weights of its file, except those that options.reinit names. If `outputs` is 0, the model returns its loss.
// Throws Error if the architecture cannot take such data, if a program's file is damaged or has an unknown operator, or
// if a pattern of options.freeze or options.reinit matches no parameter.
std::unique_ptr<Model> make_model(const spec::ModelOptions& options, const data::DataInfo& data, int64_t outputs,
                                  uint64_t seed);

int64_t parameter_count(Model& model);

// Returns the indices of the parameters whose names match `pattern`. Throws Error if there are none; the message names
// the option that holds the pattern, `option`.
std::vector<size_t> parameters_like(const std::string& pattern, const std::vector<NamedTensor>& parameters,
                                    const std::string& option);

// Gives new values to the parameters that match `patterns`, and new statistics to the matching buffers of batch norms.
// A matrix or kernel gets uniform numbers within 1/sqrt(fan in), as PyTorch's linear and convolution layers do. A bias
// gets the same range as the matrix or kernel beside it. A scale becomes 1, and everything else 0. Each result is a
// function of (seed, name, shape) alone. Throws Error if a pattern matches no parameter.
void reinitialise(const std::vector<std::string>& patterns, const std::vector<NamedTensor>& parameters,
                  const std::vector<NamedTensor>& buffers, uint64_t seed);

// ---- models that users bring ---------------------------------------------------------------------------------------

// These functions take parts from the shared object that a job names (include/sinew/library.h). They throw Error if the
// file is no such library, was built for another Sinew or libtorch, or lacks the wanted part. No code of the library
// runs before that check.
using LossFunction =
    std::function<std::pair<torch::Tensor, double>(const torch::Tensor& outputs, const torch::Tensor& targets)>;
LossFunction library_loss(const spec::Job& job);  // the function returns (sum, weight)
// Identifies the code of a loss that comes from another file than the model; "" if there is none.
std::string loss_identity(const spec::Job& job);
std::unique_ptr<data::Dataset> open_library_data(const spec::Job& job);
// Does for the data set of a library what data::open_inference_data does for files.
std::unique_ptr<data::Dataset> open_library_inputs(const spec::Job& job, const data::DataInfo& train,
                                                   const spec::DataSource& source, bool labelled);

// The result of inspecting a model file (.pt2, .pt, .so) with libtorch. `lines` are shown to the user. `problems`
// prevent training; each says what to change. They are the problems that show without data, so training may still
// refuse the model. inspect_file throws Error if the file is damaged.
struct FileReport {
  std::vector<std::string> lines, problems;
};
FileReport inspect_file(const std::string& file);

// Returns the name under which a run keeps the user's model file: "model.pt2", "model.pt" or "model.so"; "" for
// built-in architectures.
std::string model_file_name(const std::string& model_name);
// Writes a copy of the model file options.file to `to`, with these values of parameters and buffers, matched by name. A
// library is copied as it is. The new file appears whole or not at all. The copy is made from the content that
// options.file had when this process opened it, even if the user has overwritten the file since. A file of more than 64
// MiB is not kept in memory: if it has changed, the function removes `to` and returns the reason as a sentence.
// Otherwise it returns "". Throws Error if the content is damaged, or if the copy cannot be written.
std::string save_model_file(const spec::ModelOptions& options, const std::vector<NamedTensor>& values,
                            const std::string& to);

// Runs a .pt2 file on one input, in evaluation mode, and returns its first output. Throws Error if the file is damaged,
// or if the program cannot run on this input.
torch::Tensor run_program(const std::string& file, const torch::Tensor& input);

// writes a .pt2 file
void save_program(const std::string& file, const std::vector<NamedTensor>& values, const std::string& to);

// ---- random operators ----------------------------------------------------------------------------------------------
// On the CPU, every random operator of libtorch draws from one process-wide generator, in the order of the calls. With
// several lanes this order changes from run to run. install_keyed_random() replaces the random kernels of the whole
// process with kernels that draw from the RandomScope of the calling thread. A draw outside a scope throws. Random
// operators that do not call one of these kernels (poisson, multinomial, rrelu ...) throw too.

void install_keyed_random();  // once, before any tensor work; later calls do nothing

// Returns a sentence that says why the operator, such as "aten::multinomial", is refused, or "" if it is not refused.
std::string why_refused(const std::string& operator_name);

// While a scope lives, the n-th random operator called on its thread draws from a key that derives from (key, n).
class RandomScope {
 public:
  explicit RandomScope(RandomKey key);
  ~RandomScope();
  RandomScope(const RandomScope&) = delete;
  RandomScope& operator=(const RandomScope&) = delete;

 private:
  RandomKey saved_key_;
  uint64_t saved_calls_;
  bool saved_active_;
};

}  // namespace sinew::model
