// `sinew predict`: what a trained model says of new samples.
#include <string>
#include <vector>

#include "base/disk.h"
#include "cli/commands.h"
#include "cli/programs.h"

namespace sinew::cli {
namespace {

constexpr const char* kHelp =
    "usage: sinew predict RUN|MODEL_DIR|CHECKPOINT DATA [options]\n\n"
    "Writes one row a sample: its name, the predicted class with its probability, or the predicted number in the\n"
    "target's own units. DATA has the training data's format and is prepared as it was, by what the model remembers:\n"
    "  csv, tsv, jsonl   a table with the columns the model was trained on; the target is not needed\n"
    "  idx, npy          the file of the inputs alone; npz, cifar: as in training\n"
    "  images            an image, a folder of images however deep, or a list\n"
    "  text              what follows each window of the text\n\n"
    "options:\n"
    "  -o FILE               where to (default: standard output)\n"
    "  --format csv|jsonl    (default: by FILE's ending, else csv)\n"
    "  --root DIR            where runs are looked for by name (default: runs)";

}  // namespace

int run_predict(const Arguments& arguments) {
  if (print_help_if_asked(arguments, kHelp)) return kDone;
  std::vector<std::string> positional;
  std::string out = "-", format, root = "runs";
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const auto value = [&] {
      if (i + 1 == arguments.size()) throw UsageError(word + " needs a value", "sinew predict --help");
      return arguments[++i];
    };
    if (word == "-o" || word == "--output") {
      out = value();
    } else if (word == "--format") {
      format = value();
      if (format != "csv" && format != "jsonl") throw UsageError("--format is csv or jsonl, not '" + format + "'");
    } else if (word == "--root") {
      root = value();
    } else if (word.starts_with("-")) {
      throw UsageError("no option '" + word + "'", "sinew predict --help");
    } else {
      positional.push_back(word);
    }
  }
  if (positional.size() != 2)
    throw UsageError("predict needs a model and its data", "sinew predict last new.csv -o predictions.csv");
  if (format.empty()) format = out.ends_with(".jsonl") ? "jsonl" : "csv";
  if (!system_disk().exists(positional[1])) throw UsageError("there is no " + positional[1], "check the path");
  const std::string model = path_of_model(root, positional[0]);
  return become_worker(task::Predict{model, positional[1], out, format}, model);
}

}  // namespace sinew::cli
