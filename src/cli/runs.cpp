// Implements `sinew runs`, which shows the contents of run directories. It only reads files, so it never disturbs a run
// that is training.
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
  std::string root = "runs", format = "table";
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

int show(const Given& given, const std::string& name) {
  const report::RunSummary run = report::pick_run(given.root, name);
  print(given.json() ? report::run_json(run) : report::run_details(run));
  return kDone;
}

int compare(const Given& given, const std::vector<std::string>& names) {
  std::vector<report::RunSummary> runs;
  for (const std::string& name : names) runs.push_back(report::pick_run(given.root, name));
  print(given.json() ? report::compare_json(runs) : report::compare_table(runs, terminal_of(STDOUT_FILENO).columns));
  return kDone;
}

}  // namespace

int run_runs(const Arguments& arguments) {
  Given given;
  Options options("runs", "Runs and how they went");
  options.about("RUN is a run directory, the end of a run's id, or last.")
      .verb("list", "", "all runs, newest first", [&](const auto&) { return list(given); })
      .verb("show", "RUN", "one run", [&](const auto& names) { return show(given, names[0]); })
      .verb("compare", "RUN RUN ...", "options that differ, and metrics side by side",
            [&](const auto& names) { return compare(given, names); })
      .default_verb("list")
      .text("--root", "DIR", given.root, "directory of the runs")
      .choice("--format", given.format, {"table", "json"}, "of the output")
      .example("sinew runs show last");
  return options.parse(arguments) ? options.run_verb() : kDone;
}

}  // namespace sinew::cli
