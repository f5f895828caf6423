#include "model/program_model.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/error.h"
#include "model/makers.h"
#include "model/model_file.h"
#include "model/program_refusals.h"

namespace sinew::model {
namespace {

using program::InputSpec;
using program::StoredTensor;

torch::Tensor tensor_of(const program::Program& program, const StoredTensor& stored) {
  const Array array = program::read_tensor(program, stored);
  return torch::from_blob(const_cast<std::byte*>(array.bytes.data()), at::IntArrayRef(array.shape),
                          torch::TensorOptions().dtype(scalar_type(stored.dtype)))
      .clone();
}

// Returns whether autocast converts the floating-point arguments of the operator to bfloat16 at every use.
bool casts(const std::string& target) {
  static const std::set<std::string> names = {
      "aten::linear",
      "aten::matmul",
      "aten::mm",
      "aten::bmm",
      "aten::addmm",
      "aten::baddbmm",
      "aten::conv1d",
      "aten::conv2d",
      "aten::conv3d",
      "aten::conv_transpose1d",
      "aten::conv_transpose2d",
      "aten::conv_transpose3d",
      "aten::lstm",
      "aten::_convolution",
  };
  return names.contains(target.substr(0, target.find('.')));
}

void for_each_slot(const Operand& operand, const auto& visit) {
  if (operand.kind == Operand::Kind::slot) visit(static_cast<size_t>(operand.slot));
  for (const Operand& item : operand.items) for_each_slot(item, visit);
}

// Returns for each slot whether at least one instruction reads it, and all instructions that read it are operators that
// cast it.
std::vector<bool> slots_only_cast(const Plan& plan) {
  std::vector<bool> cast(plan.slots, false), other(plan.slots, false);
  for (const Instruction& instruction : plan.instructions) {
    std::vector<bool>& readers = instruction.op && casts(instruction.target) ? cast : other;
    for (const Operand& operand : instruction.operands)
      for_each_slot(operand, [&](size_t slot) { readers[slot] = true; });
  }
  for (const Operand& output : plan.outputs) for_each_slot(output, [&](size_t slot) { other[slot] = true; });
  for (size_t slot = 0; slot < plan.slots; ++slot) cast[slot] = cast[slot] && !other[slot];
  return cast;
}

}  // namespace

ProgramModel::ProgramModel(const std::string& path)
    : program_(program::read_program(path)), plan_(compile_graph(program_, program_.graph)), sizes_(program_) {
  if (const std::vector<Error> refused = refusals(program_, plan_); !refused.empty()) throw Error(refused.front());
  only_cast_ = slots_only_cast(plan_);
  read_inputs();
  for (size_t o = 0; o < program_.outputs.size(); ++o) {
    const program::OutputSpec& spec = program_.outputs[o];
    if (spec.kind != program::OutputSpec::Kind::buffer_mutation) continue;
    const auto buffer = std::ranges::find(buffers_, spec.name, &NamedTensor::name);
    if (buffer == buffers_.end())
      throw Error("MODEL_FILE_UNREADABLE", path + ": the program writes to " + spec.name + ", which it does not have",
                  "");
    mutated_.emplace_back(o, static_cast<size_t>(buffer - buffers_.begin()));
  }
  choose_copies();
}

// Chooses the inputs that each run copies. The caller still needs its own inputs: two of them may be one tensor, and
// the loss compares with the target. So the graph writes only into copies of them. Until the backward pass, autograd
// keeps the tensors that a functional graph has read. So the graph must read copies of the buffers that are written
// back at its end. Evaluation must change no buffer, even if the graph was exported for training. So it copies every
// buffer that the graph writes to.
void ProgramModel::choose_copies() {
  for (const size_t index : user_indices_) {
    if (plan_.written[index]) copied_.push_back(index);
  }
  for (size_t b = 0; b < buffers_.size(); ++b) {
    const size_t index = buffer_indices_[b];
    if (std::ranges::any_of(mutated_, [&](const auto& m) { return m.second == b; })) copied_.push_back(index);
    if (plan_.written[index]) copied_in_evaluation_.push_back(index);
  }
}

void ProgramModel::add_parameter(const InputSpec& spec, size_t index) {
  const StoredTensor& mine = stored_of(program_, spec);
  const bool only_cast = only_cast_.at(static_cast<size_t>(plan_.inputs[index]));
  const auto [known, first] = parameter_of_view_.emplace(ViewKey(mine), parameters_.size());
  if (!first) {  // tied weights: one parameter under several names
    const size_t p = known->second;
    shadows_[p] = shadows_[p] && only_cast;
    inputs_[index] = parameters_[p].tensor;
    return;
  }
  const auto& meta = program_.graph.values.at(static_cast<size_t>(spec.value)).meta;
  torch::Tensor tensor = tensor_of(program_, mine).set_requires_grad(!meta || meta->requires_grad);
  inputs_[index] = tensor;
  parameters_.push_back({spec.name, std::move(tensor)});
  shadows_.push_back(only_cast);
}

// If two modules share a buffer, the export lists it under both names but writes back only one of the two. So this
// function gives both names the same tensor.
void ProgramModel::add_buffer(const InputSpec& spec, size_t index) {
  const auto found = program_.weights.find(spec.name);
  const auto same = [&](const NamedTensor& known) {
    const auto other = program_.weights.find(known.name);
    return found != program_.weights.end() && other != program_.weights.end() &&
           found->second.dtype == other->second.dtype && same_memory(found->second, other->second);
  };
  const auto tied = std::ranges::find_if(buffers_, same);
  buffers_.push_back(
      {spec.name, tied != buffers_.end() ? tied->tensor : tensor_of(program_, stored_of(program_, spec))});
  buffer_indices_.push_back(index);
  buffer_shapes_.push_back(buffers_.back().tensor.sizes().vec());
  inputs_[index] = buffers_.back().tensor;
}

void ProgramModel::read_inputs() {
  inputs_.resize(plan_.inputs.size());
  std::vector<Digest> parts = {program_.digest};
  size_t index = 0;
  for (size_t i = 0; i < program_.inputs.size(); ++i) {
    const InputSpec& spec = program_.inputs[i];
    if (spec.kind == InputSpec::Kind::user_constant) continue;
    switch (spec.kind) {
      case InputSpec::Kind::parameter: add_parameter(spec, index); break;
      case InputSpec::Kind::buffer: add_buffer(spec, index); break;
      case InputSpec::Kind::constant: {
        const torch::Tensor constant = tensor_of(program_, stored_of(program_, spec));
        constants_.push_back({spec.name, constant});
        parts.push_back(
            digest_of(std::span(static_cast<const std::byte*>(constant.const_data_ptr()), constant.nbytes())));
        inputs_[index] = constant;
        break;
      }
      default: user_indices_.push_back(index);
    }
    ++index;
  }
  identity_ = digest_of(parts);
  for (const std::string& name : plan_.originals)
    inputs_[index++] = std::ranges::find(buffers_, name, &NamedTensor::name)->tensor;
}

void ProgramModel::share(size_t index, const torch::Tensor& memory) {
  torch::Tensor& parameter = parameters_.at(index).tensor;
  parameter.mutable_grad() = torch::Tensor();
  parameter.set_data(memory);
}

void ProgramModel::write_buffers(const std::vector<c10::IValue>& outputs) {
  if (!training_) return;
  const torch::NoGradGuard no_grad;
  for (const auto& [output, buffer] : mutated_) {
    const c10::IValue& made = outputs[output];
    const NamedTensor& into = buffers_[buffer];
    // copy_ would convert and broadcast.
    if (!made.isTensor() || !made.toTensor().defined() || made.toTensor().sizes() != into.tensor.sizes() ||
        made.toTensor().scalar_type() != into.tensor.scalar_type())
      throw Error("MODEL_OPERATOR_FAILED",
                  program_.path + ": the program gives buffer " + into.name +
                      " a value of another shape or type than the buffer has",
                  "the file is damaged; export the model again");
    into.tensor.copy_(made.toTensor());
  }
}

// Returns a number for each parameter and constant that changes with every write. libtorch raises the version of a
// tensor at every write to it, directly or through a view. The number also covers requires_grad: detach_ writes
// nothing, but would end the training of a parameter.
std::vector<uint32_t> ProgramModel::versions() const {
  std::vector<uint32_t> all;
  for (const auto* list : {&parameters_, &constants_}) {
    for (const NamedTensor& item : *list)
      all.push_back(2 * item.tensor._version() + static_cast<uint32_t>(item.tensor.requires_grad()));
  }
  return all;
}

// In-place views (unsqueeze_, t_) change the shape of a tensor. All later shards would find the new shape in the
// buffer.
void ProgramModel::check_buffer_shapes() const {
  for (size_t b = 0; b < buffers_.size(); ++b) {
    const torch::Tensor& now = buffers_[b].tensor;
    if (now.sizes() == buffer_shapes_[b]) continue;
    throw Error("MODEL_WRITES_SHARED_MEMORY",
                program_.path + ": the program changes the shape of its buffer " + buffers_[b].name,
                "use the operator without the underscore, which returns a view");
  }
}

// Throws if the run wrote to a parameter or a constant. Every run needs this check, because the file does not show all
// such writes.
void ProgramModel::check_unwritten(const std::vector<uint32_t>& before) const {
  const std::vector<uint32_t> now = versions();
  for (size_t i = 0; i < now.size(); ++i) {
    if (now[i] == before[i]) continue;
    const bool parameter = i < parameters_.size();
    throw writes_to(program_.path, parameter ? parameters_[i].name : constants_[i - parameters_.size()].name,
                    parameter);
  }
}

std::vector<c10::IValue> ProgramModel::run(const std::vector<torch::Tensor>& inputs) {
  SINEW_CHECK(inputs.size() == user_indices_.size(), inputs.size());
  std::vector<Shape> shapes;
  for (const torch::Tensor& input : inputs) shapes.push_back(input.sizes().vec());
  if (shapes != fitting_shapes_) {
    if (const std::string problem = sizes_.problem(shapes); !problem.empty())
      throw Error("MODEL_INPUT_MISMATCH", program_.path + ": " + problem,
                  "choose other sizes of batches and shards, or export the model for these sizes (dynamic_shapes)");
    fitting_shapes_ = std::move(shapes);
  }
  std::vector<c10::IValue> all = inputs_;
  for (size_t i = 0; i < inputs.size(); ++i) all[user_indices_[i]] = inputs[i];
  for (const size_t index : copied_) all[index] = all[index].toTensor().clone();
  if (!training_) {
    for (const size_t index : copied_in_evaluation_) all[index] = all[index].toTensor().clone();
  }
  const std::vector<uint32_t> before = versions();
  begin_run();
  std::vector<c10::IValue> outputs = run_plan(plan_, std::move(all), training_);
  check_unwritten(before);
  check_buffer_shapes();
  write_buffers(outputs);
  std::vector<c10::IValue> given;
  for (size_t o = 0; o < outputs.size(); ++o) {
    const auto kind = program_.outputs[o].kind;
    if (kind == program::OutputSpec::Kind::user || kind == program::OutputSpec::Kind::loss)
      given.push_back(std::move(outputs[o]));
  }
  return given;
}

torch::Tensor ProgramModel::forward(const torch::Tensor& input, const torch::Tensor& target) {
  std::vector<torch::Tensor> inputs;
  for (const Binding& binding : bindings_) inputs.push_back(bound(binding, input, target));
  const std::vector<c10::IValue> outputs = run(inputs);
  if (outputs.empty() || !outputs[0].isTensor())
    throw Error("MODEL_OUTPUT_MISMATCH", program_.path + ": its first output is not a tensor",
                "return the prediction, or the loss, first");
  return outputs[0].toTensor();
}

torch::Tensor run_program(const std::string& file, const torch::Tensor& input) {
  const torch::NoGradGuard no_grad;
  ProgramModel model(file);
  model.set_training(false);
  return model.run({input}).at(0).toTensor();
}

std::unique_ptr<Model> make_program(const spec::ModelOptions& options, const data::DataInfo& data, int64_t outputs) {
  remember_model_file(options.file);
  limit_allocations();
  auto model = std::make_unique<ProgramModel>(options.file);
  const std::vector<Error> refused = training_refusals(model->program(), model->plan());
  if (!refused.empty()) throw Error(refused.front());
  model->bind(bind_inputs(model->program(), options.inputs, data));
  check_output(model->program(), data, outputs);
  return model;
}

}  // namespace sinew::model
