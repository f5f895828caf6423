// Implements `sinew advise`: says what limited a run, and what would make it faster.
#include "advise/advise.h"

#include <cstdio>

#include "base/disk.h"
#include "cli/options.h"
#include "rundir/rundir.h"

namespace sinew::cli {

int run_advise(const Arguments& arguments) {
  std::string root = "runs", name;
  bool json = false;
  Options options("advise", "What limited a run, and what would make it faster");
  options.argument("RUN", name, "a run directory, the end of a run's id, or last")
      .text("--root", "DIR", root, "directory of the runs")
      .flag("--json", json, "print one JSON object")
      .example("sinew advise last");
  if (!options.parse(arguments)) return kDone;
  const std::string run = rundir::find_run(root, name);
  const auto outcome = rundir::parse_outcome(rundir::report_text(system_disk(), run)).value_or(rundir::Outcome());
  const advise::Verdict verdict = advise::judge(outcome, run);
  const std::string text = json ? advise::verdict_json(verdict) : advise::verdict_text(verdict, *outcome.time);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return kDone;
}

}  // namespace sinew::cli
