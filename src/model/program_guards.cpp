// Checks the operands of the operators whose kernels trust them. If such operands do not fit, libtorch 2.13 reads or
// writes outside of a tensor, traps, or never returns. Every other allowed operator throws by itself. Each guard costs
// some comparisons; a few read the values of tensors.
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <map>

#include "model/program_plan.h"

namespace sinew::model {
namespace {

using c10::FunctionSchema;
using c10::IValue;
using torch::jit::Stack;

// Returns the operand with this name, or nullptr if the operator has none.
const IValue* operand_named(const FunctionSchema& schema, const Stack& operands, const char* name) {
  const auto index = schema.argumentIndexWithName(name);
  return index ? &operands.at(static_cast<size_t>(*index)) : nullptr;
}

// Returns the tensor with this name, or an undefined tensor if there is none.
at::Tensor tensor_named(const FunctionSchema& schema, const Stack& operands, const char* name) {
  const IValue* value = operand_named(schema, operands, name);
  return value != nullptr && value->isTensor() ? value->toTensor() : at::Tensor();
}

// Batch norm indexes the following tensors by channel without looking at their sizes.
void statistics_have_a_number_per_channel(const FunctionSchema& schema, const Stack& operands) {
  const at::Tensor input = tensor_named(schema, operands, "input");
  TORCH_CHECK(input.defined() && input.dim() >= 2, "expects an input with at least two dimensions");
  const IValue *mean = operand_named(schema, operands, "running_mean"),
               *training = operand_named(schema, operands, "training");
  const bool trains = training != nullptr && training->isBool() && training->toBool();
  TORCH_CHECK(mean == nullptr || trains || tensor_named(schema, operands, "running_mean").defined(),
              "has no running_mean, and does not train");
  for (const char* name : {"weight", "bias", "running_mean", "running_var"}) {
    const at::Tensor given = tensor_named(schema, operands, name);
    if (!given.defined()) continue;
    TORCH_CHECK(given.dim() == 1 && given.size(0) == input.size(1), name, " has the shape ", given.sizes(), " for ",
                input.size(1), " channels");
  }
}

// The layers take their weights from one list, by position.
void weights_fill_the_layers(const FunctionSchema& schema, const Stack& operands) {
  const auto number = [&](const char* name) {
    const IValue* value = operand_named(schema, operands, name);
    TORCH_CHECK(value != nullptr && (value->isInt() || value->isBool()), "has no ", name);
    return value->isBool() ? int64_t{value->toBool()} : value->toInt();
  };
  const IValue* params = operand_named(schema, operands, "params");
  constexpr int64_t kMostLayers = 1 << 16;
  const int64_t layers = number("num_layers"), both = number("bidirectional"), biases = number("has_biases");
  TORCH_CHECK(params != nullptr && params->isTensorList() && layers > 0 && layers <= kMostLayers,
              "expects weights and a number of layers");
  const auto given = static_cast<int64_t>(params->toListRef().size());
  const int64_t cells = layers * (1 + both), wanted = 2 + 2 * biases;
  const bool projects = schema.name() == "aten::lstm" && given == cells * (wanted + 1);
  TORCH_CHECK(given == cells * wanted || projects, "has ", given, " weights, but its layers take ", cells * wanted);
}

// repeat_interleave adds up the counts and trusts the sum.
void repeats_are_moderate(const FunctionSchema& schema, const Stack& operands) {
  constexpr double kMost = 1LL << 40;
  const at::Tensor repeats = tensor_named(schema, operands, "repeats");
  TORCH_CHECK(repeats.defined() && c10::isIntegralType(repeats.scalar_type(), false), "expects whole numbers");
  if (repeats.numel() == 0) return;
  const double sum = repeats.sum(at::kDouble).item<double>();
  TORCH_CHECK(repeats.min().item<int64_t>() >= 0 && sum <= kMost, "repeats ", sum, " times in all");
}

// For grouped queries, attention divides by the number of heads of key and value.
void has_heads_to_group(const FunctionSchema& schema, const Stack& operands) {
  const IValue* grouped = operand_named(schema, operands, "enable_gqa");
  if (grouped == nullptr || !grouped->isBool() || !grouped->toBool()) return;
  for (const char* name : {"query", "key", "value"}) {
    const at::Tensor heads = tensor_named(schema, operands, name);
    TORCH_CHECK(heads.defined() && heads.dim() >= 3 && heads.size(-3) > 0, name, " has no heads");
  }
}

void dimensions_exist(const FunctionSchema& schema, const Stack& operands) {
  const at::Tensor self = tensor_named(schema, operands, "self");
  const IValue* dims = operand_named(schema, operands, "dim");
  TORCH_CHECK(self.defined() && dims != nullptr && dims->isIntList() && !dims->toIntVector().empty(),
              "expects a tensor and its dimensions");
  std::vector<int64_t> all = dims->toIntVector();
  for (const int64_t dim : all) TORCH_CHECK(dim >= 0 && dim < self.dim(), "has no dimension ", dim);
  std::ranges::sort(all);
  TORCH_CHECK(std::ranges::adjacent_find(all) == all.end(), "names a dimension twice");
}

void is_a_matrix(const FunctionSchema& schema, const Stack& operands) {
  const at::Tensor self = tensor_named(schema, operands, "self");
  TORCH_CHECK(self.defined() && self.dim() == 2 && self.numel() > 0, "expects a matrix");
}

// The norm runs over all dimensions except `dim`, and `g` has one number for each index of `dim`. _weight_norm accepts
// any dimension. It also accepts -1: then the norm runs over all dimensions, and `g` is one number. The other operator
// (_weight_norm_interface) accepts only the first and the last dimension.
void scale_fits_the_weight(const FunctionSchema& schema, const Stack& operands) {
  const at::Tensor v = tensor_named(schema, operands, "v"), g = tensor_named(schema, operands, "g");
  const IValue* dim = operand_named(schema, operands, "dim");
  TORCH_CHECK(v.defined() && g.defined() && v.dim() > 0 && v.numel() > 0 && dim != nullptr && dim->isInt(),
              "expects a weight, its scale and a dimension");
  const int64_t kept = dim->toInt(), last = v.dim() - 1;
  const bool either = schema.name() == "aten::_weight_norm";
  if (either && kept == -1 && g.numel() == 1) return;
  TORCH_CHECK(either ? kept >= 0 && kept <= last : kept == 0 || kept == last, "cannot keep dimension ", kept);
  std::vector<int64_t> wanted(static_cast<size_t>(v.dim()), 1);
  wanted[static_cast<size_t>(kept)] = v.size(kept);
  TORCH_CHECK(g.sizes() == at::IntArrayRef(wanted), "has a scale of the shape ", g.sizes(), ", not ",
              at::IntArrayRef(wanted));
  TORCH_CHECK(g.scalar_type() == v.scalar_type(), "has a weight and a scale of different types");
}

// The kernel negates a negative exponent, which overflows for the smallest number.
void exponent_is_moderate(const FunctionSchema& schema, const Stack& operands) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const IValue* n = operand_named(schema, operands, "n");
  TORCH_CHECK(n != nullptr && n->isInt() && n->toInt() >= -kMost && n->toInt() <= kMost,
              "has an exponent that is too large");
}

// Dividing the smallest integer by -1 traps. Returns whether the value holds this number.
bool contains(const IValue& value, int64_t number) {
  if (value.isTensor()) return value.toTensor().eq(number).any().item<bool>();
  return value.isInt() && value.toInt() == number;
}
void division_does_not_trap(const FunctionSchema& schema, const Stack& operands) {
  const IValue* mode = operand_named(schema, operands, "rounding_mode");
  if (mode == nullptr || !mode->isString() || mode->toStringRef() != "trunc") return;
  const IValue &a = operands.at(0), &b = operands.at(1);
  const auto whole = [](const IValue& v) {
    return v.isTensor() ? v.toTensor().defined() && c10::isIntegralType(v.toTensor().scalar_type(), true) : v.isInt();
  };
  if (!whole(a) || !whole(b) || !contains(b, -1)) return;
  for (const int64_t least : {std::numeric_limits<int64_t>::min(), int64_t{std::numeric_limits<int32_t>::min()}})
    TORCH_CHECK(!contains(a, least), "divides ", least, " by -1");
}

// unbind, split and similar operators make one tensor for each index or piece of a dimension. An expanded tensor has a
// dimension of any length.
int64_t length_along(const at::Tensor& self, const Stack& operands, size_t dim_at) {
  const bool given = operands.size() > dim_at && operands[dim_at].isInt();
  const int64_t dim = given ? operands[dim_at].toInt() : 0;
  const int64_t rank = self.dim();
  return dim >= -rank && dim < rank ? self.size(dim) : 0;  // the operator itself refuses another dimension
}
void check_count_of_tensors(int64_t count) {
  constexpr int64_t kMost = 1 << 16;
  TORCH_CHECK(count <= kMost, "would make ", count, " tensors; Sinew allows ", kMost);
}
void unbinds_few(const FunctionSchema&, const Stack& operands) {
  if (operands.at(0).isTensor()) check_count_of_tensors(length_along(operands[0].toTensor(), operands, 1));
}
void splits_into_few(const FunctionSchema&, const Stack& operands) {
  if (!operands.at(0).isTensor() || !operands.at(1).isInt() || operands[1].toInt() <= 0) return;
  const int64_t length = length_along(operands[0].toTensor(), operands, 2), size = operands[1].toInt();
  check_count_of_tensors(length / size);
}
void chunks_into_few(const FunctionSchema&, const Stack& operands) {
  if (!operands.at(0).isTensor() || !operands.at(1).isInt()) return;
  check_count_of_tensors(std::min(operands[1].toInt(), length_along(operands[0].toTensor(), operands, 2)));
}
void sections_are_few(const FunctionSchema&, const Stack& operands) {
  if (operands.at(1).isInt()) check_count_of_tensors(operands[1].toInt());
}

}  // namespace

