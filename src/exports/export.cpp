#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hex.h"
#include "base/json_text.h"
#include "base/number_text.h"
#include "exports/exports.h"
#include "exports/facts.h"
#include "exports/pt2.h"
#include "exports/samples.h"
#include "exports/script.h"
#include "exports/scripts.h"

namespace sinew::exports {
namespace {

using Json = nlohmann::ordered_json;
using FileList = std::vector<std::pair<std::string, std::string>>;

constexpr int64_t kManySamples = 64, kFewSamples = 7;

// A directory that appears under its name only when it is complete. The destructor removes what is not.
class NewDirectory {
 public:
  NewDirectory(const std::string& directory, Disk& disk) : final_(directory), disk_(disk) {
    while (final_.size() > 1 && final_.ends_with('/')) final_.pop_back();
    if (disk_.exists(final_))
      throw Error("EXPORT_EXISTS", final_ + " exists already", "choose another directory with -o, or remove it");
    const size_t slash = final_.rfind('/');
    parent_ = slash == std::string::npos ? "." : slash == 0 ? "/" : final_.substr(0, slash);
    disk_.make_directories(parent_);
    hidden_ = parent_ + "/." + final_.substr(slash == std::string::npos ? 0 : slash + 1) + "." + random_hex(4);
    disk_.make_directory(hidden_);
  }
  ~NewDirectory() {
    try {
      if (!hidden_.empty()) disk_.remove_all(hidden_);
    } catch (const Error&) {  // the caller gets the first error
    }
  }
  NewDirectory(const NewDirectory&) = delete;
  NewDirectory& operator=(const NewDirectory&) = delete;

  std::string path(const std::string& file) const { return hidden_ + "/" + file; }
  void write(const std::string& file, std::string_view text) { write_durably(disk_, path(file), text); }
  void publish() {
    disk_.sync_directory(hidden_);
    disk_.rename(hidden_, final_);
    hidden_.clear();
    disk_.sync_directory(parent_);
  }

