// `sinew inspect` shows the contents of a model file.
#include <cstdio>

#include "base/disk.h"
#include "base/joined.h"
#include "base/printable.h"
#include "checkpoint/checkpoint.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/programs.h"
#include "program/program.h"

namespace sinew::cli {
namespace {

// Prints a line to standard output. Replaces control characters, because names and texts come from files of any origin.
void line(const char* what, const std::string& name, const std::string& text) {
  std::printf("%-11s %-24s %s\n", what, printable(name).c_str(), printable(text).c_str());
}

void show_program(const std::string& path) {
  const program::Program program = program::read_program(path);
  std::printf("%s: a program of torch.export, torch %s, schema %lld.%lld\n", path.c_str(),
              printable(program.torch_version).c_str(), static_cast<long long>(program.schema_version[0]),
              static_cast<long long>(program.schema_version[1]));
  for (const program::Fact& fact : program::facts_of(program)) line(fact.what, fact.name, fact.text);
}

void show_safetensors(const std::string& path) {
  const auto weights = checkpoint::read_weights(system_disk(), path);
  if (!weights) throw Error("MODEL_DAMAGED", weights.error(), "copy the file again");
  if (!weights->remark.empty()) std::fprintf(stderr, "warning: %s\n", weights->remark.c_str());
  const checkpoint::TensorFile* file = &weights->file;
  int64_t numbers = 0;
  for (const auto& [name, array] : file->tensors) numbers += array.count();
  std::printf("%s: %zu tensors, %s numbers\n", path.c_str(), file->tensors.size(),
              program::grouped_digits(numbers).c_str());
  for (const auto& [name, array] : file->tensors) {
    line(std::string(name_of(array.dtype)).c_str(), name, "[" + joined_numbers(array.shape, ", ") + "]");
  }
}

void show_script(const std::string& path) {
  const program::TorchScriptFile file = program::read_torchscript_file(path);
  std::printf("%s: TorchScript, %zu files of code, %s tensors of %s bytes\n", path.c_str(), file.code_files.size(),
              program::grouped_digits(file.tensors).c_str(),
              program::grouped_digits(static_cast<int64_t>(file.tensor_bytes)).c_str());
}

void show_library(const std::string& path) {
  std::printf("%s: a shared object\n", path.c_str());
  for (const auto& [name, value] : program::read_library_info(path)) line("built for", name, value);
}

}  // namespace

int run_inspect(const Arguments& arguments) {
  std::string path;
  std::vector<std::string> overrides;
  Options options("inspect", "What a model file holds, and whether it can be trained here");
  options
      .about(
          "  .pt2            a program of torch.export: inputs, outputs, parameters, buffers, operators, FLOPs\n"
          "  .pt             a TorchScript module: the same without FLOPs, and what tracing has fixed\n"
          "  .so             a library of your own C++: what it was built for and what it offers\n"
          "  .yaml           the model of a job file, as it would be built for its data\n"
          "  .safetensors    its tensors; also of a model directory and of a registered model\n"
          "  a directory     a checkpoint, or the newest intact one of a run")
      .argument("FILE", path, "a model file, a job file, a checkpoint, a run, or a registered model by its name")
      .rest("key=value", overrides, "overrides of a job file")
      .notes("Exit code 0: it can be trained; 4: it cannot, with each reason.")
      .example("sinew inspect net.pt2");
  if (!options.parse(arguments)) return kDone;
  const bool job = path.ends_with(".yaml") || path.ends_with(".yml") || path.ends_with(".json");
  if (!overrides.empty() && !job) options.refuse("only a job file takes overrides");
  if (!system_disk().exists(path)) path = path_of_model("runs", path);
  if (system_disk().exists(path + "/model.safetensors")) path += "/model.safetensors";
  if (job) {
    if (!load_training(path, overrides, "sinew inspect")) return kUsage;
    return become_worker(task::Inspect{path, overrides}, path);
  }
  if (path.ends_with(".safetensors")) {
    show_safetensors(path);
    return kDone;
  }
  if (path.ends_with(".pt2")) {
    show_program(path);
  } else if (path.ends_with(".pt") || path.ends_with(".pth")) {
    show_script(path);
  } else if (path.ends_with(".so")) {
    show_library(path);
  } else if (system_disk().exists(path + "/.")) {
    return run_checkpoint({"show", path});
  } else {
    throw UsageError("MODEL_UNKNOWN", path + " is not a model file that sinew knows",
                     "a .pt2, .pt, .so, .safetensors, a job file, a checkpoint or a run");
  }
  std::fflush(stdout);
  return become_worker(task::Inspect{path, {}}, path);
}

}  // namespace sinew::cli
