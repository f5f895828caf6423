#include "train/resolve.h"

#include <fstream>

#include "base/error.h"
#include "base/joined.h"
#include "base/proc.h"
#include "model/model.h"
#include "train/loss.h"

namespace sinew::train {
namespace {

constexpr const char* kUntilMeasured = "as with auto; a training measures it before its first step";

bool is_convolutional(const spec::Job& job) {
  return job.model.name == "cnn" || job.model.name.starts_with("resnet");
}

// Decides by measured ratios of two CPU times of a step in fp32: that with channels_last, divided by that with
// contiguous:
// - On a CPU without bfloat16 in hardware (Cascade Lake), ResNet-18 had a ratio of 1.3 to 1.4 on images of 32 and 64
// pixels, 1 on 128 and 0.8 on 224. The 1x1 convolutions of ResNet-50 had 0.8 on 64 already.
// - On a CPU with bfloat16 in hardware (Zen 4), the ratio depends on the width of the first blocks' feature maps. It is
// 1.3 for a width of 8, and 0.8 from 16 on.
bool channels_last_is_faster(const spec::Job& job, const data::DataInfo& data, const Machine& machine) {
  if (!is_convolutional(job)) return false;
  if (!job.model.name.starts_with("resnet")) return false;
  if (job.model.name == "resnet50" || job.trainer.precision == "bf16") return true;
  if (data.input_shape.size() != 3) return false;
  const int64_t side = std::min(data.input_shape[1], data.input_shape[2]);
  if (!machine.fast_bfloat16) return side >= 128;
  return side / (model::has_small_stem(job.model, data.input_shape) ? 1 : 4) >= 16;
}

bool is_open(const std::string& value) {
  return value == "auto" || value == spec::kFastest;
}

void resolve_trainer(Resolved& resolved, const data::DataInfo& data, const Machine& machine) {
  auto& trainer = resolved.job.trainer;
  auto& reasons = resolved.reasons;
  if (!trainer.shards) {
    trainer.shards = data::default_shards(trainer.batch_size);
    reasons["trainer.shards"] = "from trainer.batch_size alone: 8, or fewer if a shard would have less than 16 samples";
  }
  if (trainer.device == "auto") {
    trainer.device = "cpu";
    reasons["trainer.device"] = "the only device that this version trains on";
  }
  if (is_open(trainer.precision)) {
    const bool low = machine.fast_bfloat16 && is_convolutional(resolved.job),
               measured = trainer.precision == spec::kFastest;
    trainer.precision = low ? "bf16" : "fp32";
    reasons["trainer.precision"] = measured ? kUntilMeasured
                                   : low    ? "this device has bfloat16 multiplication in hardware"
                                            : "bfloat16 is not faster here";
  }
  if (is_open(trainer.memory_format)) {
    const bool measured = trainer.memory_format == spec::kFastest;
    trainer.memory_format = usual_memory_format(resolved.job, data, machine);
    reasons["trainer.memory_format"] =
        measured ? kUntilMeasured : "faster for this model on images of this size on this machine";
  }
}

void resolve_monitors(Resolved& resolved, bool has_validation) {
  spec::Job& job = resolved.job;
  if (job.checkpoint.monitor == "auto") {
    if (job.objective) {
      job.checkpoint.monitor = job.objective->metric;
      resolved.reasons["checkpoint.monitor"] = "the objective's metric";
    } else if (!job.early_stopping.monitor.empty()) {
      job.checkpoint.monitor = job.early_stopping.monitor;
      resolved.reasons["checkpoint.monitor"] = "early stopping's metric";
    } else {
      job.checkpoint.monitor = has_validation ? "val/loss" : "train/loss";
      resolved.reasons["checkpoint.monitor"] = has_validation ? "the validation loss" : "there is no validation data";
    }
  }
  // If both monitors are the same metric, a direction given for early stopping applies to both.
  if (job.checkpoint.mode == "auto" && job.early_stopping.mode != "auto" &&
      job.checkpoint.monitor == job.early_stopping.monitor) {
    job.checkpoint.mode = job.early_stopping.mode;
    resolved.reasons["checkpoint.mode"] = "early stopping's";
  }
  const auto direction = [&](std::string& mode, const std::string& metric, const char* key) {
    if (mode != "auto" || metric.empty()) return;
    mode = report::lower_is_better(metric) ? "min" : "max";
    resolved.reasons[key] = metric + (mode == "min" ? ": lower is better" : ": higher is better");
  };
  direction(job.checkpoint.mode, job.checkpoint.monitor, "checkpoint.mode");
  direction(job.early_stopping.mode, job.early_stopping.monitor, "early_stopping.mode");
}

// Throws Error with the list of known metrics if no evaluation of this job computes `metric`.
void require_metric(const std::string& metric, const char* key, const spec::Job& job, const data::DataInfo& data) {
  if (metric.empty()) return;
  std::vector<std::string> known;
  if (data.val_size > 0) {
    for (const std::string& name : MetricCounter::names(job.loss.name, data)) known.push_back("val/" + name);
  }
  known.push_back("train/loss");
  if (data.task != data::Task::regression && job.loss.name != "program") known.push_back("train/accuracy");
  if (std::find(known.begin(), known.end(), metric) != known.end()) return;
  const std::string list = joined(known, ", ");
  throw Error("TRAIN_METRIC_UNKNOWN",
              std::string(key) + " names the metric '" + metric + "', which this job does not compute" +
                  (data.val_size == 0 && metric.starts_with("val/") ? " (there is no validation data)" : ""),
              data.val_size == 0 ? "give data.val or data.split.val, or use one of: " + list : "use one of: " + list);
}

void check_threshold(const spec::Job& job, const data::DataInfo& data) {
  if (!job.threshold.given()) return;
  if (data.task != data::Task::classification || data.classes != 2 || job.loss.name == "program")
    throw Error("TRAIN_THRESHOLD_NOT_BINARY",
                std::string("threshold needs a model that tells two classes apart, but ") +
                    (data.task == data::Task::regression   ? "this one predicts numbers"
                     : data.task == data::Task::next_token ? "this one predicts text"
                     : data.classes != 2                   ? "the data has " + std::to_string(data.classes) + " classes"
                                                           : "this one returns only its loss"),
                "delete threshold");
  if (!job.threshold.metric.empty() && data.val_size == 0)
    throw Error("TRAIN_THRESHOLD_NO_DATA",
                "threshold: " + job.threshold.metric + " is chosen on validation data, and the job has none",
                "give data.val, data.split.val or data.split.folds; or a fixed threshold.value");
}

}  // namespace

Machine this_machine() {
  Machine machine;
  machine.cores = usable_cores();
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("flags")) {
      machine.fast_bfloat16 =
          line.find("avx512_bf16") != std::string::npos || line.find("amx_bf16") != std::string::npos;
      break;
    }
  }
  return machine;
}

