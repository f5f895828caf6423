// `sinew runs`: what is in the run directories. Reads files only; a run that is training is not disturbed.
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "cli/commands.h"
#include "report/report.h"

namespace sinew::cli {
namespace {

struct Wishes {
  std::string root = "runs", format = "table";
  std::string run;
  std::vector<std::string> compared;
  bool json() const { return format == "json"; }
};

int terminal_columns() {  // 0: not a terminal
  winsize size{};
  if (::isatty(STDOUT_FILENO) == 0 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

int list(const Wishes& wishes) {
  if (!std::filesystem::is_directory(wishes.root)) {
    throw Error("no directory " + wishes.root, "say where the runs are with --root, or start one with 'sinew train'");
  }
  const std::vector<report::RunSummary> runs = report::find_runs(wishes.root);
  if (wishes.json()) {
    print(report::runs_json(runs));
  } else if (runs.empty()) {
    print("no runs under " + wishes.root + "\n");
  } else {
    print(report::runs_table(runs, terminal_columns()));
  }
  const bool troubled = std::any_of(runs.begin(), runs.end(), [](const auto& run) { return !run.problems.empty(); });
  if (troubled && !wishes.json()) print("(!) some of its files can not be read; 'sinew runs show RUN' names them\n");
  return kDone;
}

int show(const Wishes& wishes) {
  const report::RunSummary run = report::pick_run(wishes.root, wishes.run);
  print(wishes.json() ? report::run_json(run) : report::run_details(run));
  return kDone;
}

int compare(const Wishes& wishes) {
  std::vector<report::RunSummary> runs;
  for (const std::string& name : wishes.compared) runs.push_back(report::pick_run(wishes.root, name));
  print(wishes.json() ? report::compare_json(runs) : report::compare_table(runs, terminal_columns()));
  return kDone;
}

}  // namespace

int run_runs(const Arguments& arguments) {
  Wishes wishes;
  CLI::App app("Runs and how they went. RUN is a run directory, the end of a run's id, or 'last'.", "sinew runs");
  app.add_option("--root", wishes.root, "directory of the runs")->capture_default_str();
  app.add_option("--format", wishes.format, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  app.fallthrough();
  app.require_subcommand(0, 1);
  app.add_subcommand("list", "all runs, newest first (the default)")->fallthrough();
  CLI::App* show_command = app.add_subcommand("show", "one run")->fallthrough();
  show_command->add_option("RUN", wishes.run)->required();
  CLI::App* compare_command =
      app.add_subcommand("compare", "options that differ, and metrics side by side")->fallthrough();
  compare_command->add_option("RUN", wishes.compared)->required()->expected(2, 20);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error), kDone;  // --help
    std::fprintf(stderr, "sinew runs: %s\n  try: sinew runs --help\n", error.what());
    return kUsage;
  }
  if (show_command->parsed()) return show(wishes);
  return compare_command->parsed() ? compare(wishes) : list(wishes);
}

}  // namespace sinew::cli
