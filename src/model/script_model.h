// Inside model/: a TorchScript module behind the Model interface.
//
// Each replica is loaded anew, so lanes share nothing but the memory of the parameters. The graph runs as it stands:
// neither profiled nor specialised, because a plan that changes after some runs would change bits.
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
  void bind(std::vector<Binding> bindings) { bindings_ = std::move(bindings); }  // before the first forward

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
  // Inputs of forward that must be given, and those that need not.
  std::vector<std::string> input_names(bool optional) const;

 private:
  void read_parameters();

  std::string path_, identity_;
  torch::jit::Module module_;
  std::vector<Binding> bindings_;
  std::vector<NamedTensor> parameters_, buffers_;
  std::vector<std::string> remarks_;
};

// Throws Error where the file is no TorchScript or needs operators nobody knows.
torch::jit::Module load_script(const std::string& path);

// What the graph says that training can not have: a mode that was fixed when the module was traced, random operators
// that can not be keyed, work handed to other threads. `remarks`: what may be meant.
struct ScriptScan {
  std::vector<std::string> problems, remarks;
};
ScriptScan scan_script(const torch::jit::Module& module);

// Runs the model on made-up samples. Throws Error where evaluation is not the same twice, where training is not under
// the same random key, and where its output is not what the loss takes. Leaves the model as it was.
void probe_script(ScriptModel& model, const data::DataInfo& data, int64_t outputs);

}  // namespace sinew::model
