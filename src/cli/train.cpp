// `sinew train` and `sinew resume`: check the job file, make the run directory, become the worker.
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "base/disk.h"
#include "base/random.h"
#include "cli/commands.h"
#include "cli/numbers.h"
#include "cli/supervisor.h"
#include "cli/worker_process.h"
#include "report/report.h"

namespace sinew::cli {
namespace {

constexpr const char* kTrainHelp =
    "usage: sinew train JOB [key=value ...] [options]\n\n"
    "Trains the model JOB describes; dotted overrides change single options:\n"
    "  sinew train job.yaml optimizer.lr=3e-4 trainer.max_duration=5ep\n\n"
    "options:\n"
    "  --run-dir DIR         where the run is kept (default: runs/<job>/<utc>-<id>)\n"
    "  --workers N           train with N processes, started anew when they die; the model is the same for every N\n"
    "  --listen ADDRESS      with --workers: where workers of other machines reach the run (default: 127.0.0.1)\n"
    "  --hang-after D        with --workers: nothing moved for so long, and for 20 usual steps: it is said who holds\n"
    "                        the run, and half as long later that worker is ended (default: 60s)\n"
    "  --resume              with --run-dir: go on from its newest intact checkpoint, or start if there is none\n"
    "  --ledger              write ledger.jsonl: the digest of the training state after every step\n"
    "  --log-format FORMAT   human (default) or json: one object a line\n\n"
    "First Ctrl-C (or SIGTERM): finish the step, save a checkpoint, stop (exit code 75). Second: stop now.\n"
    "SIGUSR1: save a checkpoint now.";
constexpr const char* kResumeHelp =
    "usage: sinew resume RUN [options]\n\n"
    "Goes on with a run from its newest intact checkpoint. RUN: a run directory, the end of its name, or 'last'.\n\n"
    "options:\n"
    "  --root DIR            where runs are looked for (default: runs)\n"
    "  --workers N           with N processes; --listen ADDRESS and --hang-after D as for train\n"
    "  --ledger              write ledger.jsonl\n"
    "  --log-format FORMAT   human (default) or json";

struct Words {
  std::vector<std::string> positional;  // JOB and overrides, or RUN
  std::string run_directory, root = "runs", listen = "127.0.0.1";
  int64_t workers = 0;  // 0: as the job file says
  double hang_seconds = SupervisorOptions().hang_seconds;
  bool resume = false;
  std::vector<std::string> passed_on;  // for the worker as they are
};

Words parse(const Arguments& arguments, const std::string& command) {
  Words words;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const auto value = [&] {
      if (i + 1 == arguments.size()) throw UsageError(word + " needs a value", "sinew " + command + " --help");
      return arguments[++i];
    };
    if (word == "--run-dir" && command == "train") {
      words.run_directory = value();
    } else if (word == "--root" && command == "resume") {
      words.root = value();
    } else if (word == "--resume" && command == "train") {
      words.resume = true;
    } else if (word == "--workers") {
      words.workers = whole_number(word, value(), 1, kMostWorkers);
    } else if (word == "--listen") {
      words.listen = value();
    } else if (word == "--hang-after") {
      words.hang_seconds = seconds(word, value());
    } else if (word == "--ledger") {
      words.passed_on.push_back(word);
    } else if (word == "--log-format") {
      const std::string format = value();
      if (format != "human" && format != "json")
        throw UsageError("--log-format is human or json, not '" + format + "'");
      if (format == "json") words.passed_on.push_back("--json");
    } else if (word.starts_with("-")) {
      throw UsageError("no option '" + word + "'", "sinew " + command + " --help");
    } else {
      words.positional.push_back(word);
    }
  }
  return words;
}

std::string new_run_directory(const std::string& job_name) {
  uint64_t entropy = static_cast<uint64_t>(system_clock().wall_seconds() * 1e6);
  entropy = random_key({entropy, static_cast<uint64_t>(getpid())}).value;
  char id[8];
  std::snprintf(id, sizeof id, "%04llx", static_cast<unsigned long long>(entropy & 0xFFFF));
  return "runs/" + job_name + "/" + utc_compact(system_clock().wall_seconds()) + "-" + id;
}

std::string as_given(const std::string& path, const std::vector<std::string>& overrides) {
  std::string text = read_text(system_disk(), path);
  for (const std::string& override_text : overrides) text += "# override: " + override_text + "\n";
  return text;
}

void keep_job_file(const std::string& run_directory, const std::string& text, bool resume) {
  Disk& disk = system_disk();
  const std::string kept = run_directory + "/job.yaml";
  if (disk.exists(kept)) {
    if (!resume) {
      throw UsageError(run_directory + " already holds a run",
                       "go on with it: sinew resume " + run_directory + "; or name another --run-dir");
    }
    if (read_text(disk, kept) != text) {
      throw UsageError(
          "the job file or its overrides changed since the run in " + run_directory + " began",
          "go on with the job as it was: sinew resume " + run_directory + "; or start anew in another --run-dir");
    }
    return;
  }
  disk.make_directories(run_directory);
  write_durably(disk, kept, text);
}

// Several processes under a supervisor if they were asked for, else this process becomes the worker.
int start(const spec::Job& about, const std::string& job, const std::string& run_directory, bool resume,
          const Words& words, const std::vector<std::string>& overrides) {
  if (words.workers > 0 || about.workers.max > 1) {
    SupervisorOptions options;
    options.run_directory = run_directory;
    options.job_name = about.name;
    options.workers = words.workers > 0 ? words.workers : about.workers.max;
    options.minimum = std::min(about.workers.min, options.workers);
    options.listen = words.listen;
    options.job = job;
    options.overrides = overrides;
    options.flags = words.passed_on;
    options.resume = resume;
    options.hang_seconds = words.hang_seconds;
    return supervise(options, system_clock());
  }
  std::vector<std::string> all = {"train", job, run_directory};
  if (resume) all.push_back("--resume");
  all.insert(all.end(), words.passed_on.begin(), words.passed_on.end());
  all.insert(all.end(), overrides.begin(), overrides.end());
  return become_worker(all);
}

}  // namespace

