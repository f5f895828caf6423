#include "train/artifact.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "rundir/rundir.h"
#include "train/state.h"

namespace sinew::train {

std::string write_artifact(const TrainingState& state, const spec::Job& job, const std::string& resolved_yaml,
                           const data::DataInfo& info, const std::string& run_directory, Disk& disk) {
  std::string left_out;
  const std::string directory = rundir::file_in(run_directory, rundir::kModel);
  disk.make_directories(directory);
  write_model(state, directory + "/model.safetensors", {{"format", "pt"}}, disk);
  // Also writes the model in the format of the user's model file.
  if (const std::string own = model::model_file_name(job.model.name); !own.empty()) {
    std::vector<model::NamedTensor> values = state.ema.empty() ? state.parameters : state.ema;
    values.insert(values.end(), state.buffers.begin(), state.buffers.end());
    left_out = model::save_model_file(job.model, values, directory + "/" + own);
  }
  const nlohmann::json about = {{"format", 1},
                                {"job", resolved_yaml},
                                {"loss", job.loss.name},
                                {"data", nlohmann::json::parse(data::info_json(info))},
                                {"input_shape", info.input_shape},
                                {"classes", info.classes},
                                {"class_names", info.class_names},
                                {"input_names", info.input_names},
                                {"target_mean", info.target_mean},
                                {"target_std", info.target_std}};
  // Class and column names may not be valid UTF-8, so invalid bytes are replaced.
  const std::string text = dump_json(about, 1) + "\n";
  write_durably(disk, directory + "/model.json", std::as_bytes(std::span(text.data(), text.size())));
  return left_out;
}

}  // namespace sinew::train
