// `sinew run -- COMMAND ...` runs any command as a run, without a job file.
#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/clock.h"
#include "cli/command_job.h"
#include "cli/options.h"
#include "rundir/rundir.h"

namespace sinew::cli {
namespace {

// Returns a name for the run: "train" for `python -u src/train.py`. Uses the first argument that looks like the name of
// a file, or else the program's name. An argument that contains blanks is source code, not a file's name.
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
  std::string name, format = "human";
  CommandOptions command;
  std::vector<std::string> overrides;
  Options options("run", "Runs any command as a run, without a job file");
  options
      .about(
          "The command is limited, watched, restarted, and never left behind. It gets a run directory like a "
          "training's, and its metrics are read from lines such as {\"step\": 10, \"loss\": 0.5} in its output. The "
          "command and its arguments stand behind --.")
      .rest("key=value", overrides,
            "options of the job file: resources.memory=2GiB, params.lr=0.1, budget.time=2h, early_stopping=val/loss")
      .text("--name", "NAME", name, "the job's name; by default the command's")
      .text("--run-dir", "DIR", command.run_directory, "where the run is kept; by default runs/<name>/<utc>-<id>")
      .text("--server", "URL", command.server,
            "of a sinew server, passed to the command for MLflow; by default SINEW_SERVER")
      .choice("--log-format", format, {"human", "json"}, "json: one object a line")
      .notes("First Ctrl-C (or SIGTERM): the command gets SIGTERM, and grace to save. Second: it is killed.")
      .example("sinew run resources.memory=2GiB retries.crash=2 -- python train.py --lr 0.1");
  const auto separator = std::ranges::find(arguments, "--");
  if (!options.parse({arguments.begin(), separator})) return kDone;
  if (arguments.end() - separator < 2) options.refuse("run needs a command behind --", "sinew run -- python train.py");
  command.json = format == "json";
  spec::Job given;
  given.command.words = {separator + 1, arguments.end()};
  given.name = name.empty() ? name_of(given.command.words) : name;
  const std::string yaml = to_yaml(given);
  const auto job = read_job_text(yaml, "sinew run", overrides);
  if (!job) return kUsage;
  std::string& directory = command.run_directory;
  if (directory.empty()) directory = rundir::new_run_directory("runs", job->name, system_clock());
  rundir::keep_job_file(directory, yaml, overrides, false);
  return run_command_job(*job, command);
}

}  // namespace sinew::cli
