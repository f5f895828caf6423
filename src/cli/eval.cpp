// `sinew eval`: metrics of a trained model on a part of the data.
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/programs.h"

namespace sinew::cli {
namespace {

constexpr const char* kHelp =
    "usage: sinew eval RUN|MODEL_DIR|CHECKPOINT [options]\n\n"
    "Evaluates a trained model as its training did: the same state gives the same numbers to the last bit.\n"
    "RUN: a run directory, the end of its name, or 'last'; its model, or its newest checkpoint while it has none.\n\n"
    "options:\n"
    "  --part test|val|train  which part of the job's data (default: test)\n"
    "  --data key=value ...   other data: overrides of data.*, for example --data test.path=new.csv\n"
    "  --json                 print one JSON object\n"
    "  --root DIR             where runs are looked for by name (default: runs)\n\n"
    "Given a run, it writes eval-<part>.json into it, with what --data gave. Files named for the part are prepared as\n"
    "the training data was, which need not be there any more.";

}  // namespace

int run_eval(const Arguments& arguments) {
  if (print_help_if_asked(arguments, kHelp)) return kDone;
  std::string what, root = "runs";
  task::Evaluate task;
  bool in_data = false;  // words after --data, while they are key=value
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const auto value = [&] {
      if (i + 1 == arguments.size()) throw UsageError(word + " needs a value", "sinew eval --help");
      return arguments[++i];
    };
    const bool was_in_data = in_data;
    in_data = false;
    if (word == "--part") {
      task.split = value();
      if (task.split != "test" && task.split != "val" && task.split != "train")
        throw UsageError("--part is test, val or train, not '" + task.split + "'");
    } else if (word == "--data") {
      task.overrides.push_back(data_override(value()));
      in_data = true;
    } else if (word == "--root") {
      root = value();
    } else if (word == "--json") {
      task.json = true;
    } else if (word.starts_with("-")) {
      throw UsageError("no option '" + word + "'", "sinew eval --help");
    } else if ((was_in_data || !what.empty()) && word.find('=') != std::string::npos) {
      task.overrides.push_back(data_override(word));
      in_data = true;
    } else if (what.empty()) {
      what = word;
    } else {
      throw UsageError("eval takes one model, and '" + word + "' is a second", "sinew eval --help");
    }
  }
  if (what.empty())
    throw UsageError("eval needs a run, a model directory or a checkpoint", "sinew eval last; sinew runs lists them");
  task.model = path_of_model(root, what);
  return become_worker(task, task.model);
}

}  // namespace sinew::cli
