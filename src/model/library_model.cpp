// Makes the model and the loss of a library.
#include "base/disk.h"
#include "base/error.h"
#include "model/library.h"
#include "model/makers.h"
#include "model/module_model.h"
#include "program/program.h"

namespace sinew::model {
namespace {

library::About about(const spec::ModelOptions& options, const data::DataInfo& data, int64_t outputs) {
  library::About about;
  about.input_shape = data.input_shape;
  about.tokens = data.input_dtype == DType::i64;
  about.outputs = outputs;
  about.classes = data.classes;
  about.input_names = data.input_names;
  about.options = options_of(options.options);
  return about;
}

// Checks that evaluation is a function of the input, and that the loss can take the output. Leaves the model unchanged.
void check_evaluation(Model& model, const std::string& path, const data::DataInfo& data, int64_t outputs) {
  constexpr int64_t kSamples = 3;
  const torch::NoGradGuard no_grad;
  const RandomScope scope(random_key({7}));
  model.set_training(false);
  const torch::Tensor input = synthetic_input(data, kSamples);
  const torch::Tensor first = model.forward(input, {});
  ExpectedOutput(path, data, outputs).check(first, kSamples);
  if (!torch::equal(torch::nan_to_num(first), torch::nan_to_num(model.forward(input, {}))))
    throw Error("MODEL_NOT_REPRODUCIBLE", path + ": two evaluations of the same input give different results",
                "use torch::dropout(x, p, is_training())");
  model.set_training(true);
}

[[noreturn]] void missing_offer(const std::string& path, const char* what) {
  throw Error("LIBRARY_OFFERS_NONE", path + " offers no " + what,
              std::string("add SINEW_LIBRARY(library) { library.") + what + " = ...; }");
}

}  // namespace

std::unique_ptr<Model> make_library(const spec::ModelOptions& options, const data::DataInfo& data, int64_t outputs) {
  const OpenLibrary& opened = open_library(options.file);
  if (!opened.offers.model) missing_offer(options.file, "model");
  library::Model made = opened.offers.model(about(options, data, outputs));
  if (!made.module || !made.forward)
    throw Error("LIBRARY_MODEL_INVALID", options.file + ": its model has no module, or no forward",
                "make the model with sinew::library::model<Net>()");
  auto model = std::make_unique<ModuleModel>(std::move(made.module), std::move(made.forward), opened.digest);
  for (const auto& [name, tensor] : model->parameters()) {
    if (tensor.scalar_type() != torch::kFloat32)
      throw Error("MODEL_PARAMETER_TYPE",
                  options.file + ": parameter " + name + " is " + toString(tensor.scalar_type()) +
                      ", but parameters are trained in float32",
                  "keep parameters in float32; trainer.precision: bf16 computes in bfloat16");
  }
  if (model->parameters().empty())
    throw Error("MODEL_NO_PARAMETERS", options.file + ": its model has no parameters",
                "register them with register_module and register_parameter");
  check_storable(options.file, model->parameters());
  check_storable(options.file, model->buffers());
  check_evaluation(*model, options.file, data, outputs);
  return model;
}

LossFunction library_loss(const spec::Job& job) {
  const std::string& path = job.loss.library.empty() ? job.model.file : job.loss.library;
  const OpenLibrary& opened = open_library(path);
  if (!opened.offers.loss) missing_offer(path, "loss");
  const library::LossOfBatch loss = opened.offers.loss(options_of(job.model.options));
  return [loss, path](const torch::Tensor& outputs, const torch::Tensor& targets) {
    library::Sum sum = loss(outputs, targets);
    if (!sum.sum.defined() || sum.sum.numel() != 1 || !(sum.weight >= 0))
      throw Error("LIBRARY_LOSS_INVALID", path + ": its loss did not return one number and a weight of at least 0",
                  "return {sum over the batch, divisor}");
    return std::pair(sum.sum.reshape({}), sum.weight);
  };
}

std::string loss_identity(const spec::Job& job) {
  const bool own_file = job.loss.name == "library" && !job.loss.library.empty() && job.loss.library != job.model.file;
  return own_file ? "loss " + open_library(job.loss.library).digest : "";
}

void save_library(const std::string& file, const std::string& to) {
  write_durably(system_disk(), to, std::span(open_library(file).bytes));
}

FileReport inspect_library(const std::string& file) {
  FileReport report;
  report.problems = why_not_open(program::read_library_info(file));
  if (!report.problems.empty()) return report;
  const OpenLibrary& opened = open_library(file);
  const auto add = [&](const char* what, bool there) {
    report.lines.push_back(std::string("offers\t") + what + "\t" + (there ? "yes" : "no"));
  };
  add("model", opened.offers.model != nullptr);
  add("loss", opened.offers.loss != nullptr);
  add("data", opened.offers.data != nullptr);
  return report;
}

}  // namespace sinew::model