Guard guard_of(const std::string& operator_name) {
  static const std::map<std::string, Guard> all = {
      {"aten::_fft_c2c", dimensions_exist},
      {"aten::_fft_c2r", dimensions_exist},
      {"aten::_fft_r2c", dimensions_exist},
      {"aten::_native_batch_norm_legit", statistics_have_a_number_per_channel},
      {"aten::_native_batch_norm_legit.no_stats", statistics_have_a_number_per_channel},
      {"aten::_native_batch_norm_legit_functional", statistics_have_a_number_per_channel},
      {"aten::_native_batch_norm_legit_no_training", statistics_have_a_number_per_channel},
      {"aten::_pdist_forward", is_a_matrix},
      {"aten::_weight_norm", scale_fits_the_weight},
      {"aten::_weight_norm_interface", scale_fits_the_weight},
      {"aten::batch_norm", statistics_have_a_number_per_channel},
      {"aten::chunk", chunks_into_few},
      {"aten::div.Scalar_mode", division_does_not_trap},
      {"aten::div.Tensor_mode", division_does_not_trap},
      {"aten::div_.Scalar_mode", division_does_not_trap},
      {"aten::div_.Tensor_mode", division_does_not_trap},
      {"aten::divide.Scalar_mode", division_does_not_trap},
      {"aten::divide.Tensor_mode", division_does_not_trap},
      {"aten::divide_.Scalar_mode", division_does_not_trap},
      {"aten::divide_.Tensor_mode", division_does_not_trap},
      {"aten::gru.input", weights_fill_the_layers},
      {"aten::linalg_matrix_power", exponent_is_moderate},
      {"aten::lstm.input", weights_fill_the_layers},
      {"aten::matrix_power", exponent_is_moderate},
      {"aten::native_batch_norm", statistics_have_a_number_per_channel},
      {"aten::repeat_interleave.Tensor", repeats_are_moderate},
      {"aten::repeat_interleave.self_Tensor", repeats_are_moderate},
      {"aten::rnn_relu.input", weights_fill_the_layers},
      {"aten::rnn_tanh.input", weights_fill_the_layers},
      {"aten::scaled_dot_product_attention", has_heads_to_group},
      {"aten::split.Tensor", splits_into_few},
      {"aten::tensor_split.sections", sections_are_few},
      {"aten::unbind.int", unbinds_few},
      {"aten::unsafe_chunk", chunks_into_few},
      {"aten::unsafe_split.Tensor", splits_into_few},
  };
  const auto found = all.find(operator_name);
  return found == all.end() ? nullptr : found->second;
}

}  // namespace sinew::model
