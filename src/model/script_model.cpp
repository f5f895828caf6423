#include "model/script_model.h"

#include <ATen/MemoryOverlap.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "base/check.h"
#include "base/disk.h"
#include "base/error.h"
#include "model/makers.h"
#include "model/model_file.h"
#include "program/program.h"

namespace sinew::model {
namespace {

// Returns the beginning of libtorch's message, without the C++ stack.
std::string first_lines(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
  constexpr size_t kMost = 600;
  return text.size() <= kMost ? text : text.substr(0, kMost) + " ...";
}

bool same_memory(const torch::Tensor& a, const torch::Tensor& b) {
  return a.numel() > 0 && a.const_data_ptr() == b.const_data_ptr() && a.sizes() == b.sizes() &&
         a.strides() == b.strides();
}

// Refuses two different views of one memory (weight and weight.t()). Training would make their values diverge.
void refuse_shared(const std::string& path, const std::vector<NamedTensor>& parameters,
                   const std::vector<NamedTensor>& buffers) {
  for (size_t p = 0; p < parameters.size(); ++p) {
    const auto check = [&](const NamedTensor& other) {
      const auto overlap = at::get_overlap_status(parameters[p].tensor, other.tensor);
      if (overlap != at::MemOverlapStatus::Full && overlap != at::MemOverlapStatus::Partial) return;
      throw Error("MODEL_SHARED_MEMORY",
                  path + ": " + parameters[p].name + " and " + other.name +
                      " are different views of one memory, so training would make them diverge",
                  "clone one of them before saving the module, or compute it in forward from the other");
    };
    std::for_each(parameters.begin(), parameters.begin() + static_cast<int64_t>(p), check);
    std::ranges::for_each(buffers, check);
  }
}

// Returns the submodule that owns a parameter such as "layers.0.weight", and the name of the parameter in that
// submodule.
std::pair<torch::jit::Module, std::string> owner_of(torch::jit::Module module, const std::string& name) {
  size_t begin = 0;
  for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', begin)) {
    module = module.attr(name.substr(begin, dot - begin)).toModule();
    begin = dot + 1;
  }
  return {module, name.substr(begin)};
}

Error no_tensor(const std::string& path, const c10::Type& type) {
  return Error("MODEL_OUTPUT_MISMATCH", path + ": forward returns " + type.repr_str() + ", not a tensor",
               "return the prediction, or the loss, first");
}

torch::Tensor tensor_in(const std::string& path, const c10::IValue& value) {
  if (value.isTensor()) return value.toTensor();
  if (value.isTuple() && !value.toTupleRef().elements().empty() && value.toTupleRef().elements()[0].isTensor())
    return value.toTupleRef().elements()[0].toTensor();
  if (value.isTensorList() && !value.toTensorVector().empty()) return value.toTensorVector()[0];
  throw no_tensor(path, *value.type());
}

// Throws Error if the declared type of forward's result shows that its first part is no tensor.
void check_result(const std::string& path, const c10::FunctionSchema& schema) {
  if (schema.returns().size() != 1) return;
  const c10::TypePtr result = schema.returns()[0].type();
  c10::TypePtr first = result;
  if (const auto list = result->cast<c10::ListType>()) first = list->getElementType();
  if (const auto tuple = result->cast<c10::TupleType>(); tuple && !tuple->elements().empty())
    first = tuple->elements()[0];
  using Kind = c10::TypeKind;
  const std::set<Kind> never = {Kind::DictType, Kind::TupleType,  Kind::ListType, Kind::IntType,   Kind::FloatType,
                                Kind::BoolType, Kind::StringType, Kind::NoneType, Kind::NumberType};
  if (never.contains(first->kind())) throw no_tensor(path, *result);
}

}  // namespace

torch::jit::Module load_script(const std::string& path) {
  // Turns profiling off. With profiling, the third run of a shape would use another plan than the first.
  torch::jit::getProfilingMode() = false;
  torch::jit::getExecutorMode() = false;
  program::check_torchscript_file(path);
  limit_allocations();
  try {
    return torch::jit::load(path, torch::kCPU);
  } catch (const std::exception& error) {
    const std::string text = first_lines(error);
    const bool unknown = text.find("Unknown builtin op") != std::string::npos;
    throw Error("MODEL_FILE_UNREADABLE", path + " cannot be loaded as TorchScript: " + text,
                unknown ? "operators of other libraries are not available: build the model from PyTorch's own"
                        : "save it with torch.jit.save(torch.jit.script(model), 'model.pt')");
  }
}

ScriptModel::ScriptModel(const std::string& path)
    : path_(path), identity_(to_hex(program::read_torchscript_file(path).code)), module_(load_script(path)) {
  if (!module_.find_method("forward"))
    throw Error("MODEL_NOT_TRAINABLE", path + ": the module has no forward",
                "script the whole model, not a part of it");
  const ScriptScan scan = scan_script(module_);
  if (!scan.problems.empty()) {
    std::string text;
    for (const std::string& problem : scan.problems) text += "\n  " + problem;
    throw Error("MODEL_NOT_TRAINABLE", path + " cannot be trained:" + text,
                "use torch.jit.script, which keeps the difference between model.train() and model.eval()");
  }
  remarks_ = scan.remarks;
  check_result(path, module_.get_method("forward").function().getSchema());
  read_parameters();
}

