// `sinew runs`: what is in the run directories. Reads files only; a run that is training is not disturbed.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "cli/commands.h"
#include "report/report.h"

namespace sinew::cli {
namespace {

constexpr const char* kHelp =
    "usage: sinew runs [list | show RUN | compare RUN RUN ...] [options]\n\n"
    "Runs and how they went. RUN is a run directory, the end of a run's id, or 'last'.\n\n"
    "  list                 all runs, newest first (the default)\n"
    "  show RUN             one run\n"
    "  compare RUN RUN ...  options that differ, and metrics side by side\n\n"
    "options:\n"
    "  --root DIR           directory of the runs (default: runs)\n"
    "  --format FORMAT      table (default) or json";

struct Wishes {
  std::string root = "runs", format = "table";
  std::vector<std::string> words;  // the verb and its runs
  bool json() const { return format == "json"; }
};

Wishes parse(const Arguments& arguments) {
  Wishes wishes;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--root" || word == "--format") {
      if (i + 1 == arguments.size()) throw UsageError(word + " needs a value", "sinew runs --help");
      (word == "--root" ? wishes.root : wishes.format) = arguments[++i];
    } else if (word.starts_with("-")) {
      throw UsageError("no option '" + word + "'", "sinew runs --help");
    } else {
      wishes.words.push_back(word);
    }
  }
  if (wishes.format != "table" && wishes.format != "json") {
    throw UsageError("--format is table or json, not '" + wishes.format + "'", "sinew runs --help");
  }
  return wishes;
}

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
  const report::RunSummary run = report::pick_run(wishes.root, wishes.words[1]);
  print(wishes.json() ? report::run_json(run) : report::run_details(run));
  return kDone;
}

int compare(const Wishes& wishes) {
  std::vector<report::RunSummary> runs;
  for (size_t i = 1; i < wishes.words.size(); ++i) runs.push_back(report::pick_run(wishes.root, wishes.words[i]));
  print(wishes.json() ? report::compare_json(runs) : report::compare_table(runs, terminal_columns()));
  return kDone;
}

}  // namespace

int run_runs(const Arguments& arguments) {
  if (print_help_if_asked(arguments, kHelp)) return kDone;
  const Wishes wishes = parse(arguments);
  const std::string verb = wishes.words.empty() ? "list" : wishes.words[0];
  const size_t runs = wishes.words.empty() ? 0 : wishes.words.size() - 1;
  if (verb == "list" && runs == 0) return list(wishes);
  if (verb == "show" && runs == 1) return show(wishes);
  if (verb == "compare" && runs >= 2) return compare(wishes);
  const bool known = verb == "list" || verb == "show" || verb == "compare";
  throw UsageError(
      "'" + verb + "' " + (known ? "takes other runs than these " + std::to_string(runs) : "is no command of runs"),
      "sinew runs list, sinew runs show RUN, or sinew runs compare RUN RUN");
}

}  // namespace sinew::cli
