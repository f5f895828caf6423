#include "train/apply_model.h"

#include <nlohmann/json.hpp>

#include "base/disk.h"
#include "base/error.h"
#include "rundir/rundir.h"
#include "train/class_metrics.h"
#include "train/loss.h"
#include "train/resolve.h"
#include "train/state.h"
#include "train/threshold.h"

namespace sinew::train {
namespace {

using nlohmann::json;

json parse_object(const std::string& text, const std::string& path) {
  json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) throw Error("WEIGHTS_UNREADABLE", path + " is not a JSON object", "restore the file");
  return document;
}

json read_json(Disk& disk, const std::string& path) {
  return parse_object(read_text(disk, path), path);
}

std::string job_of(const json& document, const std::string& path) {
  const auto found = document.find("job");
  if (found == document.end() || !found->is_string())
    throw Error("WEIGHTS_UNREADABLE", path + " has no job", "restore the file");
  return *found;
}

std::optional<data::DataInfo> data_of(const json& document) {
  const auto found = document.find("data");
  if (found == document.end()) return std::nullopt;
  return data::info_from_json(found->dump());
}

std::string parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// Checks every file of the model except the weights; load_weights checks those as it reads them. Returns a remark if
// the model has no digests to check, else "".
std::string check_model(const std::string& directory, Disk& disk) {
  const auto listed = checkpoint::read_model_digests(disk, directory);
  if (!listed) return checkpoint::unchecked_model(directory);
  for (const char* name : {checkpoint::kModelInfoFile, "model.pt2", "model.pt", "model.so"}) {
    if (listed->contains(name) || disk.exists(directory + "/" + name))
      checkpoint::check_model_file(disk, directory, name, *listed);
  }
  return "";
}

Trained from_model_directory(const std::string& directory, Disk& disk) {
  Trained trained;
  trained.weights = directory + "/model.safetensors";
  trained.remark = check_model(directory, disk);
  const json document = read_json(disk, directory + "/model.json");
  if (!disk.exists(trained.weights))
    throw Error("WEIGHTS_NOT_FOUND", directory + " has a model.json but no model.safetensors", "copy both files");
  trained.job_yaml = job_of(document, directory + "/model.json");
  trained.data = data_of(document);
  if (const auto found = document.find("threshold"); found != document.end()) {
    if (!found->is_object() || !found->contains("score") || !found->at("score").is_number())
      throw Error("WEIGHTS_UNREADABLE", directory + "/model.json has a threshold without a score", "restore the file");
    trained.threshold = found->at("score").get<double>();
  }
  if (disk.exists(rundir::file_in(parent_of(directory), rundir::kResolvedFile)))
    trained.run_directory = parent_of(directory);
  trained.description = "the model " + trained.weights;
  return trained;
}

Trained from_checkpoint(const std::string& directory, Disk& disk) {
  Trained trained;
  trained.weights = directory;
  trained.checkpoint = true;
  const auto state = checkpoint::load_state(disk, directory);
  if (!state) throw checkpoint::checkpoint_damaged(state.error());
  const json document = parse_object(*state, directory + "/state.json");
  trained.job_yaml = job_of(document, directory + "/state.json");
  const std::string run = parent_of(parent_of(directory));
  if (disk.exists(rundir::file_in(run, rundir::kResolvedFile))) trained.run_directory = run;
  const std::string about = rundir::file_in(run, rundir::kModel) + "/model.json";
  if (!trained.run_directory.empty() && disk.exists(about)) {
    check_model(rundir::file_in(run, rundir::kModel), disk);
    trained.data = data_of(read_json(disk, about));
  }
  const auto step = document.find("step");
  if (step != document.end() && step->is_number_integer()) trained.step = step->get<int64_t>();
  trained.description = "the checkpoint " + directory + (step == document.end() ? "" : ", step " + step->dump());
  return trained;
}

// Returns whether the newest attempt wrote model/. Every attempt first removes the earlier report, and writes its own
// last. If there is no report, an earlier attempt therefore wrote model/. A failed attempt writes a report but no
// model. If it failed before it trained, model/ is still that of the attempt before.
bool model_is_newest(const std::string& directory, Disk& disk) {
  const std::string file = rundir::file_in(directory, rundir::kOutcomeFile);
  if (!disk.exists(file)) return false;
  const auto outcome = rundir::parse_outcome(read_text(disk, file));
  if (!outcome) return false;
  return (outcome->earlier_status.empty() ? outcome->status : outcome->earlier_status) != "failed";
}

Trained from_run(const std::string& directory, Disk& disk) {
  Trained trained;
  const bool has_model = disk.exists(rundir::file_in(directory, rundir::kModel));
  if (has_model && model_is_newest(directory, disk)) {
    trained = from_model_directory(rundir::file_in(directory, rundir::kModel), disk);
  } else if (const auto newest = checkpoint::load_newest(disk, rundir::file_in(directory, rundir::kCheckpoints));
             newest.loaded) {
    trained = from_checkpoint(newest.loaded->directory, disk);
    trained.description += " (the run has not ended)";
  } else if (has_model) {
    trained = from_model_directory(rundir::file_in(directory, rundir::kModel), disk);
  } else if (disk.exists(rundir::file_in(directory, rundir::kTrials))) {
    throw Error("WEIGHTS_NOT_FOUND", directory + " is a cross-validation: only its folds have models",
                "name one of them: " + directory + "/trials/00000");
  } else {
    throw Error("WEIGHTS_NOT_FOUND", directory + " has no model yet and no intact checkpoint",
                "wait for one, or finish the run: sinew resume " + directory);
  }
  trained.run_directory = directory;
  trained.run_given = true;
  return trained;
}

// Resets the options that only training needs: the optimizer and the monitored metrics. The data to which the model is
// applied perhaps does not have these metrics.
spec::Job without_training(spec::Job job) {
  job.optimizer = {};
  job.optimizer.name = "sgd";
  job.early_stopping = {};
  job.checkpoint = {};
  job.objective.reset();
  job.threshold = {};
  return job;
}

void load_weights(const Trained& trained, TrainingState& state, Disk& disk) {
  if (trained.checkpoint) {
    const auto loaded = checkpoint::load(disk, trained.weights);
    if (!loaded) throw checkpoint::checkpoint_damaged(loaded.error());
    StateFacts ignored;
    restore(state, ignored, *loaded);
    return;
  }
  const auto weights = checkpoint::read_weights(disk, trained.weights);
  if (!weights)
    throw Error("WEIGHTS_UNREADABLE", weights.error(), "copy the file again, or use a checkpoint of the run");
  for (const auto& buffer : state.buffers) {  // take_weights accepts a file without buffers; an evaluation must not
    if (weights->file.tensors.contains(buffer.name)) continue;
    throw Error("WEIGHTS_MISMATCH", trained.weights + " does not fit this job's model: it has no " + buffer.name,
                "use the model.json that was written with it");
  }
  take_weights(state, {trained.weights, {}, true}, {}, weights->file, trained.weights);
}

std::string normal_form(const data::DataInfo& info) {
  return data::info_json(data::info_from_json(data::info_json(info)));
}

// Opens the job's own data. Throws Error if its classes, columns or normalisation differ from those of the data that
// the model was trained on.
std::unique_ptr<data::Dataset> open_matching_data(const Trained& trained, const spec::Job& job) {
  auto dataset = open_data(job);
  if (trained.data && normal_form(dataset->info()) != normal_form(*trained.data)) {
    throw Error("TRAIN_DATA_CHANGED",
                "the training data has changed since this model was trained, or an older version of Sinew encoded it "
                "in another "
                "way: its classes, columns or normalisation differ",
                "restore the data, or give files for the part: sinew eval MODEL test.path=FILE needs no training data");
  }
  return dataset;
}

// Makes the job use the copy of the model file beside the weights, because the original file may no longer exist.
spec::Job with_copied_model_file(const Trained& trained, spec::Job job, Disk& disk) {
  const std::string own = model::model_file_name(job.model.name);
  const std::string beside = parent_of(trained.weights) + "/" + own;
  if (own.empty() || trained.checkpoint || !disk.exists(beside)) return job;
  for (std::string* library : {&job.loss.library, &job.data.library}) {
    if (*library == job.model.file) *library = beside;
  }
  job.model.file = beside;
  return job;
}

}  // namespace

