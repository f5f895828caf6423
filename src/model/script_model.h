// Private to model/: implements the Model interface for a TorchScript module.
//
// Each replica loads the file itself, so lanes share only the memory of the parameters. The graph runs without
// profiling and specialisation, because a plan that changes after some runs would change the bits of results.
#pragma once

#include <torch/script.h>

#include <memory>
#include <string>
#include <vector>

#include "model/model.h"
#include "model/program_inputs.h"

namespace sinew::model {

class ScriptModel final : public Model {
 public:
  explicit ScriptModel(const std::string& path);
  void bind(std::vector<Binding> bindings) { bindings_ = std::move(bindings); }  // Call it before the first forward.

  torch::Tensor forward(const torch::Tensor& input, const torch::Tensor& target) override;
  void set_training(bool on) override { module_.train(on); }
  std::vector<NamedTensor> parameters() override { return parameters_; }
  std::vector<NamedTensor> buffers() override { return buffers_; }
  void share(size_t index, const torch::Tensor& memory) override;
  bool wants_shadow(size_t) override { return false; }
  std::string identity() const override { return identity_; }
  std::vector<std::string> remarks() const override { return remarks_; }

  const torch::jit::Module& module() const { return module_; }
  const std::string& path() const { return path_; }
  // Returns the names of forward's required inputs, or of its optional inputs.
  std::vector<std::string> input_names(bool optional) const;

 private:
  void read_parameters();

  std::string path_, identity_;
  torch::jit::Module module_;
  std::vector<Binding> bindings_;
  std::vector<NamedTensor> parameters_, buffers_;
  std::vector<std::string> remarks_;
};

// Loads the file. Throws Error if it is not TorchScript or needs unknown operators.
torch::jit::Module load_script(const std::string& path);

// Searches the graph for what training does not support: a training mode that tracing has fixed, random operators
// without a key, and work handed to other threads. `remarks` are warnings about probable mistakes.
struct ScriptScan {
  std::vector<std::string> problems, remarks;
};
ScriptScan scan_script(const torch::jit::Module& module);

// Runs the model on synthetic samples. Throws Error in three cases: evaluation gives two different results, training
// does so under the same random key, or the loss cannot take the output. Restores the model's buffers.
void probe_script(ScriptModel& model, const data::DataInfo& data, int64_t outputs);

}  // namespace sinew::model
