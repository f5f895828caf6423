// `sinew validate` prints every problem of a job file at once, or one line that says what would be trained.
#include <cstdio>

#include "base/joined.h"
#include "cli/options.h"
#include "study/study.h"

namespace sinew::cli {
namespace {

std::string verdict(const spec::Job& job) {
  if (job.command.given()) {
    return joined(job.command.words, " ",
                  [&](const std::string& word) { return spec::fill_in(word, job.command.params); });
  }
  const spec::DataSource& train = job.data.train;
  const std::string where = train.path.empty() ? train.images : train.path;
  return job.model.name + " on " + (job.data.format == "auto" ? where : job.data.format) + ", " +
         to_string(job.trainer.max_duration) + " of batch " + std::to_string(job.trainer.batch_size) + ", " +
         job.optimizer.name;
}

}  // namespace

int run_validate(const Arguments& arguments) {
  std::string file;
  std::vector<std::string> overrides;
  Options options("validate", "Checks a job file and reports every problem at once");
  options
      .about(
          "Touches neither data nor models. Prints every problem to stderr as 'file:line:column: what / what to try' "
          "and "
          "exits with 2, or prints one line to stdout and exits with 0.")
      .argument("JOB", file, "the job file; -: standard input")
      .rest("key=value", overrides, "overrides, for example optimizer.lr=3e-4; values are YAML")
      .example("sinew validate job.yaml");
  if (!options.parse(arguments)) return kDone;
  const auto job = load_job(file, overrides);
  if (!job) return kUsage;
  study::check_search(*job, file);
  std::printf("%s: ok: %s\n", file.c_str(), verdict(*job).c_str());
  return kDone;
}

}  // namespace sinew::cli
