// Begins a new state with weights from an earlier training.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "train/match_weights.h"
#include "train/state.h"

namespace sinew::train {
namespace {

// Returns the weights file of a checkpoint, or of a run's newest intact checkpoint. Prefers averaged weights, which are
// the better start.
std::string file_in(const std::string& path, Disk& disk) {
  std::string directory = path;
  for (const std::string& inner : {std::string("/checkpoints"), std::string("")}) {
    if (!disk.exists(path + inner)) continue;
    const checkpoint::Newest newest = checkpoint::load_newest(disk, path + inner);
    if (!newest.loaded) continue;
    directory = newest.loaded->directory;
    break;
  }
  return directory + (disk.exists(directory + "/ema.safetensors") ? "/ema.safetensors" : "/model.safetensors");
}

checkpoint::Weights read_one(const std::string& file, Disk& disk) {
  auto read = checkpoint::read_weights(disk, file);
  if (!read)
    throw Error("WEIGHTS_UNREADABLE", "model.init_from: " + read.error(),
                "give a checkpoint, a run directory or a .safetensors file");
  return std::move(*read);
}

// Reads all files that a model.safetensors.index.json lists, the form in which large models are distributed:
// {"weight_map": {tensor: file beside it}}.
checkpoint::Weights read_parts(const std::string& index, Disk& disk) {
  const nlohmann::json document = nlohmann::json::parse(read_text(disk, index), nullptr, /*allow_exceptions=*/false);
  const auto map = document.is_object() ? document.find("weight_map") : document.end();
  if (!document.is_object() || map == document.end() || !map->is_object())
    throw Error("WEIGHTS_UNREADABLE", "model.init_from: " + index + " has no weight_map",
                "give the index that belongs to the .safetensors files");
  std::vector<std::string> names;
  for (const auto& [tensor, file] : map->items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (name.empty() || name.find('/') != std::string::npos)
      throw Error("WEIGHTS_UNREADABLE", "model.init_from: " + index + " names no file in its directory for " + tensor,
                  "copy the index again");
    names.push_back(name);
  }
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  checkpoint::Weights all;
  for (const std::string& name : names) {
    checkpoint::TensorFile part = read_one(index.substr(0, index.rfind('/') + 1) + name, disk).file;
    all.file.tensors.merge(part.tensors);
    if (!part.tensors.empty())
      throw Error("WEIGHTS_UNREADABLE", "model.init_from: " + name + " repeats " + part.tensors.begin()->first,
                  "copy the files again");
  }
  return all;
}

WeightShape shape_of(const model::NamedTensor& item) {
  return {item.name, dtype_of(item.tensor), Shape(item.tensor.sizes().begin(), item.tensor.sizes().end())};
}

std::string listed(const std::string& what, const std::vector<std::string>& names) {
  if (names.empty()) return "";
  std::string text = "; " + std::to_string(names.size()) + " " + what + ":";
  for (const std::string& name : names) text += " " + name;
  return text;
}

}  // namespace

std::string warm_start(TrainingState& state, const spec::WeightSource& from, const std::vector<std::string>& reinit,
                       Disk& disk) {
  const bool index = from.path.ends_with(".index.json");
  const std::string file = index || from.path.ends_with(".safetensors") ? from.path : file_in(from.path, disk);
  const checkpoint::Weights weights = index ? read_parts(file, disk) : read_one(file, disk);
  return take_weights(state, from, reinit, weights.file, file) + (weights.remark.empty() ? "" : "; " + weights.remark);
}

std::string take_weights(TrainingState& state, const spec::WeightSource& from, const std::vector<std::string>& reinit,
                         const checkpoint::TensorFile& read, const std::string& file) {
  std::vector<WantedWeight> wanted;
  std::vector<torch::Tensor> into;
  for (const auto* list : {&state.parameters, &state.buffers}) {
    for (const model::NamedTensor& item : *list) {
      const bool reinitialised = std::ranges::any_of(
          reinit, [&](const std::string& pattern) { return spec::fits_pattern(pattern, item.name); });
      wanted.push_back({shape_of(item), list == &state.parameters, reinitialised});
      into.push_back(item.tensor);
    }
  }
  std::vector<WeightShape> given;
  std::vector<const Array*> arrays;
  for (const auto& [name, array] : read.tensors) {
    given.push_back({name, array.dtype, array.shape});
    arrays.push_back(&array);
  }
  const MatchedWeights matched = match_weights(wanted, given, from);
  if (!matched.problems.empty()) {
    std::string list;
    for (const std::string& problem : matched.problems) list += "\n  " + problem;
    throw Error("WEIGHTS_MISMATCH", file + " does not fit this job's model:" + list, matched.hint);
  }
  const torch::NoGradGuard no_grad;
  for (const WeightFit& fit : matched.fits) into[fit.wanted].copy_(view_of(*arrays[fit.given]));
  for (size_t p = 0; p < state.ema.size(); ++p) state.ema[p].tensor.copy_(state.parameters[p].tensor);
  return "weights taken from " + file + ": " + std::to_string(matched.fits.size()) + " tensors" +
         listed("tensors of the model are not in it", matched.missing) +
         listed("of its tensors are not used", matched.unexpected);
}

}  // namespace sinew::train