Trained find_trained(const std::string& given, Disk& disk) {
  std::string path = given;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  if (!disk.exists(path))
    throw Error("WEIGHTS_NOT_FOUND", "there is no " + path,
                "give a run, a model directory or a checkpoint; sinew runs lists the runs");
  if (path.ends_with("/model.safetensors")) path = parent_of(path);
  if (disk.exists(path + "/manifest.json")) return from_checkpoint(path, disk);
  if (disk.exists(path + "/model.json")) return from_model_directory(path, disk);
  if (disk.exists(rundir::file_in(path, rundir::kResolvedFile))) return from_run(path, disk);
  throw Error(
      "WEIGHTS_NOT_FOUND", path + " is no run, model directory or checkpoint",
      "a run holds resolved.yaml, a model directory model.json and model.safetensors, a checkpoint manifest.json");
}

std::optional<double> threshold_of(const Trained& trained, const spec::Job& job) {
  if (trained.threshold || job.threshold.value <= 0) return trained.threshold;
  return score_of(job.threshold.value);
}

data::DataInfo training_data(const Trained& trained, const spec::Job& job) {
  if (trained.data) return *trained.data;
  // Uses the original job except for data.train. A data.val or data.test that is given now must not change the split of
  // the training data.
  spec::Job original = spec::read_job(trained.job_yaml, trained.weights).job;
  original.data.train = job.data.train;
  return open_data(original)->info();
}

