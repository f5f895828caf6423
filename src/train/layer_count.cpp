#include "train/layer_count.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>

namespace sinew::train {
namespace {

// "blocks.0.attn.qkv.weight" is of the layer "blocks.0.attn.qkv".
std::string layer_of_tensor(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(0, dot);
}

uintptr_t address_of(const at::Tensor& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
}

}  // namespace

LayerCount::LayerCount(const std::vector<model::NamedTensor>& parameters,
                       const std::vector<model::NamedTensor>& buffers)
    : count_([this](const at::RecordFunction& call, const std::string& caller, bool is_product) {
        return name(call, caller, is_product);
      }) {
  const auto add = [&](const model::NamedTensor& named) {
    if (!named.tensor.has_storage() || named.tensor.nbytes() == 0) return;
    const uintptr_t begin = address_of(named.tensor);
    memory_.try_emplace(begin, Memory{begin + named.tensor.nbytes(), layer_of_tensor(named.name)});
  };
  for (const model::NamedTensor& parameter : parameters) {
    add(parameter);
    parameters_[layer_of_tensor(parameter.name)] += parameter.tensor.numel();
  }
  for (const model::NamedTensor& buffer : buffers) add(buffer);
}

// A view of a part of a parameter begins inside of the parameter's memory.
std::string LayerCount::layer_at(const at::Tensor& tensor) const {
  const uintptr_t address = address_of(tensor);
  const auto after = memory_.upper_bound(address);
  if (after == memory_.begin()) return "";
  const Memory& memory = std::prev(after)->second;
  return address < memory.end ? memory.layer : "";
}

std::string LayerCount::name(const at::RecordFunction& call, const std::string& caller, bool is_product) {
  std::string found;
  for (const c10::IValue& input : call.inputs()) {
    visit_tensors(input, [&](const at::Tensor& tensor) {
      if (found.empty()) found = layer_at(tensor);
    });
    if (!found.empty()) break;
  }
  const bool backward = call.scope() == at::RecordScope::BACKWARD_FUNCTION;
  const auto of_forward = backward ? by_sequence_.find(call.seqNr()) : by_sequence_.end();
  if (found.empty() && of_forward != by_sequence_.end()) found = of_forward->second;
  if (found.empty()) found = caller;
  // autograd itself is no operator: what it calls has a name of its own
  const bool is_engine = std::string_view(call.name()).starts_with("autograd::");
  if (found.empty() && !is_engine) found = name_with_sizes(call, is_product ? 2 : 1);
  if (!backward && call.seqNr() >= 0) by_sequence_[call.seqNr()] = found;
  return found;
}

std::vector<rundir::LayerUse> LayerCount::layers() const {
  std::vector<rundir::LayerUse> layers;
  for (const auto& [name, use] : count_.uses()) {
    if (use.flops + use.bytes <= 0) continue;
    const auto parameters = parameters_.find(name);
    layers.push_back({.name = name,
                      .calls = use.moving_calls,
                      .flops = use.flops,
                      .bytes = use.bytes,
                      .parameters = parameters == parameters_.end() ? 0 : parameters->second});
  }
  return layers;
}

rundir::ModelUse use_in_step(std::vector<rundir::LayerUse> of_shard, double samples, int64_t shards) {
  rundir::ModelUse use;
  for (rundir::LayerUse& layer : of_shard) {
    layer.calls *= shards;
    layer.flops = std::round(layer.flops * samples);
    layer.bytes = std::round(layer.bytes * samples);
    use.flops_per_step += layer.flops;
  }
  std::ranges::sort(of_shard, [](const rundir::LayerUse& a, const rundir::LayerUse& b) {
    return std::tie(b.flops, b.bytes, a.name) < std::tie(a.flops, a.bytes, b.name);
  });
  const size_t kept = std::min(of_shard.size(), rundir::ModelUse::kMostLayers);
  use.layers.assign(of_shard.begin(), of_shard.begin() + static_cast<std::ptrdiff_t>(kept));
  if (kept == of_shard.size()) return use;
  rundir::LayerUse& rest = use.layers.emplace_back();
  rest.name = rundir::ModelUse::kOther;
  for (size_t i = kept; i < of_shard.size(); ++i) {
    rest.calls += of_shard[i].calls;
    rest.flops += of_shard[i].flops;
    rest.bytes += of_shard[i].bytes;
    rest.parameters += of_shard[i].parameters;
  }
  return use;
}

}  // namespace sinew::train
