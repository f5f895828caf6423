#include "train/artifact.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hex.h"
#include "base/json_text.h"
#include "base/sha256.h"
#include "rundir/rundir.h"
#include "train/state.h"

namespace sinew::train {
namespace {

// save_model_file does not use a Disk. So it writes under a hidden name, and `disk` then gives the file its name.
// `disk` may refuse that because this process must not write any more; the file of the other process then stays as it
// is.
std::string place_model_file(const spec::ModelOptions& options, const std::vector<model::NamedTensor>& values,
                             const std::string& directory, const std::string& name, Disk& disk) {
  const std::string hidden = disk.staging(directory + "/." + random_hex(8) + "." + name);
  try {
    std::string left_out = model::save_model_file(options, values, hidden);
    if (left_out.empty()) {
      disk.rename(hidden, directory + "/" + name);
    } else {
      disk.remove_file(directory + "/" + name);  // an earlier attempt may have written it, with other weights
    }
    disk.sync_directory(directory);
    return left_out;
  } catch (const Error&) {
    try {
      disk.remove_file(hidden);
    } catch (const Error&) {  // the caller gets the first error
    }
    throw;
  }
}

}  // namespace

std::string write_artifact(const TrainingState& state, const spec::Job& job, const std::string& resolved_yaml,
                           const data::DataInfo& info, const std::optional<Threshold>& threshold,
                           const std::string& run_directory, Disk& disk) {
  std::string left_out;
  const std::string directory = rundir::file_in(run_directory, rundir::kModel);
  disk.make_directories(directory);
  checkpoint::ModelDigests written;
  written["model.safetensors"] = write_model(state, directory + "/model.safetensors", {{"format", "pt"}}, disk);
  // Also writes the model in the format of the user's model file.
  if (const std::string own = model::model_file_name(job.model.name); !own.empty()) {
    std::vector<model::NamedTensor> values = state.ema.empty() ? state.parameters : state.ema;
    values.insert(values.end(), state.buffers.begin(), state.buffers.end());
    left_out = place_model_file(job.model, values, directory, own, disk);
    if (left_out.empty()) written[own] = checkpoint::digest_file(disk, directory + "/" + own);
  }
  const auto about_data = nlohmann::json::parse(data::info_json(info));
  nlohmann::json about = {{"format", 1},
                          {"digests", checkpoint::kModelDigestsFile},
                          {"job", resolved_yaml},
                          {"loss", job.loss.name},
                          {"data", about_data},
                          {"input_shape", info.input_shape},
                          {"classes", info.classes},
                          {"class_names", info.class_names},
                          {"input_names", info.input_names},
                          {"target_mean", about_data.at("target_mean")},
                          {"target_std", about_data.at("target_std")}};
  if (threshold) {
    about["threshold"] = {{"value", threshold->value}, {"score", threshold->score}, {"chosen", threshold->chosen}};
    if (!std::isnan(threshold->at_value))
      about["threshold"].update(
          {{"metric", threshold->metric}, {"val", threshold->at_value}, {"val_at_half", threshold->at_half}});
  }
  // Class and column names need not be valid UTF-8, so invalid bytes are replaced.
  const std::string text = dump_json(about, 1) + "\n";
  write_durably(disk, directory + "/" + checkpoint::kModelInfoFile, text);
  written[checkpoint::kModelInfoFile] = {text.size(), sha256_hex(text)};
  checkpoint::write_model_digests(disk, directory, written);
  return left_out;
}

}  // namespace sinew::train
