// `sinew predict` makes predictions for new samples with a trained model.
#include <limits>
#include <string>

#include "base/disk.h"
#include "base/file_pattern.h"
#include "cli/options.h"
#include "cli/programs.h"

namespace sinew::cli {

int run_predict(const Arguments& arguments) {
  task::Predict task;
  task::Generation prompt;
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
          "  text_folder       a .txt file, or a folder of them\n"
          "  text              the token after each window of the text\n\n"
          "With --prompt, a model of text continues the prompt instead.")
      .argument("MODEL", task.model, kModelHelp)
      .optional_argument("DATA", task.data, "the new samples; none with --prompt")
      .text("-o, --output", "FILE", task.output, "where the predictions go; -: standard output")
      .choice("--format", task.format, {"csv", "jsonl"}, "by default FILE's ending decides, else csv")
      .text("--prompt", "TEXT", prompt.prompt, "the text that the model continues")
      .integer("--max-tokens", "N", prompt.max_tokens, 1, 1'000'000, "with --prompt: tokens to add")
      .number("--temperature", "T", prompt.temperature,
              "with --prompt: 0 takes the most likely token each time, values above 1 give more variety", true)
      .integer("--top-k", "K", prompt.top_k, 0, 1'000'000,
               "with --prompt: draw among the K most likely tokens; 0: among all")
      .integer("--seed", "N", prompt.seed, 0, std::numeric_limits<int64_t>::max(),
               "with --prompt: the same seed gives the same text")
      .text("--root", "DIR", root, "where runs are found by name");
  supervise::SandboxChoice sandbox;
  add_sandbox(options, sandbox).example("sinew predict last --prompt 'Once upon' --temperature 0.8 --top-k 40");
  if (!options.parse(arguments)) return kDone;
  if (task.format.empty()) task.format = task.output.ends_with(".jsonl") ? "jsonl" : "csv";
  if (options.given("--prompt")) task.generation = prompt;
  if (task.generation.has_value() != task.data.empty())
    options.refuse("give either DATA or --prompt", "name the new samples, or give a model of text a prompt");
  if (!task.generation && !system_disk().exists(task.data) && !is_file_pattern(task.data))
    throw UsageError("FILE_NOT_FOUND", "there is no " + task.data, "check the path");
  task.model = path_of_model(root, task.model);
  task.sandbox = supervise::sandbox_of(sandbox, {{task.model}, "the predictions"}, print_sentence);
  return become_worker(task, task.model);
}

}  // namespace sinew::cli
