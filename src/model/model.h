// Models: from a job's `model` section to something that computes outputs from inputs, one replica a lane.
//
// For train/ (which owns parameters, buffers and the step) and worker/. It never computes a loss, steps an optimizer or
// knows of shards. A Model belongs to one thread at a time; different replicas run side by side and share the memory of
// their parameters (Model::share).
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
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

  // What it computes as far as the job does not say: of a program a digest of its graph and constants. Else "".
  virtual std::string identity() const { return ""; }

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

// A replica with initial weights that are a function of (options, data shapes, outputs, seed) alone; a program's are
// those of its file. outputs 0: what the program returns is its loss. Throws Error when the architecture cannot take
// such data, a program's file is damaged or has an operator nobody knows, and when a pattern of options.freeze fits no
// parameter.
std::unique_ptr<Model> make_model(const spec::ModelOptions& options, const data::DataInfo& data, int64_t outputs,
                                  uint64_t seed);

int64_t parameter_count(Model& model);

// Places of the parameters that `pattern`, given by the option `option`, fits. Throws Error when there is none.
std::vector<size_t> parameters_like(const std::string& pattern, const std::vector<NamedTensor>& parameters,
                                    const std::string& option);

// Every node of the program of `file` that can not run here, with the reason; empty: it can be trained. Throws Error
// when the file itself is damaged.
std::vector<std::string> program_problems(const std::string& file);

// The program of `file` with these values, of parameters and buffers by name, as a file of its own at `to`:
// torch.export.load opens it. Appears whole or not at all. Throws Error.
void save_program(const std::string& file, const std::vector<NamedTensor>& values, const std::string& to);

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
