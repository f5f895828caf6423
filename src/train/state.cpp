#include "train/state.h"

#include <nlohmann/json.hpp>
#include <span>

#include "base/check.h"
#include "base/error.h"
#include "base/json_text.h"
#include "train/lanes.h"

namespace sinew::train {
namespace {

using nlohmann::json;

struct TypePair {
  DType ours;
  torch::ScalarType theirs;
};
constexpr TypePair kTypes[] = {
    {DType::boolean, torch::kBool}, {DType::u8, torch::kUInt8},      {DType::i8, torch::kInt8},
    {DType::i16, torch::kInt16},    {DType::i32, torch::kInt32},     {DType::i64, torch::kInt64},
    {DType::f16, torch::kFloat16},  {DType::bf16, torch::kBFloat16}, {DType::f32, torch::kFloat32},
    {DType::f64, torch::kFloat64},
};

torch::ScalarType type_of(DType dtype) {
  for (const TypePair& pair : kTypes) {
    if (pair.ours == dtype) return pair.theirs;
  }
  SINEW_CHECK(false, static_cast<int>(dtype));
}

// Returns the tensor on the CPU and in C order, as files store tensors.
torch::Tensor file_layout(const torch::Tensor& tensor) {
  return tensor.detach().cpu().contiguous();
}

// Computes the digest of a state on several lanes, and keeps the tensors until it is done. It can copy the tensors at
// the same time.
class TensorWalk {
 public:
  // Copies the tensor's bytes to `copy` unless it is null.
  void add(const torch::Tensor& values, std::byte* copy = nullptr) {
    alive_.push_back(values);
    bytes_ += values.nbytes();
    digest_.add(std::span(static_cast<const std::byte*>(values.const_data_ptr()), values.nbytes()), copy);
  }
  void add_zeros(size_t bytes) { digest_.add_zeros(bytes); }

  // Returns the digest of the text and all tensors. The copies are complete when it returns.
  Digest finish(Digest text, Lanes* lanes) {
    constexpr size_t kWorthWaking = 1 << 20;  // in bytes; one lane does less than this before others wake up
    if (lanes == nullptr || bytes_ < kWorthWaking) return digest_.finish(text);
    return digest_.finish(text, [&](const auto& work) { lanes->run([&](int) { work(); }); });
  }

 private:
  std::vector<torch::Tensor> alive_;
  checkpoint::StateDigest digest_;
  size_t bytes_ = 0;
};

// Returns false for frozen parameters, which have no optimizer state (see Engine). The digest covers zeros instead.
bool has_state(const torch::Tensor& of_optimizer, const torch::Tensor& parameter) {
  return of_optimizer.numel() == parameter.numel();
}

// A copy of a state while it is made. The digest covers the tensors in the order in which they are put in.
class StateCopy {
 public:
  explicit StateCopy(checkpoint::OwnedSnapshot& into) : into_(into) {}
  void put(const std::string& part, const std::string& name, const torch::Tensor& tensor) {
    const torch::Tensor values = file_layout(tensor);
    checkpoint::TensorEntry entry{name, dtype_of(values), Shape(values.sizes().begin(), values.sizes().end()), 0, 0};
    auto& entries = into_.parts[part];
    entries.emplace_back(std::move(entry), Buffer(values.nbytes()));
    walk_.add(values, entries.back().second.data());
    order_.push_back({part, name, 0});
  }
  void put_zeros(size_t bytes) {
    walk_.add_zeros(bytes);
    order_.push_back({"", "", bytes});
  }
  // Returns what the state document says about the digest.
  json finish(Digest text, Lanes* lanes) {
    into_.digest = walk_.finish(text, lanes);
    return checkpoint::state_digest_json(text, order_);
  }

 private:
  checkpoint::OwnedSnapshot& into_;
  TensorWalk walk_;
  std::vector<checkpoint::DigestedTensor> order_;
};

std::string shape_text(at::IntArrayRef sizes) {
  std::string text = "[";
  for (const int64_t size : sizes) text += (text.size() > 1 ? "," : "") + std::to_string(size);
  return text + "]";
}

// Copies named arrays into tensors of the same names and collects the mismatches.
struct Loader {
  const checkpoint::TensorFile& file;
  std::string where;
  std::vector<std::string> problems;
  size_t used = 0;

