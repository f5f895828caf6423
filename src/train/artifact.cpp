#include "train/artifact.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "rundir/rundir.h"
#include "train/state.h"

namespace sinew::train {

Restored restore_best(Engine& engine, const spec::Job& job, const std::string& run_directory, Disk& disk) {
  const EvaluationState evaluation = engine.state().evaluation;
  const std::string best = rundir::file_in(run_directory, rundir::kCheckpoints) + "/best";
  const bool wanted = !job.early_stopping.monitor.empty() && job.early_stopping.restore_best;
  if (!wanted || !evaluation.best || evaluation.best_step == engine.state().step) return {};
  const std::string lost = "no checkpoint has the best state, of step " + std::to_string(evaluation.best_step.value) +
                           "; the model is that of step ";
  if (!disk.exists(best)) return {lost + std::to_string(engine.state().step.value) + ", the last", true};
  const auto loaded = checkpoint::load(disk, best);
  if (!loaded) {
    throw Error("CHECKPOINT_DAMAGED",
                "the best checkpoint is damaged: " + loaded.error().file + ": " + loaded.error().what,
                "the last checkpoint is in " + rundir::file_in(run_directory, rundir::kCheckpoints) + "/last");
  }
  StateFacts ignored;
  restore(engine.state(), ignored, *loaded);
  engine.state_replaced();
  const std::string step = std::to_string(loaded->step.value);
  if (loaded->step != evaluation.best_step) return {lost + step + ", the best before it", true};
  return {"the model is that of step " + step + ", the best"};
}

std::string write_artifact(const TrainingState& state, const spec::Job& job, const std::string& resolved_yaml,
                           const data::DataInfo& info, const std::string& run_directory, Disk& disk) {
  std::string left_out;
  const std::string directory = rundir::file_in(run_directory, rundir::kModel);
  disk.make_directories(directory);
  write_model(state, directory + "/model.safetensors", {{"format", "pt"}}, disk);
  // In the format that the user's file had.
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
  // Names may contain any bytes.
  const std::string text = about.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  write_durably(disk, directory + "/model.json", std::as_bytes(std::span(text.data(), text.size())));
  return left_out;
}

rundir::Outcome outcome_of(const TrainingState& state, const spec::Job& job, const data::DataInfo& info) {
  rundir::Outcome outcome;
  outcome.job = job.name;
  outcome.steps = state.step.value;
  outcome.samples = state.samples;
  outcome.epochs = static_cast<double>(state.samples) / static_cast<double>(std::max<int64_t>(1, info.train_size));
  outcome.digest = to_hex(digest(state));
  outcome.last = state.evaluation.last;
  if (state.evaluation.best) {
    outcome.best = {job.checkpoint.monitor, *state.evaluation.best, state.evaluation.best_step.value};
  }
  if (job.objective) {
    const auto found = state.evaluation.last.find(job.objective->metric);
    outcome.objective = {to_string(*job.objective), state.evaluation.objective_met,
                         found == state.evaluation.last.end() ? std::nan("") : found->second};
  }
  return outcome;
}

}  // namespace sinew::train
