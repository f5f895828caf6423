// Private to model/: implements the Model interface for a `.pt2` program.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/model.h"
#include "model/program_inputs.h"
#include "model/program_plan.h"
#include "model/program_refusals.h"

namespace sinew::model {

class ProgramModel final : public Model {
 public:
  explicit ProgramModel(const std::string& path);
  void bind(std::vector<Binding> bindings) { bindings_ = std::move(bindings); }  // Call it before the first forward.

  torch::Tensor forward(const torch::Tensor& input, const torch::Tensor& target) override;
  void set_training(bool on) override { training_ = on; }
  std::vector<NamedTensor> parameters() override { return parameters_; }
  std::vector<NamedTensor> buffers() override { return buffers_; }
  void share(size_t index, const torch::Tensor& memory) override;
  bool wants_shadow(size_t index) override { return shadows_.at(index); }
  std::string identity() const override { return to_hex(identity_); }
  std::string batch_problem(int64_t samples) const override { return sizes_.problem(shapes_of(bindings_, samples)); }
  std::vector<std::string> remarks() const override { return remarks_of(plan_); }

  const program::Program& program() const { return program_; }
  const Plan& plan() const { return plan_; }
  // Runs the program on one tensor for each input of kind user, in order. Returns all user outputs.
  std::vector<c10::IValue> run(const std::vector<torch::Tensor>& inputs);

 private:
  void read_inputs();
  void choose_copies();
  void add_parameter(const program::InputSpec& spec, size_t index);
  void add_buffer(const program::InputSpec& spec, size_t index);
  std::vector<uint32_t> versions() const;
  void check_unwritten(const std::vector<uint32_t>& before) const;
  void check_buffer_shapes() const;
  void write_buffers(const std::vector<c10::IValue>& outputs);

  program::Program program_;
  Digest identity_;
  Plan plan_;
  program::InputSizes sizes_;
  std::vector<Shape> fitting_shapes_;  // of the inputs of the last run, for which sizes_ found no problem
  bool training_ = true;
  std::vector<Binding> bindings_;
  std::vector<NamedTensor> parameters_, buffers_, constants_;
  std::vector<bool> shadows_, only_cast_;            // shadows_: by index into parameters_; only_cast_: by slot
  std::vector<std::vector<int64_t>> buffer_shapes_;  // by index into buffers_
  std::map<ViewKey, size_t> parameter_of_view_;      // index into parameters_
  // The plan's inputs. Parameters, buffers and constants are filled in; the inputs of the caller are empty.
  std::vector<c10::IValue> inputs_;
  std::vector<size_t> user_indices_, buffer_indices_;  // indices into inputs_
  std::vector<std::pair<size_t, size_t>> mutated_;     // (output, buffer) pairs: run() writes the output to the buffer
  std::vector<size_t> copied_, copied_in_evaluation_;  // inputs that each run copies
};

}  // namespace sinew::model
