// `sinew eval` computes the metrics of a trained model on one split of the data.
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/programs.h"

namespace sinew::cli {

int run_eval(const Arguments& arguments) {
  task::Evaluate task;
  std::string root = "runs";
  std::vector<std::string> data;
  Options options("eval", "Metrics of a trained model on one split of the data");
  options.about("The same state gives the same numbers to the last bit as its training did.")
      .argument("MODEL", task.model, kModelHelp)
      .rest("key=value", data, "other data than the job's: test.path=new.csv stands for data.test.path=new.csv")
      .choice("--split", task.split, {"test", "val", "train"}, "the split of the job's data")
      .flag("--json", task.json, "print one JSON object")
      .text("--root", "DIR", root, "where runs are found by name");
  supervise::SandboxChoice sandbox;
  add_sandbox(options, sandbox)
      .notes(
          "Given a run, eval uses its model, or its newest checkpoint while it has none, and writes eval-<split>.json "
          "into it. Files given for a split are prepared as the training data was, which need not exist any more.\n"
          "If the training chose a threshold of two classes at its end, eval uses it. So its accuracy on the "
          "validation data differs from that of the training, which was measured at a probability of 0.5.")
      .example("sinew eval last --split val")
      .example("sinew eval last test.path=new.csv");
  if (!options.parse(arguments)) return kDone;
  for (const std::string& word : data) task.overrides.push_back(data_override(word));
  task.model = path_of_model(root, task.model);
  task.sandbox = supervise::sandbox_of(sandbox, {{task.model}, "the results"}, print_sentence);
  return become_worker(task, task.model);
}

}  // namespace sinew::cli
