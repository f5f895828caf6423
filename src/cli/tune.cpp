// `sinew tune`: which trial next. This file moves the lines of the ask/tell conversation; tune/ answers them.
#include "tune/tune.h"

#include <cstdio>
#include <iostream>

#include "cli/commands.h"

namespace sinew::cli {
namespace {

constexpr const char* kHelp =
    "usage: sinew tune --ask-tell\n\n"
    "Suggests trials to a program that runs them: one JSON object a line on standard input, one answer a line on\n"
    "standard output (docs/formats/ask-tell.md).\n\n";

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
  throw UsageError("tune takes --ask-tell", "sinew tune --help");
}

}  // namespace sinew::cli
