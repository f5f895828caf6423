// `sinew validate`: every problem of a job file at once, or one line that says what would be trained.
#include <cstdio>

#include "cli/commands.h"
#include "study/study.h"

namespace sinew::cli {
namespace {

constexpr const char* kHelp =
    "usage: sinew validate FILE [key=value ...]\n\n"
    "Checks a job file without touching data or models. FILE may be - for standard input.\n"
    "Prints every problem to stderr as 'file:line:column: what / what to try' and exits with 2,\n"
    "or one line to stdout and exits with 0.\n\n"
    "  key=value   an override, for example optimizer.lr=3e-4; values are YAML\n";

std::string verdict(const spec::Job& job) {
  if (job.command.given()) {
    std::string words;
    for (const std::string& word : job.command.words)
      words += (words.empty() ? "" : " ") + spec::fill_in(word, job.command.params);
    return words;
  }
  const spec::DataSource& train = job.data.train;
  const std::string where = train.path.empty() ? train.images : train.path;
  return job.model.name + " on " + (job.data.format == "auto" ? where : job.data.format) + ", " +
         to_string(job.trainer.max_duration) + " of batch " + std::to_string(job.trainer.batch_size) + ", " +
         job.optimizer.name;
}

}  // namespace

int run_validate(const Arguments& arguments) {
  if (print_help_if_asked(arguments, kHelp)) return kDone;
  if (arguments.empty()) throw UsageError("no job file given", "sinew validate job.yaml");
  if (arguments[0].starts_with("-") && arguments[0] != "-") {
    throw UsageError("unknown option '" + arguments[0] + "'", "sinew validate --help");
  }
  const auto job = load_job(arguments[0], {arguments.begin() + 1, arguments.end()});
  if (!job) return kUsage;
  study::check_search(*job, arguments[0]);
  std::printf("%s: ok: %s\n", arguments[0].c_str(), verdict(*job).c_str());
  return kDone;
}

}  // namespace sinew::cli
