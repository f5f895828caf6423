// Refuses tensors that cannot be stored when a training ends.
#include "model/makers.h"

namespace sinew::model {
namespace {

bool is_stored(const torch::Tensor& tensor) {
  if (tensor.layout() != torch::kStrided) return false;
  switch (tensor.scalar_type()) {
    case at::kByte:
    case at::kChar:
    case at::kShort:
    case at::kInt:
    case at::kLong:
    case at::kHalf:
    case at::kFloat:
    case at::kDouble:
    case at::kBFloat16:
    case at::kBool: return true;
    default: return false;
  }
}

}  // namespace

Error reserved_name(const std::string& file, const std::string& name) {
  return Error("MODEL_NAME_RESERVED",
               file + ": a parameter or a buffer has the name " + name + ", which safetensors files use for themselves",
               "give it another name in the module");
}

Error type_not_stored(const std::string& file, const std::string& name, const std::string& type) {
  return Error("MODEL_BUFFER_TYPE",
               file + ": buffer " + name + " is " + type + ", which checkpoints and safetensors files cannot hold",
               "keep complex numbers as real ones (torch.view_as_real, and torch.view_as_complex in forward), unsigned "
               "ones as int64");
}

Error nothing_to_train(const std::string& file, const std::string& hint) {
  return Error("MODEL_NO_PARAMETERS", file + (file.empty() ? "" : ": ") + "no parameter of the model is trained", hint);
}

void check_storable(const std::string& file, const std::vector<NamedTensor>& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (name == kReservedName) throw reserved_name(file, name);
    if (is_stored(tensor)) continue;
    throw type_not_stored(file, name, tensor.layout() == torch::kStrided ? toString(tensor.scalar_type()) : "sparse");
  }
}

}  // namespace sinew::model
