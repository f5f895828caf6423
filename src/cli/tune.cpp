// `sinew tune`: which trial next. This file moves the lines of the ask/tell conversation; tune/ answers them.
#include "tune/tune.h"

#include <cstdio>
#include <iostream>

#include "cli/commands.h"
#include "cli/tune_job.h"

namespace sinew::cli {
namespace {

constexpr const char* kHelp =
    "usage: sinew tune JOB [key=value ...] [--study DIR]\n"
    "       sinew tune resume STUDY [trials=N] [cost=C] [--parallel N]\n"
    "       sinew tune extend STUDY --trials N\n"
    "       sinew tune report STUDY\n"
    "       sinew tune --ask-tell\n\n"
    "Searches the options that JOB names below tune.search: trials are trainings of their own, side by side; those "
    "that\n"
    "do not promise much are paused at a checkpoint, and one that is killed goes on from its own. The study is kept "
    "in\n"
    "DIR (default: runs/<job>/<utc>-<id>-study). resume goes on with it, with N trials in all if told so, N side by "
    "side;\n"
    "while others are at it, it helps them. extend adds N.\n"
    "report prints the best trials and writes DIR/report.html: what matters, and every trial.\n\n"
    "--ask-tell: suggests trials to a program that runs them: one JSON object a line on standard input, one answer a\n"
    "line on standard output (docs/formats/ask-tell.md).\n\n"
    "First Ctrl-C (or SIGTERM): trials save a checkpoint and end, exit code 75. Second: stop now.\n\n";

void print_list() {
  std::puts("samplers:");
  for (const auto& maker : tune::samplers()) std::printf("  %-14s %s\n", maker.name, maker.help);
  std::puts("\nstoppers (\"pruner\"):");
  for (const auto& maker : tune::stoppers()) std::printf("  %-14s %s\n", maker.name, maker.help);
}

int converse() {
  std::ios::sync_with_stdio(false);
  std::cin.tie(nullptr);
  tune::AskTell conversation;
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto answer = conversation.answer(line);
    if (!answer) return kDone;
    std::cout << *answer << '\n' << std::flush;
    if (!std::cout) return kTrainingError;  // nobody listens
  }
  return kDone;
}

}  // namespace

int run_tune(const Arguments& arguments) {
  if (print_help_if_asked(arguments, kHelp)) {
    print_list();
    return kDone;
  }
  if (arguments == Arguments{"--ask-tell"}) return converse();
  if (!arguments.empty() && arguments[0] == "resume") return resume_study({arguments.begin() + 1, arguments.end()});
  if (!arguments.empty() && arguments[0] == "extend") return extend_study({arguments.begin() + 1, arguments.end()});
  if (!arguments.empty() && arguments[0] == "report") return report_study({arguments.begin() + 1, arguments.end()});
  return tune_job(arguments);
}

}  // namespace sinew::cli
