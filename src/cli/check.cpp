// `sinew check`: is this job sane? The worker judges; this file reads the words.
#include "base/number_text.h"
#include "cli/commands.h"
#include "cli/programs.h"

namespace sinew::cli {
namespace {

constexpr const char* kHelp =
    "usage: sinew check JOB [key=value ...] [options]\n\n"
    "Tries the job for some seconds and judges it: the data, the untrained model, its gradients, overfitting one\n"
    "batch, the first steps, and that the same steps give the same bits. Each check passes or names the likely cause\n"
    "and what to try. Nothing is saved.\n\n"
    "  key=value     an override, for example optimizer.lr=3e-4; values are YAML\n\n"
    "options:\n"
    "  --json        one JSON object instead of lines\n"
    "  --time S      seconds all checks together may take (default: 25); what finds no time left is skipped\n\n"
    "Exit code 0: no check failed; 4: at least one did.\n";

}  // namespace

int run_check(const Arguments& arguments) {
  if (print_help_if_asked(arguments, kHelp)) return kDone;
  std::vector<std::string> positional;
  task::Check task;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--json") {
      task.json = true;
    } else if (word == "--time") {
      if (i + 1 == arguments.size()) throw UsageError("--time needs a value", "--time 60");
      task.seconds = duration_seconds(word, arguments[++i]);
    } else if (word.starts_with("-")) {
      throw UsageError("no option '" + word + "'", "sinew check --help");
    } else {
      positional.push_back(word);
    }
  }
  if (positional.empty())
    throw UsageError("check needs a job file", "sinew check job.yaml; sinew init DATA writes one");
  if (!load_training(positional[0], {positional.begin() + 1, positional.end()}, "sinew check")) return kUsage;
  task.job = positional[0];
  task.overrides = {positional.begin() + 1, positional.end()};
  return become_worker(task, task.job);
}

}  // namespace sinew::cli