// TorchScript loads tied weights as several tensors over one memory, which autograd would treat as several leaves. This
// function replaces them by one tensor again.
void ScriptModel::read_parameters() {
  for (const auto& item : module_.named_parameters()) {
    const auto tied = std::ranges::find_if(
        parameters_, [&](const NamedTensor& known) { return same_memory(known.tensor, item.value); });
    if (tied != parameters_.end()) {
      auto [owner, leaf] = owner_of(module_, item.name);
      owner.setattr(leaf, tied->tensor);
      continue;
    }
    if (item.value.scalar_type() != torch::kFloat32)
      throw Error("MODEL_PARAMETER_TYPE",
                  path_ + ": parameter " + item.name + " is " + toString(item.value.scalar_type()) +
                      ", but parameters are trained in float32",
                  "save model.float(); for bfloat16 set trainer.precision: bf16");
    if (program::may_repeat_elements(item.value.sizes().vec(), item.value.strides().vec()))
      throw Error("MODEL_SHARED_MEMORY",
                  path_ + ": elements of parameter " + item.name +
                      " are views of one memory (expand), so training would make them diverge",
                  "clone it before saving the module, or expand it in forward");
    parameters_.push_back({item.name, item.value});
  }
  for (const auto& item : module_.named_buffers()) buffers_.push_back({item.name, item.value});
  check_storable(path_, parameters_);
  check_storable(path_, buffers_);
  refuse_shared(path_, parameters_, buffers_);
  if (parameters_.empty())
    throw Error("MODEL_NO_PARAMETERS", path_ + " has no parameters",
                "torch.jit.freeze turns parameters into constants: save the model before freezing it");
  if (std::ranges::none_of(parameters_, [](const NamedTensor& known) { return known.tensor.requires_grad(); }))
    throw nothing_to_train(path_, "set requires_grad of the parameters before saving the module");
}

std::vector<std::string> ScriptModel::input_names(bool optional) const {
  std::vector<std::string> names;
  const auto& arguments = module_.get_method("forward").function().getSchema().arguments();
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i].default_value().has_value() == optional) names.push_back(arguments[i].name());
  }
  return names;
}

void ScriptModel::share(size_t index, const torch::Tensor& memory) {
  torch::Tensor& parameter = parameters_.at(index).tensor;
  parameter.mutable_grad() = torch::Tensor();
  parameter.set_data(memory);
}

torch::Tensor ScriptModel::forward(const torch::Tensor& input, const torch::Tensor& target) {
  const torch::jit::GraphOptimizerEnabledGuard as_it_stands(false);
  torch::jit::Kwargs given;
  // A module may write into its arguments, of which the caller still needs the batch and the target.
  for (const Binding& binding : bindings_) given.emplace(binding.name, bound(binding, input, target).clone());
  std::vector<uint32_t> before;  // the versions of tensors, which every write raises
  for (const NamedTensor& parameter : parameters_) before.push_back(parameter.tensor._version());
  const torch::Tensor made = tensor_in(path_, module_.get_method("forward")({}, given));
  for (size_t p = 0; p < parameters_.size(); ++p) {
    if (parameters_[p].tensor._version() != before[p])
      throw Error("MODEL_WRITES_SHARED_MEMORY", path_ + ": forward writes to its parameter " + parameters_[p].name,
                  "make it a buffer (register_buffer), because all lanes share the parameters");
  }
  return made;
}

void save_script(const std::string& file, const std::vector<NamedTensor>& values, const std::string& to) {
  torch::jit::Module module = load_script(file);
  const torch::NoGradGuard no_grad;
  std::map<std::string, torch::Tensor> targets;
  for (const auto& item : module.named_parameters()) targets.emplace(item.name, item.value);
  for (const auto& item : module.named_buffers()) targets.emplace(item.name, item.value);
  for (const NamedTensor& value : values) {
    const auto target = targets.find(value.name);
    if (target == targets.end() || target->second.sizes() != value.tensor.sizes())
      throw Error("MODEL_FILE_CHANGED", file + " has no " + value.name + " of this shape",
                  "restore the file with which the training began");
    target->second.copy_(value.tensor);
  }
  std::ostringstream bytes;
  module.save(bytes);
  write_durably(system_disk(), to, bytes.str());
}

std::unique_ptr<Model> make_script(const spec::ModelOptions& options, const data::DataInfo& data, int64_t outputs) {
  remember_model_file(options.file);
  auto model = std::make_unique<ScriptModel>(options.file);
  model->bind(bind_names(options.file, model->input_names(false), model->input_names(true), options.inputs, data));
  probe_script(*model, data, outputs);
  return model;
}

}  // namespace sinew::model
