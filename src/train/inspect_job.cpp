// Describes the model of a job before it is trained, and computes its first step.
#include <sstream>

#include "base/number_text.h"
#include "train/lone_engine.h"
#include "train/loss.h"
#include "train/resolve.h"
#include "train/train.h"

namespace sinew::train {
namespace {

std::string tensor_text(const torch::Tensor& tensor) {
  std::ostringstream text;
  text << toString(tensor.scalar_type()) << ' ' << tensor.sizes();
  return text.str();
}

std::string shape_text(const Shape& shape) {
  std::string text = "[batch";
  for (const int64_t size : shape) text += ", " + std::to_string(size);
  return text + "]";
}

// Computes the first step of the training in memory: what fails there would fail when the job is trained.
std::string first_step(const spec::Job& resolved, const data::Dataset& dataset, double rate) {
  LoneEngine lone(resolved, dataset);
  Engine& engine = lone.engine();
  engine.check_sizes();
  const StepResult result = engine.step(rate, /*want_norm=*/false);
  return "loss " + rounded_text(result.loss, 4) + " of " + std::to_string(result.samples) + " samples";
}

}  // namespace

model::FileReport inspect_job(const spec::Job& job) {
  const auto dataset = open_data(job);
  const data::DataInfo& info = dataset->info();
  Resolved decided = resolve(job, info, this_machine());
  fit_to_memory(decided, job, *dataset);
  const spec::Job& resolved = decided.job;
  const loop::Lengths lengths = loop::lengths_of(resolved, info.train_size, info.tokens_per_sample);
  const loop::Schedule schedule(resolved.scheduler, lengths);  // throws if the schedule and the end do not fit together
  loop::check_declines(resolved, lengths);
  // The engine has a model for each lane, and is gone before another one is made.
  const std::string step = first_step(resolved, *dataset, resolved.optimizer.lr * schedule.factor(0));
  const int64_t outputs = outputs_for(resolved.loss.name, info);
  const auto model = model::make_model(resolved.model, info, outputs, resolved.trainer.seed);
  model::FileReport report;
  const auto add = [&](const char* what, const std::string& name, const std::string& text) {
    report.lines.push_back(std::string(what) + "\t" + name + "\t" + text);
  };
  add("model", resolved.model.name, resolved.model.file);
  add("input", "input", std::string(name_of(info.input_dtype)) + " " + shape_text(info.input_shape));
  add("output", "-",
      outputs == 0 ? "its loss" : std::to_string(outputs) + " numbers a sample, for " + resolved.loss.name);
  int64_t numbers = 0, trained = 0;
  for (const auto& [name, tensor] : model->parameters()) {
    add("parameter", name, tensor_text(tensor) + (tensor.requires_grad() ? "" : " frozen"));
    numbers += tensor.numel();
    trained += tensor.requires_grad() ? tensor.numel() : 0;
  }
  for (const auto& [name, tensor] : model->buffers()) add("buffer", name, tensor_text(tensor));
  add("numbers", std::to_string(numbers), "in all parameters, " + std::to_string(trained) + " of them trained");
  add("step", "the first", step);
  add("shards", std::to_string(*resolved.trainer.shards), decided.reasons["trainer.shards"]);
  add("lanes", std::to_string(*resolved.trainer.lanes), decided.reasons["trainer.lanes"]);
  for (const std::string& remark : model->remarks()) add("remark", remark, "");
  return report;
}

}  // namespace sinew::train
