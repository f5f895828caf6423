// `sinew predict` makes predictions for new samples with a trained model.
#include <string>

#include "base/disk.h"
#include "cli/options.h"
#include "cli/programs.h"

namespace sinew::cli {

int run_predict(const Arguments& arguments) {
  task::Predict task;
  task.format = "";
  std::string root = "runs";
  Options options("predict", "Predictions of a trained model for new samples");
  options
      .about(
          "Writes one row for each sample: its name, the predicted class with its probability, or the predicted number "
          "in the target's own units.\n\n"
          "DATA has the format of the training data and is prepared as it was:\n"
          "  csv, tsv, jsonl   a table with the columns the model was trained on; it needs no target column\n"
          "  idx, npy          the file of the inputs alone; npz, cifar: as in training\n"
          "  images            an image, a folder of images at any depth, or a list\n"
          "  text              the continuation of each window of the text")
      .argument("MODEL", task.model, kModelHelp)
      .argument("DATA", task.data, "the new samples")
      .text("-o, --output", "FILE", task.output, "where the predictions go; -: standard output")
      .choice("--format", task.format, {"csv", "jsonl"}, "by default FILE's ending decides, else csv")
      .text("--root", "DIR", root, "where runs are found by name");
  supervise::SandboxChoice sandbox;
  add_sandbox(options, sandbox).example("sinew predict last new.csv -o predictions.csv");
  if (!options.parse(arguments)) return kDone;
  if (task.format.empty()) task.format = task.output.ends_with(".jsonl") ? "jsonl" : "csv";
  if (!system_disk().exists(task.data))
    throw UsageError("FILE_NOT_FOUND", "there is no " + task.data, "check the path");
  task.model = path_of_model(root, task.model);
  task.sandbox = supervise::sandbox_of(sandbox, {{task.model}, "the predictions"}, print_sentence);
  return become_worker(task, task.model);
}

}  // namespace sinew::cli
