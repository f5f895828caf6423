// Models: from a job's `model` section to something that computes outputs from inputs, one replica a lane.
//
// For train/ (which owns parameters, buffers and the step) and worker/. It never computes a loss, steps an optimizer or
// knows of shards. A Model belongs to one thread at a time; different replicas run side by side and share the memory of
// their parameters (Model::share).
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

struct NamedTensor {
  std::string name;  // "layers.0.weight"
  torch::Tensor tensor;
};

class Model {
 public:
  virtual ~Model() = default;

  // Outputs before any loss: [batch, outputs], or [batch, window, outputs] for tokens. `target`, of the same samples,
  // is for programs that take it to compute their loss, which is then what they return; others never look at it.
  virtual torch::Tensor forward(const torch::Tensor& input, const torch::Tensor& target = {}) = 0;
  virtual void set_training(bool on) = 0;

  // In a fixed order, the same in every replica. Parameters are leaves; those that are frozen require no gradient.
  virtual std::vector<NamedTensor> parameters() = 0;
  virtual std::vector<NamedTensor> buffers() = 0;

  // Makes parameter `index` use this memory (same shape; float32, or bfloat16 for a low-precision shadow) and clears
  // its gradient. Buffers stay the replica's own: a shard starts from a copy.
  virtual void share(size_t index, const torch::Tensor& memory) = 0;

  // What it computes as far as the job does not say: of a model of the user's own a digest of its graph and constants,
  // or of its code. Else "".
  virtual std::string identity() const { return ""; }

  // What somebody who trains it should know before, as sentences: what can not be told from right, but is seldom meant.
  virtual std::vector<std::string> remarks() const { return {}; }

  // True for parameters that autocast would cast to bfloat16 at every use (weights of linear, convolution and
  // recurrent layers): these get one shared shadow instead.
  virtual bool wants_shadow(size_t index) = 0;
};

// One architecture a job can name.
struct Architecture {
  const char* name;
  std::unique_ptr<Model> (*make)(const spec::ModelOptions& options, const data::DataInfo& data, int64_t outputs);
  const char* help;  // what it takes and how it is initialised
};
const std::vector<Architecture>& architectures();

// Does a ResNet of these options begin with the cifar stem, which keeps small images large? `image`: [channels, height,
// width].
bool has_small_stem(const spec::ModelOptions& options, const Shape& image);

// A replica with initial weights that are a function of (options, data shapes, outputs, seed) alone; a program's are
// those of its file, but for options.reinit. outputs 0: what the model returns is its loss. Throws Error when the
// architecture cannot take such data, a program's file is damaged or has an operator nobody knows, and when a pattern
// of options.freeze or options.reinit fits no parameter.
std::unique_ptr<Model> make_model(const spec::ModelOptions& options, const data::DataInfo& data, int64_t outputs,
                                  uint64_t seed);

int64_t parameter_count(Model& model);

// Places of the parameters that `pattern`, given by the option `option`, fits. Throws Error when there is none.
std::vector<size_t> parameters_like(const std::string& pattern, const std::vector<NamedTensor>& parameters,
                                    const std::string& option);

// Gives the parameters that `patterns` fit new values, and the batch norms among them new statistics: a matrix or a
// kernel uniform numbers within 1/sqrt(fan in), as PyTorch's linear and convolution layers begin; a bias the same of
// the weight beside it; a scale 1 and all else 0. Of each a function of (seed, name, shape) alone. Throws Error where
// one fits nothing.
void reinitialise(const std::vector<std::string>& patterns, const std::vector<NamedTensor>& parameters,
                  const std::vector<NamedTensor>& buffers, uint64_t seed);

// ---- models of the user's own --------------------------------------------------------------------------------------

// What a job gets of the shared object it names (include/sinew/library.h): each throws Error where the file is none,
// was built for another Sinew or libtorch, or offers no such thing. None of its code runs before that is known.
using LossFunction =
    std::function<std::pair<torch::Tensor, double>(const torch::Tensor& outputs, const torch::Tensor& targets)>;
LossFunction library_loss(const spec::Job& job);  // (sum, weight)
std::unique_ptr<data::Dataset> open_library_data(const spec::Job& job);
// As data::open_inputs, of such a data set.
std::unique_ptr<data::Dataset> open_library_inputs(const spec::Job& job, const data::DataInfo& train,
                                                   const spec::DataSource& source, bool labelled);

// What only libtorch can tell of a model's file (.pt2, .pt, .so): lines to show, and why it can not be trained here,
// with what to change; none: it can. Throws Error when the file itself is damaged.
struct FileReport {
  std::vector<std::string> lines, problems;
};
FileReport inspect_file(const std::string& file);
std::vector<std::string> program_problems(const std::string& file);  // of a .pt2: what it alone tells

// The format a model came in: "model.pt2", "model.pt", "model.so"; "" for what has no file of its own.
std::string own_file_name(const std::string& model_name);
// The model of options.file with these values, of parameters and buffers by name, as a file of its own at `to`: what
// opened the one opens the other. Of a library its code alone. Appears whole or not at all. It is made of the file as
// it was when this process opened it, whatever stands there by now; a large one (64 MiB) is not kept, and if it was
// changed nothing is written, and the reason returned, as a sentence. Throws Error.
std::string save_own_file(const spec::ModelOptions& options, const std::vector<NamedTensor>& values,
                          const std::string& to);

void save_program(const std::string& file, const std::vector<NamedTensor>& values, const std::string& to);  // a .pt2

// ---- random operators ----------------------------------------------------------------------------------------------
// On the CPU every random operator of libtorch draws from one process-wide generator, in the order of the calls: with
// several lanes that is a race. install_keyed_random() replaces the random kernels, for the whole process, by ones that
// draw from the scope of the calling thread; a draw outside a scope throws, and so does every random operator that ends
// in none of these kernels (poisson, multinomial, rrelu ...).

void install_keyed_random();  // once, before any tensor work; later calls do nothing

// Why "aten::multinomial" can not be used, as a sentence; "" for operators that can, or that end in one that can not.
std::string why_refused(const std::string& operator_name);

// While it lives, the n-th random operator called on this thread draws from key (key, n).
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