std::unique_ptr<data::Dataset> open_samples(const Trained& trained, const spec::Job& job,
                                            const spec::DataSource& source, bool labelled, Disk& disk) {
  const data::DataInfo known = training_data(trained, job);
  if (known.format != "library") return data::open_inference_data(job.data, known, source, labelled);
  return model::open_library_inputs(with_copied_model_file(trained, job, disk), known, source, labelled);
}

AppliedModel apply_model(const Trained& trained, const spec::Job& job, std::unique_ptr<data::Dataset> dataset,
                         Disk& disk) {
  AppliedModel applied;
  applied.job =
      resolve(without_training(with_copied_model_file(trained, job, disk)), dataset->info(), this_machine()).job;
  applied.dataset = std::move(dataset);
  applied.prefetcher = std::make_unique<data::Prefetcher>(
      *applied.dataset, applied.job.trainer.seed, *applied.job.data.prefetch_threads, applied.job.data.prefetch_bytes);
  applied.reducer = make_local_reducer();
  EngineOptions options;
  options.job = applied.job;
  options.dataset = applied.dataset.get();
  options.prefetcher = applied.prefetcher.get();
  options.reducer = applied.reducer.get();
  applied.engine = std::make_unique<Engine>(options);
  load_weights(trained, applied.engine->state(), disk);
  applied.engine->state_replaced();
  applied.engine->use_threshold(threshold_of(trained, job));
  return applied;
}

LoadedModel load_model(const Trained& trained, const spec::Job& job, Disk& disk) {
  LoadedModel loaded;
  loaded.data = training_data(trained, job);
  loaded.threshold = threshold_of(trained, job);
  loaded.job = resolve(without_training(with_copied_model_file(trained, job, disk)), loaded.data, this_machine()).job;
  loaded.outputs = outputs_for(loaded.job.loss.name, loaded.data);
  loaded.model = model::make_model(loaded.job.model, loaded.data, loaded.outputs, loaded.job.trainer.seed);
  TrainingState state = initial_state(loaded.job, *loaded.model, torch::MemoryFormat::Contiguous);
  load_weights(trained, state, disk);
  const auto& weights = state.ema.empty() ? state.parameters : state.ema;
  for (size_t p = 0; p < weights.size(); ++p) loaded.model->share(p, weights[p].tensor);
  const torch::NoGradGuard no_grad;
  const auto buffers = loaded.model->buffers();
  for (size_t b = 0; b < buffers.size(); ++b) buffers[b].tensor.copy_(state.buffers[b].tensor);
  loaded.model->set_training(false);
  return loaded;
}

Evaluation evaluate(const Trained& trained, const spec::Job& job, data::Split split, Disk& disk) {
  const spec::DataSource& named = split == data::Split::val ? job.data.val : job.data.test;
  const bool taken = split == data::Split::val ? job.data.takes_val() : job.data.split_test > 0;
  if (split != data::Split::train && !named.given() && !taken) {
    const std::string name = data::to_string(split),
                      other = job.data.val.given() || job.data.takes_val() ? "val" : "train";
    throw Error("EVALUATION_NO_DATA", "the job has no " + name + " data",
                "give files: " + name + ".path=FILE (idx and npy: " + name + ".images=FILE " + name +
                    ".labels=FILE), or choose another split: --split " + other);
  }
  const bool alone = split != data::Split::train && named.given();
  auto dataset = alone ? open_samples(trained, job, named, /*labelled=*/true, disk)
                       : open_matching_data(trained, with_copied_model_file(trained, job, disk));
  const data::Split served = alone ? data::Split::test : split;
  if (dataset->size(served) == 0)
    throw Error("EVALUATION_NO_DATA", "the " + data::to_string(split) + " split of the job's data is empty",
                "give more data, or a larger share");
  AppliedModel applied = apply_model(trained, job, std::move(dataset), disk);
  EvaluationResult result = applied.engine->evaluate(served);
  const data::DataInfo& info = applied.dataset->info();
  return {.metrics = std::move(result.metrics),
          .by_class =
              result.confusion.empty() ? std::vector<ClassQuality>() : class_qualities(result.confusion, info.classes),
          .confusion = std::move(result.confusion),
          .thresholds = std::move(result.thresholds),
          .class_names = info.class_names,
          .classes = info.classes,
          .samples = result.samples,
          .skipped = result.skipped.count,
          .skipped_names = std::move(result.skipped.names),
          .notes = info.notes,
          .threshold = result.threshold};
}

}  // namespace sinew::train
