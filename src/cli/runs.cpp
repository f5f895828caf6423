// `sinew runs` shows the contents of run directories. It only reads files, so it never disturbs a run that is training.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "report/report.h"

namespace sinew::cli {
namespace {

struct Given {
  std::string verb = "list", root = "runs", format = "table";
  std::vector<std::string> runs;
  bool json() const { return format == "json"; }
};

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

int list(const Given& given) {
  if (!std::filesystem::is_directory(given.root)) {
    throw Error("RUN_NOT_FOUND", "no directory " + given.root,
                "say where the runs are with --root, or start one with 'sinew train'");
  }
  const std::vector<report::RunSummary> runs = report::find_runs(given.root);
  if (given.json()) {
    print(report::runs_json(runs));
  } else if (runs.empty()) {
    print("no runs under " + given.root + "\n");
  } else {
    print(report::runs_table(runs, terminal_of(STDOUT_FILENO).columns));
  }
  const bool troubled = std::any_of(runs.begin(), runs.end(), [](const auto& run) { return !run.problems.empty(); });
  if (troubled && !given.json())
    print("(!) some files of these runs cannot be read; 'sinew runs show RUN' names them\n");
  return kDone;
}

int show(const Given& given) {
  const report::RunSummary run = report::pick_run(given.root, given.runs[0]);
  print(given.json() ? report::run_json(run) : report::run_details(run));
  return kDone;
}

int compare(const Given& given) {
  std::vector<report::RunSummary> runs;
  for (const std::string& name : given.runs) runs.push_back(report::pick_run(given.root, name));
  print(given.json() ? report::compare_json(runs) : report::compare_table(runs, terminal_of(STDOUT_FILENO).columns));
  return kDone;
}

}  // namespace

int run_runs(const Arguments& arguments) {
  Given given;
  Options options("runs", "Runs and how they went");
  options
      .about(
          "  list                 all runs, newest first (the default)\n"
          "  show RUN             one run\n"
          "  compare RUN RUN ...  options that differ, and metrics side by side")
      .optional_argument("COMMAND", given.verb, "list, show or compare")
      .rest("RUN", given.runs, "a run directory, the end of a run's id, or last")
      .text("--root", "DIR", given.root, "directory of the runs")
      .choice("--format", given.format, {"table", "json"}, "of the output")
      .example("sinew runs show last");
  if (!options.parse(arguments)) return kDone;
  const size_t count = given.runs.size();
  if (given.verb == "list" && count == 0) return list(given);
  if (given.verb == "show" && count == 1) return show(given);
  if (given.verb == "compare" && count >= 2) return compare(given);
  options.refuse("runs does not understand these words",
                 "sinew runs list, sinew runs show RUN, or sinew runs compare RUN RUN");
}

}  // namespace sinew::cli