std::string usual_memory_format(const spec::Job& job, const data::DataInfo& data, const Machine& machine) {
  return channels_last_is_faster(job, data, machine) ? "channels_last" : "contiguous";
}

Resolved resolve(const spec::Job& job, const data::DataInfo& data, const Machine& machine) {
  Resolved resolved{job, job, data.reasons};
  resolved.job.data.format = data.format;
  if (job.data.trains_folds()) {
    resolved.job.data.fold = 0;
    resolved.reasons["data.split.fold"] = "one training has one fold: the first";
  }
  std::string reason;
  resolved.job.loss.name = resolve_loss(job, data, reason);
  if (!reason.empty()) resolved.reasons["loss.name"] = reason;
  if (job.loss.name == "library" && job.loss.library.empty()) resolved.job.loss.library = job.model.file;
  if (data.format == "library" && job.data.library.empty()) resolved.job.data.library = job.model.file;
  check_threshold(resolved.job, data);
  resolve_trainer(resolved, data, machine);
  resolve_monitors(resolved, data.val_size > 0);
  if (job.objective) require_metric(job.objective->metric, "objective", resolved.job, data);
  require_metric(resolved.job.early_stopping.monitor, "early_stopping.monitor", resolved.job, data);
  require_metric(resolved.job.checkpoint.monitor, "checkpoint.monitor", resolved.job, data);
  if (job.data.task == "auto" && data.task != data::Task::next_token) {
    resolved.job.data.task = data.task == data::Task::regression ? "regression" : "classification";
  }
  if (job.model.stem == "auto" && job.model.name.starts_with("resnet") && data.input_shape.size() == 3) {
    const bool small = data.input_shape[1] <= 64 && data.input_shape[2] <= 64;
    resolved.job.model.stem = small ? "cifar" : "imagenet";
    resolved.reasons["model.stem"] = small ? "images of at most 64x64" : "images larger than 64x64";
  }
  if (job.model.activation == "auto") {
    const bool tabular = job.model.name == "tabular", regression = data.task == data::Task::regression;
    resolved.job.model.activation = model::activation_of(job.model, data.task);
    resolved.reasons["model.activation"] = !tabular     ? "the usual one"
                                           : regression ? "the target is a number"
                                                        : "the target is a class";
  }
  resolved.written = resolved.job;
  if (!resolved.job.trainer.lanes) {
    resolved.job.trainer.lanes = std::min(machine.cores, *resolved.job.trainer.shards);
  }
  if (!resolved.job.data.prefetch_threads) resolved.job.data.prefetch_threads = std::max<int64_t>(1, machine.cores);
  resolved.reasons["trainer.lanes"] = "one for each core of the machine; never changes the result";
  resolved.reasons["data.prefetch.threads"] =
      "one for each core of the machine, and more while they mostly wait for files; never changes the result";
  return resolved;
}

std::unique_ptr<data::Dataset> open_data(const spec::Job& job) {
  return job.data.format == "library" ? model::open_library_data(job) : data::open_dataset(job.data, job.trainer.seed);
}

}  // namespace sinew::train
