// Implements `sinew tune`, which searches the options of a job. study/ runs the search; tune/ implements the ask-tell
// protocol.
#include "tune/tune.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "base/process.h"
#include "base/signals.h"
#include "base/terminal.h"
#include "cli/data_manifest.h"
#include "cli/options.h"
#include "cli/programs.h"
#include "rundir/rundir.h"
#include "study/study.h"

namespace sinew::cli {
namespace {

void print_list() {
  std::puts("samplers:");
  for (const auto& maker : tune::samplers()) print_help(help_row(maker.name, maker.help));
  std::puts("\npruners:");
  for (const auto& maker : tune::pruners()) print_help(help_row(maker.name, maker.help));
}

study::TerminalSize terminal_size() {
  const Terminal terminal = terminal_of(STDOUT_FILENO);
  if (!terminal.moves_cursor || terminal.rows == 0) return {};
  return {terminal.columns, terminal.rows};
}

void write_out(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

study::Options study_options(study::StudyScreen& screen) {
  study::Options options;
  options.program = this_program;
  options.environment = own_environment();
  options.output = [&screen](const std::string& line) { screen.say(wrap(line, columns_of(STDOUT_FILENO))); };
  options.screen = &screen;
  options.record_data = record_data;
  return options;
}

struct Given {
  std::string what;  // a job file, or one of the commands resume, extend, report
  std::vector<std::string> words;
  std::string directory;
  std::optional<int64_t> trials, parallel;
  double cost = 0;
  bool ask_tell = false;
};

int begin(const Given& given) {
  study::NewStudy study{given.directory, given.what, read_job_file(given.what), given.words, {}};
  auto job = read_job_text(study.job_text, job_file_name(study.job_path), study.overrides);
  if (!job) return kUsage;
  registry::check_out_init_from(*job, study.overrides, "runs", own_variable("SINEW_STORE"));
  if (job->command.given()) supervise::refuse_untrusted_command({study.job_path, study.directory});
  study.job = *std::move(job);
  if (study.directory.empty())
    study.directory = rundir::new_run_directory("runs", study.job.name, system_clock()) + "-study";
  return lead_study(given.parallel, [&](const study::Options& all) { return study::begin(all, study); });
}

}  // namespace

int lead_study(std::optional<int64_t> parallel, const OpenStudy& open) {
  study::StudyScreen screen(write_out, terminal_size);
  study::Options options = study_options(screen);
  options.slots = parallel;
  const auto session = open(options);
  Signals signals({SIGINT, SIGTERM, SIGHUP});  // only now: until the data are read, signals must kill the process
  return session->run(signals);
}

int run_tune(const Arguments& arguments) {
  Given given;
  Options options("tune", "Searches the options of a job: many trainings, the best one kept");
  options
      .about(
          "Searches the options that JOB names below tune.search. Each trial is a training of its own; trials run side "
          "by side, unpromising ones are paused at a checkpoint, and a killed one resumes from its own.\n\n"
          "  JOB [key=value ...]   starts a study\n"
          "  resume STUDY          resumes it, with --trials N in all; while other processes lead it, it helps them\n"
          "  extend STUDY          resumes it with --trials N more\n"
          "  report STUDY          prints the best trials and writes report.html: what matters, and every trial")
      .optional_argument("JOB", given.what, "a job file, or resume, extend or report")
      .rest("WHAT", given.words, "overrides of a job file, or the directory of a study")
      .text("--study", "DIR", given.directory, "where a new study is kept; by default runs/<job>/<utc>-<id>-study")
      .integer("--trials", "N", given.trials, 1, study::kMostTrials, "resume: trials in all; extend: further trials")
      .number("--cost", "C", given.cost, "resume: what all trials may cost")
      .integer("--parallel", "N", given.parallel, 1, study::kMostSlots,
               "trials side by side; by default as the job says")
      .flag(
          "--ask-tell", given.ask_tell,
          "suggest trials to a program that runs them: one JSON object a line on standard input, one answer a line on "
          "standard output")
      .notes("First Ctrl-C (or SIGTERM): trials save a checkpoint and end, exit code 75. Second: stop now.")
      .example("sinew tune job.yaml tune.trials=40")
      .example("sinew tune resume runs/mnist/20251121T040000Z-ab12-study --trials 80");
  if (!options.parse(arguments)) {
    const char* fence = arguments == Arguments{"--help=markdown"} ? "```\n" : "";
    std::printf("\n%s", fence);
    print_list();
    std::fputs(fence, stdout);
    return kDone;
  }
  if (given.ask_tell) return tune::converse(std::cin, std::cout) ? kDone : kTrainingError;
  const bool resumes = given.what == "resume", extends = given.what == "extend", reports = given.what == "report";
  if (given.what.empty()) options.refuse("tune needs a job file", "sinew tune job.yaml");
  if (!resumes && !extends && !reports) return begin(given);
  if (given.words.size() != 1) options.refuse(given.what + " needs one study", "sinew tune " + given.what + " DIR");
  if (reports) {
    study::StudyScreen screen(write_out, terminal_size);
    study::report(study_options(screen), given.words[0]);
    return kDone;
  }
  if (extends && !given.trials)
    options.refuse("extend needs --trials N", "sinew tune extend " + given.words[0] + " --trials 20");
  study::Extension extension;
  if (resumes) extension.trials = given.trials;
  if (extends) extension.more_trials = *given.trials;
  if (given.cost > 0) extension.cost = given.cost;
  supervise::refuse_untrusted_command({given.words[0]});  // the record of the study may have one
  return lead_study(given.parallel,
                    [&](const study::Options& all) { return study::resume(all, given.words[0], extension); });
}

}  // namespace sinew::cli
