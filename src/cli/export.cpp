// `sinew export` writes a trained model for programs other than Sinew.
#include <string>

#include "cli/options.h"
#include "cli/programs.h"

namespace sinew::cli {

int run_export(const Arguments& arguments) {
  task::Export task;
  std::string root = "runs";
  Options options("export", "A trained model for other programs");
  options
      .about(
          "Writes a new directory, which appears only after the export was compared with the trained model:\n"
          "  onnx          model.onnx with the preparation of samples inside: raw images, or the columns of a table\n"
          "  torchscript   model.pt for PyTorch and libtorch; takes raw images or arrays, and encoded tables\n"
          "  pt2           model.pt2 for torch.export.load; takes the same as torchscript\n"
          "  safetensors   model.safetensors and config.json\n"
          "A README.md says what the model is and how to use it.")
      .argument("MODEL", task.model, kModelHelp)
      .choice("--to", task.format, {"onnx", "torchscript", "pt2", "safetensors"}, "the format; by default onnx")
      .text("-o, --output", "DIR", task.output, "the new directory; by default the job's name and the format")
      .text("--root", "DIR", root, "where runs are found by name")
      .example("sinew export last --to onnx -o flowers-onnx");
  if (!options.parse(arguments)) return kDone;
  if (task.format.empty()) task.format = "onnx";
  task.model = path_of_model(root, task.model);
  return become_worker(task, task.model);
}

}  // namespace sinew::cli