  void load(const std::string& name, const torch::Tensor& into) {
    const auto found = file.tensors.find(name);
    if (found == file.tensors.end()) {
      problems.push_back("missing " + name + " " + shape_text(into.sizes()));
      return;
    }
    ++used;
    const torch::Tensor values = view_of(found->second);
    if (values.sizes() != into.sizes() || values.scalar_type() != into.scalar_type()) {
      problems.push_back(name + " is " + toString(values.scalar_type()) + shape_text(values.sizes()) +
                         ", the model has " + toString(into.scalar_type()) + shape_text(into.sizes()));
      return;
    }
    const torch::NoGradGuard no_grad;
    into.copy_(values);
  }

  // Accepts the tensor if the file has it, because earlier versions wrote it.
  void skip(const std::string& name) { used += file.tensors.contains(name) ? 1 : 0; }

  void finish() {
    if (problems.empty() && used != file.tensors.size()) {
      problems.push_back(std::to_string(file.tensors.size() - used) + " tensors that the model does not have");
    }
    if (problems.empty()) return;
    std::string list;
    for (size_t i = 0; i < problems.size() && i < 8; ++i) list += "\n  " + problems[i];
    if (problems.size() > 8) list += "\n  and " + std::to_string(problems.size() - 8) + " more";
    throw Error("CHECKPOINT_MISMATCH", where + " does not fit this job's model:" + list,
                "use the job file that trained the weights");
  }
};

const checkpoint::TensorFile& part_of(const checkpoint::Loaded& loaded, const std::string& name) {
  const auto found = loaded.parts.find(name);
  if (found == loaded.parts.end())
    throw Error("CHECKPOINT_UNREADABLE", loaded.directory + " has no " + name + ".safetensors",
                "choose another checkpoint");
  return found->second;
}

}  // namespace

std::string digest_text(const TrainingState& state) {
  std::string updates;
  for (const int64_t of_parameter : state.optimizer_steps) updates += std::to_string(of_parameter) + " ";
  return loop::counts_text(state) + updates + loop::decisions_text(state);
}

DType dtype_of(const torch::Tensor& tensor) {
  for (const TypePair& pair : kTypes) {
    if (pair.theirs == tensor.scalar_type()) return pair.ours;
  }
  throw Error("TRAIN_SAVE_FAILED",
              std::string("a tensor of type ") + toString(tensor.scalar_type()) + " cannot be saved", "");
}

torch::Tensor view_of(const Array& array) {
  return torch::from_blob(const_cast<std::byte*>(array.bytes.data()), at::IntArrayRef(array.shape),
                          torch::TensorOptions().dtype(type_of(array.dtype)));
}

TrainingState initial_state(const spec::Job& job, model::Model& model, torch::MemoryFormat format) {
  TrainingState state;
  state.seed = job.trainer.seed;
  const auto own = [&](const torch::Tensor& tensor) {
    const bool image = tensor.dim() == 4;
    return tensor.detach().clone(image ? format : torch::MemoryFormat::Contiguous);
  };
  for (const auto& [name, tensor] : model.parameters()) state.parameters.push_back({name, own(tensor)});
  for (const auto& [name, tensor] : model.buffers()) state.buffers.push_back({name, tensor.detach().clone()});
  if (job.trainer.ema_decay > 0) {
    for (const auto& [name, tensor] : state.parameters) state.ema.push_back({name, tensor.clone()});
  }
  state.optimizer_steps.assign(state.parameters.size(), 0);
  return state;
}

Digest digest(const TrainingState& state, Lanes* lanes) {
  TensorWalk walk;
  for (const auto* list : {&state.parameters, &state.buffers, &state.ema}) {
    for (const auto& item : *list) walk.add(file_layout(item.tensor));
  }
  for (const auto& [name, tensors] : state.optimizer) {
    for (size_t p = 0; p < tensors.size(); ++p) {
      const torch::Tensor& parameter = state.parameters[p].tensor;
      has_state(tensors[p], parameter) ? walk.add(file_layout(tensors[p])) : walk.add_zeros(parameter.nbytes());
    }
  }
  return walk.finish(digest_of(digest_text(state)), lanes);
}

checkpoint::OwnedSnapshot snapshot(const TrainingState& state, const StateFacts& facts, Lanes* lanes) {
  checkpoint::OwnedSnapshot result;
  result.step = state.step;
  StateCopy copy(result);  // puts tensors in the order of digest()
  for (const auto& item : state.parameters) copy.put("model", item.name, item.tensor);
  for (const auto& item : state.buffers) copy.put("model", item.name, item.tensor);
  for (const auto& item : state.ema) copy.put("ema", item.name, item.tensor);
  for (const auto& [name, tensors] : state.optimizer) {
    result.parts["optimizer"];  // the part exists even if all parameters are frozen
    for (size_t p = 0; p < tensors.size(); ++p) {
      const auto& parameter = state.parameters[p];
      if (has_state(tensors[p], parameter.tensor)) {
        copy.put("optimizer", name + "." + parameter.name, tensors[p]);
      } else {
        copy.put_zeros(parameter.tensor.nbytes());
      }
    }
  }
  json document = loop::state_document(state, facts);
  document["optimizer_steps"] = state.optimizer_steps;
  document[checkpoint::kStateDigestKey] = copy.finish(digest_of(digest_text(state)), lanes);
  result.state_json = dump_json(document, 1);  // names may contain any bytes
  return result;
}

void restore(TrainingState& state, StateFacts& facts, const checkpoint::Loaded& loaded) {
  const json document = json::parse(loaded.state_json, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded())
    throw Error("CHECKPOINT_UNREADABLE", loaded.directory + "/state.json is not JSON", "choose another checkpoint");
  try {
    loop::read_document(document, state, facts);
    state.optimizer_steps = document.at("optimizer_steps").get<std::vector<int64_t>>();
  } catch (const json::exception& error) {
    throw Error("CHECKPOINT_UNREADABLE", loaded.directory + "/state.json: " + error.what(),
                "another version of Sinew wrote it: choose another checkpoint");
  }
  Loader model{part_of(loaded, "model"), loaded.directory + "/model.safetensors", {}, 0};
  for (const auto& item : state.parameters) model.load(item.name, item.tensor);
  for (const auto& item : state.buffers) model.load(item.name, item.tensor);
  model.finish();
  if (!state.ema.empty()) {
    Loader ema{part_of(loaded, "ema"), loaded.directory + "/ema.safetensors", {}, 0};
    for (const auto& item : state.ema) ema.load(item.name, item.tensor);
    ema.finish();
  }
  if (state.optimizer.empty()) return;
  Loader optimizer{part_of(loaded, "optimizer"), loaded.directory + "/optimizer.safetensors", {}, 0};
  for (const auto& [name, tensors] : state.optimizer) {
    for (size_t p = 0; p < tensors.size(); ++p) {
      const std::string& parameter = state.parameters[p].name;
      if (has_state(tensors[p], state.parameters[p].tensor)) {
        optimizer.load(name + "." + parameter, tensors[p]);
      } else {
        optimizer.skip(name + "." + parameter);
      }
    }
  }
  optimizer.finish();
}

checkpoint::FileDigest write_model(const TrainingState& state, const std::string& path,
                                   const checkpoint::Metadata& metadata, Disk& disk) {
  std::vector<torch::Tensor> held;
  std::vector<checkpoint::TensorBytes> tensors;
  const auto put = [&](const model::NamedTensor& item) {
    held.push_back(file_layout(item.tensor));
    const torch::Tensor& values = held.back();
    tensors.push_back({item.name, dtype_of(values), Shape(values.sizes().begin(), values.sizes().end()),
                       std::span(static_cast<const std::byte*>(values.const_data_ptr()), values.nbytes())});
  };
  for (const auto& item : state.ema.empty() ? state.parameters : state.ema) put(item);
  for (const auto& item : state.buffers) put(item);
  return checkpoint::write_safetensors(disk, path, tensors, metadata);
}

}  // namespace sinew::train