 private:
  std::string final_, parent_, hidden_;
  Disk& disk_;
};

// What all formats need.
struct Subject {
  const train::Trained& trained;
  train::LoadedModel loaded;
  Weights weights;
  Origin origin;
  Outcomes outcomes;
};

std::string sentence_of_check(const char* with, int64_t count, const std::string& what, double difference) {
  return "Compared with the trained model on " + std::to_string(count) + " made-up " + what + " by " + with +
         ": the largest difference is " + rounded_text(difference, 2) + ".";
}

Json facts_of(const Subject& subject) {
  Json facts = {{"format", 1},
                {"job", subject.loaded.job.name},
                {"job_sha256", subject.origin.job_sha256},
                {"architecture", subject.loaded.job.model.name},
                {"loss", subject.loaded.job.loss.name},
                {"task", subject.outcomes.classes ? "classification" : "regression"},
                {"input", input_facts(subject.loaded)}};
  if (subject.loaded.data.task == data::Task::next_token) facts["task"] = "next_token";
  if (!subject.origin.run.empty()) facts["run"] = subject.origin.run;
  if (subject.origin.step) facts["step"] = *subject.origin.step;
  if (!subject.origin.metric.empty()) facts["metric"] = subject.origin.metric;
  if (subject.outcomes.classes) {
    facts["classes"] = subject.outcomes.names;
    if (subject.outcomes.threshold) facts["threshold"] = train::probability_of(*subject.outcomes.threshold);
  } else {
    facts["target_mean"] = subject.outcomes.mean;
    facts["target_std"] = subject.outcomes.std;
  }
  return facts;
}

// ---- ONNX ----------------------------------------------------------------------------------------------------------

Json check_part(const torch::Tensor& tensor) {
  static const std::map<torch::ScalarType, const char*> names = {
      {torch::kUInt8, "uint8"}, {torch::kInt8, "int8"},       {torch::kInt16, "int16"},
      {torch::kInt32, "int32"}, {torch::kInt64, "int64"},     {torch::kFloat32, "float32"},
      {torch::kBool, "bool"},   {torch::kFloat16, "float16"}, {torch::kFloat64, "float64"}};
  const torch::Tensor values = tensor.contiguous();
  const std::span bytes(static_cast<const unsigned char*>(values.const_data_ptr()), values.nbytes());
  return {{"dtype", names.at(values.scalar_type())}, {"shape", values.sizes().vec()}, {"hex", hex_of(bytes)}};
}

// The document check.json: samples, and what the trained model computes for them.
std::string check_document(const Subject& subject, const Samples& samples, const Results& results) {
  Json document;
  for (const auto& [name, value] : samples.raw)
    document["inputs"][name] = value.tensor.defined() ? check_part(value.tensor) : Json{{"texts", value.texts}};
  const bool one = !subject.outcomes.classes && subject.outcomes.width == 1;
  document["outputs"][subject.outcomes.classes ? "probabilities" : "prediction"] =
      check_part(one ? results.numbers.reshape({-1}) : results.numbers);
  if (subject.outcomes.classes) document["outputs"]["label"] = {{"texts", results.names}};
  return dump_json(document) + "\n";
}

double compare_graph(Subject& subject, const onnx::Model& graph, int64_t count, std::string& what) {
  const Samples samples = make_samples(subject.loaded, count);
  const Results wanted = results_of(subject.loaded, samples.prepared);
  const auto values = run_graph(graph, samples.raw);
  what = samples.what;
  return compare(subject.outcomes, values.at(graph.outputs.front().name).tensor, wanted.numbers, "onnx");
}

std::string onnx_usage(const Subject& subject, const onnx::Model& graph) {
  std::string text = "import numpy, onnxruntime\n\nsession = onnxruntime.InferenceSession(\"model.onnx\")\n";
  if (graph.inputs.size() == 1 && !graph.inputs[0].sample.empty()) {
    std::string shape = "(batch";
    for (const int64_t size : graph.inputs[0].sample) shape += ", " + std::to_string(size);
    text += "inputs = {" + Json(graph.inputs[0].name).dump() + ": samples}  # " +
            std::string(onnx::name_of(graph.inputs[0].element)) + " " + shape + ")\n";
  } else {
    text += "inputs = {  # one array [batch] for each column\n";
    for (size_t i = 0; i < graph.inputs.size() && i < 3; ++i)
      text += "    " + dump_json(Json(graph.inputs[i].name)) + ": numpy.array([...], dtype=" +
              (graph.inputs[i].element == onnx::Element::text ? "object),\n" : "numpy.float64),\n");
    if (graph.inputs.size() > 3) text += "    ...\n";
    text += "}\n";
  }
  return text + (subject.outcomes.classes ? "probabilities, label = " : "(prediction,) = ") +
         "session.run(None, inputs)\n";
}

Made export_onnx(Subject& subject, NewDirectory& to) {
  onnx::Model graph = graph_of(subject.loaded, subject.weights);
  const bool table = !subject.loaded.data.input_shape.empty() && subject.loaded.data.input_shape.size() == 1;
  const int64_t count = table && subject.loaded.data.task != data::Task::next_token ? kManySamples : kFewSamples;
  std::string what;
  const double difference = compare_graph(subject, graph, count, what);
  Json outputs;
  for (const char* name : {"probabilities", "label", "prediction"}) {
    for (const onnx::Port& port : graph.outputs) {
      if (port.name.starts_with(name)) outputs[name] = port.name;
    }
  }
  const Json facts = facts_of(subject);
  for (const auto& [key, value] : facts.items())
    graph.metadata.emplace_back("sinew." + key, value.is_string() ? value.get<std::string>() : dump_json(value));
  graph.metadata.emplace_back("sinew.outputs", dump_json(outputs));
  graph.help = "Trained by Sinew: " + subject.loaded.job.model.name + ". The preparation of samples is in the graph.";
  const Samples kept = make_samples(subject.loaded, kFewSamples);
  to.write("model.onnx", onnx::bytes_of(graph));
  to.write("predict.py", kPredictScript);
  to.write("check.json", check_document(subject, kept, results_of(subject.loaded, kept.prepared)));
  const std::string checked = sentence_of_check("Sinew's own reading of the graph", count, what, difference) +
                              " `python predict.py --check` repeats this with onnxruntime and the file itself.";
  const FileList files = {{"model.onnx", "the model, ONNX opset 18; samples are prepared inside the graph"},
                          {"predict.py", "reads files and prints predictions; needs onnxruntime and numpy"},
                          {"check.json", "samples with the trained model's results, for `predict.py --check`"}};
  to.write("README.md", model_card(subject.loaded, subject.origin, files, onnx_usage(subject, graph), checked));
  return {{"model.onnx", "predict.py", "check.json", "README.md"}, checked, "python predict.py DATA"};
}

// ---- TorchScript and torch.export ----------------------------------------------------------------------------------

// A format that holds the operators of libtorch.
struct TorchFormat {
  const char *name, *file, *what;
  std::string (*bytes)(const torch::jit::Module& module, const torch::Tensor& example, const Texts& about);
  torch::Tensor (*run)(const std::string& path, const torch::Tensor& input);
  const char* load;  // Python that loads the model and its facts
};

std::string script_bytes(const torch::jit::Module& module, const torch::Tensor& /*example*/, const Texts& about) {
  return script_file(module, about);
}
torch::Tensor run_script(const std::string& path, const torch::Tensor& input) {
  const torch::NoGradGuard no_grad;
  return torch::jit::load(path).forward({input}).toTensor();
}

constexpr TorchFormat kTorchScript = {
    "torchscript",
    "model.pt",
    "a TorchScript module: torch.jit.load, or torch::jit::load in C++",
    script_bytes,
    run_script,
    "import json, torch\n\nabout = {\"sinew.json\": \"\"}\nmodel = torch.jit.load(\"model.pt\", _extra_files=about)\n"};
constexpr TorchFormat kProgram = {"pt2",
                                  "model.pt2",
                                  "a program of torch.export: torch.export.load",
                                  program_file,
                                  model::run_program,
                                  "import json, torch\n\nabout = {\"sinew.json\": \"\"}\n"
                                  "model = torch.export.load(\"model.pt2\", extra_files=about).module()\n"};

std::string torch_usage(const Subject& subject, const TorchFormat& format, bool table) {
  std::string usage = format.load;
  usage += "facts = json.loads(about[\"sinew.json\"])  # classes, inputs\n";
  if (table) usage += "# takes encoded rows: config.json names their columns, and says how they are encoded\n";
  if (subject.loaded.data.task == data::Task::next_token) usage += "# takes tokens: indices into facts[\"classes\"]\n";
  return usage + "with torch.no_grad():\n    " + (subject.outcomes.classes ? "probabilities" : "prediction") +
         " = model(samples)\n";
}

Made export_torch(Subject& subject, const TorchFormat& format, NewDirectory& to) {
  const Samples samples = make_samples(subject.loaded, kFewSamples);
  const bool table = !samples.array.defined();
  const torch::Tensor& given = table ? samples.prepared : samples.array;
  const torch::jit::Module module = script_of(subject.loaded, subject.weights);
  to.write(format.file, format.bytes(module, given, {{"sinew.json", dump_json(facts_of(subject), 1)}}));
  double difference = 0;
  for (const int64_t count : {kFewSamples, int64_t{1}}) {  // the batch is no constant of the file
    const Results wanted = results_of(subject.loaded, samples.prepared.narrow(0, 0, count));
    const torch::Tensor made = format.run(to.path(format.file), given.narrow(0, 0, count));
    difference = std::max(difference, compare(subject.outcomes, made, wanted.numbers, format.name));
  }
  const std::string checked = sentence_of_check("libtorch, from the file", kFewSamples, samples.what, difference);
  const Json config = {{"input_names", subject.loaded.data.input_names},
                       {"preparation", Json::parse(subject.loaded.data.preparation)}};
  to.write("config.json", dump_json(config, 1) + "\n");
  const FileList files = {{format.file, format.what},
                          {"config.json", "the names of encoded columns, and how samples were prepared"}};
  to.write("README.md",
           model_card(subject.loaded, subject.origin, files, torch_usage(subject, format, table), checked));
  return {{format.file, "config.json", "README.md"}, checked, "the code in README.md"};
}

// ---- safetensors ---------------------------------------------------------------------------------------------------

DType dtype_in_file(const torch::Tensor& tensor) {
  return tensor.scalar_type() == torch::kInt64 ? DType::i64 : DType::f32;
}

// Reads the file back and compares every bit.
void check_tensors(const std::string& path, const Weights& weights, Disk& disk) {
  const auto read = checkpoint::read_safetensors(disk, path);
  bool same = read && read->tensors.size() == weights.all().size();
  for (const auto& [name, tensor] : weights.all()) {
    if (!same) break;
    const auto found = read->tensors.find(name);
    same = found != read->tensors.end() && found->second.bytes.size() == tensor.nbytes() &&
           std::memcmp(found->second.bytes.data(), tensor.const_data_ptr(), tensor.nbytes()) == 0;
  }
  if (!same)
    throw Error("EXPORT_DIFFERS", "the safetensors export does not hold the weights of the trained model",
                "try again; if it fails again, check the disk");
}

Made export_tensors(Subject& subject, NewDirectory& to, Disk& disk) {
  std::vector<checkpoint::TensorBytes> tensors;
  for (const auto& [name, tensor] : subject.weights.all()) {
    tensors.push_back({name, dtype_in_file(tensor), Shape(tensor.sizes().begin(), tensor.sizes().end()),
                       std::span(static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes())});
  }
  const std::string path = to.path("model.safetensors");
  checkpoint::write_safetensors(disk, path, tensors, {{"format", "pt"}});
  check_tensors(path, subject.weights, disk);
  const spec::ModelOptions& options = subject.loaded.job.model;
  Json config = facts_of(subject);
  config["model"] = {{"name", options.name},
                     {"hidden", options.hidden},
                     {"channels", options.channels},
                     {"activation", options.activation},
                     {"norm", options.norm},
                     {"dropout", options.dropout},
                     {"width", options.width},
                     {"stem", options.stem},
                     {"embedding", options.embedding},
                     {"hidden_size", options.hidden_size},
                     {"layers", options.layers},
                     {"bidirectional", options.bidirectional},
                     {"outputs", subject.loaded.outputs}};
  if (options.name == "tabular") {
    const spec::TabularOptions& parts = options.tabular;
    config["model"].update(Json{{"input_scaling", parts.input_scaling},
                                {"numeric_embedding", parts.numeric_embedding},
                                {"numeric_embedding_size", parts.numeric_embedding_size},
                                {"frequencies", parts.frequencies},
                                {"max_one_hot", parts.max_one_hot},
                                {"category_embedding", parts.category_embedding},
                                {"scaling_layer", parts.scaling_layer},
                                {"parametric_activation", parts.parametric_activation},
                                {"parametrization", parts.parametrization},
                                {"clip_predictions", parts.clip_predictions}});
  }
  config["input_shape"] = subject.loaded.data.input_shape;
  config["input_names"] = subject.loaded.data.input_names;
  config["preparation"] = Json::parse(subject.loaded.data.preparation);
  to.write("config.json", dump_json(config, 1) + "\n");
  const std::string checked = "Read back from the disk: every bit of the " + std::to_string(tensors.size()) +
                              " tensors is that of the trained model.";
  const FileList files = {{"model.safetensors", "weights and buffers by name, float32"},
                          {"config.json", "architecture, classes, and how samples are prepared"}};
  const std::string usage =
      "import json\nfrom safetensors.torch import load_file\n\nweights = load_file(\"model.safetensors\")\n"
      "config = json.load(open(\"config.json\"))\n";
  to.write("README.md", model_card(subject.loaded, subject.origin, files, usage, checked));
  return {{"model.safetensors", "config.json", "README.md"}, checked, "the code in README.md"};
}

void refuse_what_cannot_be_exported(const spec::Job& job) {
  const std::string own = model::model_file_name(job.model.name);
  if (!own.empty())
    throw Error("EXPORT_UNSUPPORTED",
                "the model comes from your own file (model: " + job.model.name +
                    "), and sinew exports only its own architectures",
                "use " + own + " in model/ of the run, which has the trained weights");
  if (job.data.format == "library")
    throw Error("EXPORT_UNSUPPORTED", "the data comes from a library, whose preparation an export cannot hold",
                "use model.safetensors in model/ of the run");
}

}  // namespace

Made export_model(const train::Trained& trained, const spec::Job& job, const Wanted& wanted, Disk& disk) {
  refuse_what_cannot_be_exported(job);
  model::use_one_thread();
  train::LoadedModel loaded = train::load_model(trained, job, disk);
  Weights weights(*loaded.model, loaded.job.model, loaded.data);
  Outcomes outcomes = outcomes_of(loaded);
  Subject subject{trained, std::move(loaded), std::move(weights), origin_of(trained, job, disk), std::move(outcomes)};
  NewDirectory to(wanted.directory, disk);
  Made made = wanted.format == "onnx"          ? export_onnx(subject, to)
              : wanted.format == "torchscript" ? export_torch(subject, kTorchScript, to)
              : wanted.format == "pt2"         ? export_torch(subject, kProgram, to)
                                               : export_tensors(subject, to, disk);
  to.publish();
  return made;
}

}  // namespace sinew::exports
