// `sinew tune`: searches the options of a job. study/ leads the search; tune/ answers the ask/tell conversation.
#include "tune/tune.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>

#include "base/number_text.h"
#include "base/signals.h"
#include "cli/commands.h"
#include "cli/data_manifest.h"
#include "cli/programs.h"
#include "rundir/rundir.h"
#include "study/study.h"

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
  std::puts("\npruners:");
  for (const auto& maker : tune::pruners()) std::printf("  %-14s %s\n", maker.name, maker.help);
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

study::TerminalSize terminal_size() {
  const char* kind = std::getenv("TERM");
  winsize size{};
  const bool moves_cursor = kind != nullptr && std::string_view(kind) != "dumb";
  if (!moves_cursor || ::isatty(STDOUT_FILENO) == 0 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {};
  return {size.ws_col, size.ws_row};
}

void write_out(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

study::Options study_options(study::StudyScreen& screen) {
  study::Options options;
  options.program = this_program();
  options.environment = supervise::process_environment();
  options.output = [&screen](const std::string& line) { screen.say(line); };
  options.screen = &screen;
  options.record_data = record_data;
  return options;
}

// Until the session exists a signal ends this process at once: reading all data for the first time may take long.
int lead(const study::Options& options,
         const std::function<std::unique_ptr<study::StudySession>(const study::Options&)>& open) {
  const auto session = open(options);
  Signals signals({SIGINT, SIGTERM, SIGHUP});
  return session->run(signals);
}

int begin(const Arguments& arguments, const study::Options& options) {
  std::vector<std::string> words;
  study::NewStudy study;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--study" && i + 1 < arguments.size()) {
      study.directory = arguments[++i];
    } else if (arguments[i].starts_with("-")) {
      throw UsageError("TUNE_BAD_ARGUMENT", "no option '" + arguments[i] + "', or it needs a value",
                       "overrides say how to search, as tune.trials=4; see sinew tune --help");
    } else {
      words.push_back(arguments[i]);
    }
  }
  if (words.empty()) throw UsageError("TUNE_BAD_ARGUMENT", "tune needs a job file", "sinew tune job.yaml");
  study.job_path = words[0];
  study.overrides = {words.begin() + 1, words.end()};
  auto job = load_job(study.job_path, study.overrides);
  if (!job) return kUsage;
  study.job = *std::move(job);
  study.job_text = read_text(options.disk, study.job_path);
  if (study.directory.empty())
    study.directory = rundir::new_run_directory("runs", study.job.name, options.clock) + "-study";
  return lead(options, [&](const study::Options& all) { return study::begin(all, study); });
}

int resume(const Arguments& arguments, study::Options options) {
  constexpr const char* kUse = "sinew tune resume DIR [trials=N] [cost=C] [--parallel N]";
  if (arguments.empty()) throw UsageError("TUNE_BAD_ARGUMENT", "resume needs a study", kUse);
  study::Extension extension;
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i].starts_with("trials=")) {
      extension.trials = whole_number("trials", arguments[i].substr(7), 1, study::kMostTrials);
    } else if (arguments[i].starts_with("cost=")) {
      extension.cost = number_above_0("cost", arguments[i].substr(5));
    } else if (arguments[i] == "--parallel" && i + 1 < arguments.size()) {
      options.slots = whole_number("--parallel", arguments[++i], 1, study::kMostSlots);
    } else {
      throw UsageError("TUNE_BAD_ARGUMENT", "'" + arguments[i] + "' is not trials=N or cost=C, or it needs a value",
                       kUse);
    }
  }
  return lead(options, [&](const study::Options& all) { return study::resume(all, arguments[0], extension); });
}

int extend(const Arguments& arguments, const study::Options& options) {
  if (arguments.size() != 3 || arguments[1] != "--trials")
    throw UsageError("TUNE_BAD_ARGUMENT", "extend needs a study and how many more trials it should run",
                     "sinew tune extend DIR --trials 20");
  study::Extension extension;
  extension.more_trials = whole_number("--trials", arguments[2], 1, study::kMostTrials);
  return lead(options, [&](const study::Options& all) { return study::resume(all, arguments[0], extension); });
}

int report(const Arguments& arguments, const study::Options& options) {
  if (arguments.size() != 1) throw UsageError("TUNE_BAD_ARGUMENT", "report needs a study", "sinew tune report DIR");
  study::report(options, arguments[0]);
  return kDone;
}

}  // namespace

int run_tune(const Arguments& arguments) {
  if (print_help_if_asked(arguments, kHelp)) {
    print_list();
    return kDone;
  }
  if (arguments == Arguments{"--ask-tell"}) return converse();
  study::StudyScreen screen(write_out, terminal_size);
  const study::Options options = study_options(screen);
  const std::string word = arguments.empty() ? "" : arguments[0];
  if (word != "resume" && word != "extend" && word != "report") return begin(arguments, options);
  const Arguments rest(arguments.begin() + 1, arguments.end());
  if (word == "resume") return resume(rest, options);
  return word == "extend" ? extend(rest, options) : report(rest, options);
}

}  // namespace sinew::cli
