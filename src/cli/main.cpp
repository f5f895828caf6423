// The program `sinew`: finds the command by its name, runs it, and prints an error as two sentences.
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include "base/error.h"
#include "base/machine.h"
#include "base/printable.h"
#include "base/terminal_text.h"
#include "cli/commands.h"

namespace sinew::cli {
namespace {

struct Command {
  const char* name;
  const char* help;  // null: the command works, but the help does not list it
  int (*run)(const Arguments&);
};

constexpr Command kCommands[] = {
    {"train", "train a model from a job file", run_train},
    {"resume", "resume a run that was stopped or killed", run_resume},
    {"run", "run any command as a run, without a job file", run_run},
    {"stop", "end a run of this machine", run_stop},
    {"ps", "the workers of a run that trains, or the processes of a command", run_ps},
    {"scale", "change the number of workers of a run that trains", run_scale},
    {"control", "stop, checkpoint, learning rate ... of a run that trains", run_control},
    {"join", "add a worker of this machine to a run", run_join},
    {"token", "let a worker of another machine join a run, for a time, and lock it out", run_token},
    {"chaos", "kill workers of a run by a seed, and compare it with an undisturbed run", run_chaos},
    {"coordinator", nullptr, run_coordinator},
    {"eval", "metrics of a trained model on one split of the data", run_eval},
    {"predict", "predictions of a trained model for new samples", run_predict},
    {"export", "a trained model as ONNX, TorchScript, .pt2 or safetensors, for other programs", run_export},
    {"check", "try a job for some seconds and judge whether it can learn", run_check},
    {"plan", "what a training will take: time, memory, cost", run_plan},
    {"find-lr", "a learning rate for a job, by a range test", run_find_lr},
    {"tune", "search the options of a job: many trainings, the best one kept", run_tune},
    {"server", "serve runs, metrics, models over HTTP; also for MLflow's client and Prometheus", run_server},
    {"runs", "list, show, compare runs", run_runs},
    {"advise", "what limits a run or a job, and what would make it faster", run_advise},
    {"trace", "what each lane did in some steps, for Perfetto and Chrome", run_trace},
    {"models", "versions of trained models: register, promote, roll back, where they came from", run_models},
    {"data", "whether data is still what it was, by digest", run_data},
    {"repro", "train a recorded job again and compare it to the last bit", run_repro},
    {"validate", "check a job file and report every problem at once", run_validate},
    {"schema", "print the JSON Schema or the reference page of the job file", run_schema},
    {"checkpoint", "list, verify or show checkpoints", run_checkpoint},
    {"inspect", "what a model file holds, and whether it can be trained here", run_inspect},
    {"init", "write a job file for a data set", run_init},
};

int print_help() {
  std::string text = "usage: sinew COMMAND ...\n\nElastic model training.\n\ncommands:\n";
  for (const auto& [name, help, run] : kCommands) {
    if (help != nullptr)
      text += std::string("  ").append(name).append(13 - std::string(name).size(), ' ') + help + "\n";
  }
  sinew::print_help(text + "\n'sinew COMMAND --help' explains a command; 'sinew --version' prints the version.\n");
  return kDone;
}

// Prints docs/reference/commands.md, made from the options of all commands.
int print_reference() {
  std::puts(
      "# Commands\n\n"
      "Made by `sinew help --markdown`. Results go to stdout, problems to stderr; [exit codes](exit-codes.md) are the\n"
      "same for all commands. Every option can be written `--name value` or `--name=value`; durations are `30s`, "
      "`10m`,\n"
      "`2h`.");
  for (const Command& command : kCommands) command.run({"--help=markdown"});
  return kDone;
}

int dispatch(const std::string& name, const Arguments& arguments) {
  for (const Command& command : kCommands) {
    if (name == command.name) return command.run(arguments);
  }
  std::vector<std::string> known;
  for (const Command& command : kCommands) known.push_back(command.name);
  const std::string meant = spec::did_you_mean(name, known);
  print_error("sinew", Error("COMMAND_UNKNOWN", "there is no command '" + name + "'",
                             "sinew " + (meant.empty() ? "--help" : meant)));
  return kUsage;
}

// Returns the exit code.
int say_error(const std::string& command, const Error& error) {
  print_error("sinew " + command, error);
  return dynamic_cast<const UsageError*>(&error) != nullptr ? kUsage : kTrainingError;
}

}  // namespace
}  // namespace sinew::cli

int main(int argc, char** argv) {
  using namespace sinew;
  using namespace sinew::cli;
  open_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` then fails like a write on a full disk
  const Arguments words(argv + 1, argv + argc);
  if (words == Arguments{"help", "--markdown"}) return print_reference();
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") return print_help();
  if (words[0] == "--version") {
    std::puts("sinew " SINEW_VERSION);
    return kDone;
  }
  try {
    begin_program();
    // A coordinator may need no working directory. A supervisor starts coordinators as long as its run goes on, and may
    // give them absolute paths only.
    if (words[0] != "coordinator") check_working_directory();
    const int code = dispatch(words[0], Arguments(words.begin() + 1, words.end()));
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    throw Error("OUTPUT_FAILED", "cannot write to standard output", "check the file or program that receives it");
  } catch (const Error& error) {
    return say_error(words[0], error);
  } catch (const std::exception& error) {
    if (const auto shortage = shortage_of(error)) return say_error(words[0], *shortage);
    print_text(stderr, "sinew " + words[0] + ": " + printable(error.what(), true) +
                           "\n  try: this is a bug in sinew; please report it with the command line\n");
    return kTrainingError;
  }
}