int run_train(const Arguments& arguments) {
  if (print_help_if_asked(arguments, kTrainHelp)) return kDone;
  const Words words = parse(arguments, "train");
  if (words.positional.empty())
    throw UsageError("train needs a job file", "sinew train job.yaml; sinew init DATA writes one");
  if (words.resume && words.run_directory.empty()) {
    throw UsageError("--resume needs --run-dir", "name the run's directory, or use: sinew resume last");
  }
  const std::string& path = words.positional[0];
  const std::vector<std::string> overrides(words.positional.begin() + 1, words.positional.end());
  const auto job = load_job(path, overrides);
  if (!job) return kUsage;
  const std::string directory = words.run_directory.empty() ? new_run_directory(job->name) : words.run_directory;
  keep_job_file(directory, as_given(path, overrides), words.resume);
  // The job as it was resolved when the run began, where it came that far.
  if (words.resume && system_disk().exists(directory + "/resolved.yaml")) {
    return start(*job, directory + "/resolved.yaml", directory, true, words, {});
  }
  return start(*job, path, directory, words.resume, words, overrides);
}

int run_resume(const Arguments& arguments) {
  if (print_help_if_asked(arguments, kResumeHelp)) return kDone;
  const Words words = parse(arguments, "resume");
  if (words.positional.size() != 1)
    throw UsageError("resume needs one run", "sinew resume last; sinew runs lists them");
  const report::RunSummary run = report::pick_run(words.root, words.positional[0]);
  const auto job = load_job(run.directory + "/resolved.yaml", {});
  if (!job) return kUsage;
  return start(*job, run.directory + "/resolved.yaml", run.directory, true, words, {});
}

}  // namespace sinew::cli
