// `sinew run -- COMMAND ...`: any command as a run, without a job file.
#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/clock.h"
#include "cli/command_job.h"
#include "cli/commands.h"
#include "rundir/rundir.h"

namespace sinew::cli {
namespace {

constexpr const char* kHelp =
    "usage: sinew run [key=value ...] [options] -- COMMAND [ARGUMENT ...]\n\n"
    "Runs any command as a run: limited, watched, started again, and never left behind; with a run directory like a\n"
    "training's, and metrics from lines such as {\"step\": 10, \"loss\": 0.5} in its output.\n"
    "  sinew run resources.memory=2GiB retries.crash=2 -- python train.py --lr 0.1\n\n"
    "options:\n"
    "  key=value             an option of the job file: params.lr=0.1, budget.time=2h, early_stopping=val/loss\n"
    "  --name NAME           of the job (default: the command's)\n"
    "  --run-dir DIR         where the run is kept (default: runs/<name>/<utc>-<id>)\n"
    "  --server URL          of a sinew server: the command is told it for MLflow (default: SINEW_SERVER)\n"
    "  --log-format FORMAT   human (default) or json: one object a line\n\n"
    "First Ctrl-C (or SIGTERM): the command gets SIGTERM, and grace to save. Second: it is killed.";

struct Words {
  std::string name;
  CommandWords command;
  std::vector<std::string> overrides, words;
};

Words parse(const Arguments& arguments) {
  Words words;
  size_t i = 0;
  for (; i < arguments.size() && arguments[i] != "--"; ++i) {
    const std::string& word = arguments[i];
    const auto value = [&] {
      if (i + 1 == arguments.size() || arguments[i + 1] == "--")
        throw UsageError(word + " needs a value", "sinew run --help");
      return arguments[++i];
    };
    if (word == "--name") {
      words.name = value();
    } else if (word == "--run-dir") {
      words.command.run_directory = value();
    } else if (word == "--server") {
      words.command.server = value();
    } else if (word == "--log-format") {
      const std::string format = value();
      if (format != "human" && format != "json")
        throw UsageError("--log-format is human or json, not '" + format + "'", "sinew run --help");
      words.command.json = format == "json";
    } else if (word.starts_with("-")) {
      throw UsageError("no option '" + word + "'", "the command stands behind --: sinew run -- COMMAND ...");
    } else {
      words.overrides.push_back(word);
    }
  }
  if (i + 1 >= arguments.size()) throw UsageError("run needs a command", "sinew run -- python train.py");
  words.words.assign(arguments.begin() + static_cast<long>(i) + 1, arguments.end());
  return words;
}

// "train" of `python -u src/train.py`: the first word that is a file's name, else the program's. A word with blanks in
// it is a text of the program's own language.
std::string name_of(const std::vector<std::string>& words) {
  std::string name = std::filesystem::path(words[0]).filename().string();
  for (size_t i = 1; i < std::min<size_t>(words.size(), 4); ++i) {
    const std::filesystem::path path(words[i]);
    const bool text = words[i].starts_with("-") || words[i].find_first_of(" \t\n") != std::string::npos;
    if (!text && path.has_extension() && path.has_stem()) {
      name = path.stem().string();
      break;
    }
  }
  for (char& letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte >= 0x80 || (std::isalnum(byte) == 0 && letter != '_' && letter != '-' && letter != '.')) letter = '-';
  }
  if (name.empty() || std::isalnum(static_cast<unsigned char>(name[0])) == 0) name.insert(0, 1, 'c');
  return name.substr(0, 60);
}

}  // namespace

int run_run(const Arguments& arguments) {
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  if (print_help_if_asked({arguments.begin(), end}, kHelp)) return kDone;
  Words words = parse(arguments);
  spec::Job given;
  given.name = words.name.empty() ? name_of(words.words) : words.name;
  given.command.words = words.words;
  const std::string yaml = to_yaml(given);
  const auto job = read_job_text(yaml, "sinew run", words.overrides);
  if (!job) return kUsage;
  std::string& directory = words.command.run_directory;
  if (directory.empty()) directory = rundir::new_run_directory("runs", job->name, system_clock());
  std::string text = yaml;
  for (const std::string& override_text : words.overrides) text += "# override: " + override_text + "\n";
  rundir::keep_job_file(directory, text, false);
  return run_command_job(*job, words.command);
}

}  // namespace sinew::cli
