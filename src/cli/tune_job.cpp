#include "cli/tune_job.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <thread>

#include "base/clock.h"
#include "base/disk.h"
#include "base/process.h"
#include "checkpoint/checkpoint.h"
#include "cli/data_manifest.h"
#include "cli/launch.h"
#include "cli/numbers.h"
#include "cli/study_directory.h"
#include "cli/study_text.h"
#include "cli/trial_metric.h"
#include "cli/tuning.h"
#include "report/report.h"

namespace sinew::cli {
namespace {

constexpr double kLookSeconds = 0.05;
constexpr int64_t kMostTrials = 1'000'000;
constexpr double kTimeForNew = 0.8;   // of tune.time; then only trials that wait go on, so that some come to their end
constexpr double kLeaveSeconds = 60;  // from asking a trial to save and end to killing it

volatile std::sig_atomic_t asked = 0;
void on_signal(int) {
  asked = asked + 1;
}

std::string this_program() {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  if (size <= 0) throw Error("this program does not find itself", "is /proc mounted?");
  return {path, static_cast<size_t>(size)};
}

// Whether less of the metric is better, and its name, where the job leaves it open.
struct Aim {
  std::string monitor;
  bool minimize = true;
};
Aim aim_of(const spec::Job& job) {
  Aim aim;
  aim.monitor = job.tune.monitor != "auto"         ? job.tune.monitor
                : job.objective                    ? job.objective->metric
                : job.checkpoint.monitor != "auto" ? job.checkpoint.monitor
                : job.command.given()              ? job.early_stopping.monitor
                                                   : "val/loss";
  if (aim.monitor.empty()) {
    throw UsageError("nobody knows before it runs what this command measures",
                     "name it: 'tune: {monitor: val/loss}', or give an objective");
  }
  aim.minimize = job.tune.mode == "auto" ? report::lower_is_better(aim.monitor) : job.tune.mode == "min";
  return aim;
}

constexpr int64_t kLag = 4;  // of a deterministic study that does not say tune.parallel

int64_t places_of(const spec::Job& job) {
  const auto cores = std::max<int64_t>(1, std::thread::hardware_concurrency());
  if (job.tune.parallel) return *job.tune.parallel;
  const double each = job.command.given() ? std::max(1.0, job.command.resources.cpus)
                                          : static_cast<double>(job.trainer.lanes.value_or(1));
  const int64_t places = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(cores) / each));
  return job.tune.deterministic ? std::min(places, kLag) : places;
}

// Trials of one study, side by side, until there is nothing more to do or somebody wants it to stop.
class StudyRun {
 public:
  StudyRun(std::string directory, const spec::Job& job, const StudyHead& head, const std::vector<StudyEvent>& events,
           StudyFile& file, Clock& clock)
      : directory_(std::move(directory)),
        job_(job),
        head_(head),
        space_(space_of(job.tune.search)),
        clock_(clock),
        file_(file),
        tuning_(options(), events) {
    if (!job_.trainer.lanes && !job_.command.given())
      lanes_ = std::max<int64_t>(1, std::thread::hardware_concurrency() / places_of(job_));
  }

  int run() {
    const double began = clock_.monotonic_seconds();
    while (true) {
      const double part = job_.tune.seconds > 0 ? (clock_.monotonic_seconds() - began) / job_.tune.seconds : 0;
      const bool time_is_up = part >= 1 && tuning_.best();
      const bool no_new = part >= (tuning_.pauses() ? kTimeForNew : 1);
      if (asked == 0 && !time_is_up) start_trials(no_new);
      look_at_trials();
      if (asked > 0 && leave()) return kResumable;
      if (asked == 0 && trials_.empty() && (time_is_up || tuning_.over(no_new))) break;
      std::this_thread::sleep_for(std::chrono::duration<double>(kLookSeconds));
    }
    if (tuning_.ended_early()) std::printf("ended early: %s\n", tuning_.ended_early()->c_str());
    show_study(system_disk(), directory_, tuning_.study(), head_);
    return tuning_.best() ? kDone : kTrainingError;
  }

 private:
  struct Trial {
    Process process;
    TrialMetric metric;
    std::optional<double> asked;  // when it was asked to save and end
  };

  TuningOptions options() {
    TuningOptions options{study_options(head_, space_, job_.tune.seed)};
    options.study.earlier = earlier_studies(system_disk(), directory_, job_, space_);
    options.sampler = head_.sampler;
    options.stopper = head_.stopper;
    options.max_resource = head_.max_resource;
    options.trials = head_.trials;
    options.parallel = places_of(job_);
    options.end_early = job_.tune.end_early;
    if (job_.tune.deterministic) options.lag = job_.tune.parallel.value_or(kLag);
    options.record = [this](const StudyEvent& event) { file_.append(space_, event); };
    return options;
  }

  void say(int64_t id, const std::string& text) {
    std::printf("trial %lld: %s\n", static_cast<long long>(id), text.c_str());
    std::fflush(stdout);
  }

  std::string directory_of(int64_t id) const { return trial_directory(directory_, id); }

  void start_trials(bool no_new) {
    while (const auto start = tuning_.next(no_new)) {
      const auto changes = overrides_of(space_, tuning_.study().trial(start->id).point);
      std::string words;
      for (const std::string& change : changes) words += (words.empty() ? "" : " ") + change;
      say(start->id, (start->again ? "" : words + "  ") + "(" + start->why + ")");
      ProcessOptions process;
      process.command = command_of(start->id, changes);
      process.death_signal = SIGKILL;  // its checkpoints stand; the study goes on from them
      process.output = directory_of(start->id) + "/output.log";
      trials_.emplace(
          start->id,
          Trial{Process(process), {system_disk(), directory_of(start->id) + "/metrics.jsonl", head_.monitor}, {}});
    }
  }

  // A trial that was resolved goes on as it was, on whatever machine: with other cores, this one's lanes would differ.
  std::vector<std::string> command_of(int64_t id, const std::vector<std::string>& changes) {
    const std::string own = directory_of(id);
    system_disk().make_directories(own);
    if (system_disk().exists(own + "/resolved.yaml")) return {this_program(), "resume", own};
    if (system_disk().exists(own + "/job.yaml")) system_disk().remove_file(own + "/job.yaml");  // nothing was trained
    StudyHead trial = head_;
    trial.overrides.insert(trial.overrides.end(), changes.begin(), changes.end());
    // By the digests the study remembers: every trial would read all the data for them.
    if (!job_.command.given()) record_data(study_job(trial, study_path(directory_)), own, directory_);
    if (lanes_) trial.overrides.push_back("trainer.lanes=" + std::to_string(*lanes_));
    std::vector<std::string> command = {this_program(), "train", directory_ + "/job.yaml",
                                        "--run-dir",    own,     "--resume"};
    command.insert(command.end(), trial.overrides.begin(), trial.overrides.end());
    return command;
  }

  void ask_to_end(Trial& trial) {
    const double now = clock_.monotonic_seconds();
    if (!trial.asked) {
      trial.asked = now;
      trial.process.send(SIGTERM);
    } else if (now - *trial.asked >= kLeaveSeconds) {
      trial.process.send_group(SIGKILL);
    }
  }

  void take_reports(int64_t id, Trial& trial) {
    for (const auto& value : trial.metric.next()) {
      std::string why;
      if (!tuning_.reported(id, static_cast<double>(value.number), value.value, why)) continue;
      say(id, why);
      ask_to_end(trial);
    }
  }

  void look_at_trials() {
    for (auto at = trials_.begin(); at != trials_.end();) {
      auto& [id, trial] = *at;
      const auto end = trial.process.wait();
      take_reports(id, trial);
      if (trial.asked) ask_to_end(trial);
      if (!end) {
        ++at;
        continue;
      }
      const int64_t over = id;
      at = trials_.erase(at);
      if (asked == 0) take_end(over, *end);
    }
  }

  // Does a training end with the weights that were best by the metric that is searched for?
  bool puts_best_back() const {
    const auto& early = job_.early_stopping;
    const std::string automatic = job_.objective ? job_.objective->metric : early.monitor;
    const std::string& judged = job_.checkpoint.monitor == "auto" ? automatic : job_.checkpoint.monitor;
    return !early.monitor.empty() && early.restore_best && judged == head_.monitor;
  }

  // Only of a trial that came to its end, which may be that of its budget.
  std::optional<double> value_of(int64_t id, const ProcessEnd& end) const {
    if (end != ProcessEnd{kDone, 0} && end != ProcessEnd{kBudget, 0}) return std::nullopt;
    const auto& reports = tuning_.study().trial(id).reports;
    if (reports.empty()) return std::nan("");
    if (job_.command.given() || !puts_best_back()) return reports.back().value;
    const auto better = [&](const tune::Report& a, const tune::Report& b) {
      return head_.minimize ? a.value < b.value : a.value > b.value;
    };
    return std::ranges::min_element(reports, better)->value;
  }

  void take_end(int64_t id, const ProcessEnd& end) {
    const auto value = value_of(id, end);
    const auto before = tuning_.best();
    const TrialOver over = tuning_.ended(id, end, value);
    std::string text = over.why;
    if (value) text += ", " + head_.monitor + " " + short_number(*value) + (over.best ? ", the best so far" : "");
    if (tuning_.study().trial(id).state == tune::TrialState::failed)
      text += "; " + directory_of(id) + "/output.log says more";
    say(id, text);
    if (!over.resumable && !over.best) forget_model(id);
    if (over.best && before && *before != id) forget_model(*before);
  }

  // Its metrics and its job stay; what is large goes.
  void forget_model(int64_t id) {
    for (const char* part : {"/checkpoints", "/model"}) system_disk().remove_all(directory_of(id) + part);
  }

  // Trials save a checkpoint and end; a second signal kills them. True: all are gone.
  bool leave() {
    for (auto& [id, trial] : trials_) {
      if (asked > 1)
        trial.process.send_group(SIGKILL);
      else
        ask_to_end(trial);
    }
    if (!trials_.empty()) return false;
    std::printf("stopped; go on with it: sinew tune resume %s\n", directory_.c_str());
    return true;
  }

  std::string directory_;
  spec::Job job_;
  StudyHead head_;
  tune::Space space_;
  Clock& clock_;
  StudyFile& file_;
  Tuning tuning_;
  std::map<int64_t, Trial> trials_;
  std::optional<int64_t> lanes_;
};

int run_study(const std::string& directory, const spec::Job& job, const StudyHead& head,
              const std::vector<StudyEvent>& events, StudyFile& file) {
  // All data is read for it once, which may take long: while a signal still ends this at once.
  if (!job.command.given()) record_data(job, directory, directory);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, on_signal);
  std::printf("study: %s; %s %s, %lld trials, %lld side by side\n", directory.c_str(),
              head.minimize ? "least" : "greatest", head.monitor.c_str(), static_cast<long long>(head.trials),
              static_cast<long long>(places_of(job)));
  return StudyRun(directory, job, head, events, file, system_clock()).run();
}

checkpoint::RunLock lock_study(const std::string& directory) {
  auto lock = checkpoint::RunLock::take(directory);
  if (!lock) throw Error(lock.error(), "one process at a time leads a study");
  return std::move(*lock);
}

}  // namespace

int tune_job(const Arguments& arguments) {
  std::vector<std::string> words;
  std::string directory;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--study" && i + 1 < arguments.size()) {
      directory = arguments[++i];
    } else if (arguments[i].starts_with("-")) {
      throw UsageError("no option '" + arguments[i] + "', or it needs a value", "sinew tune --help");
    } else {
      words.push_back(arguments[i]);
    }
  }
  if (words.empty()) throw UsageError("tune needs a job file", "sinew tune job.yaml");
  const std::vector<std::string> overrides = {words.begin() + 1, words.end()};
  const auto job = load_job(words[0], overrides);
  if (!job) return kUsage;
  if (job->tune.search.empty())
    throw UsageError(words[0] + " has no tune.search: nothing is varied",
                     "for example 'tune: {search: {optimizer.lr: {low: 1e-4, high: 1e-1, log: true}}}'");
  // Its value would hold for the first check of the job, and for no trial.
  if (const std::string key = spec::overridden(job->tune.search, overrides); !key.empty())
    throw UsageError("a value is given for '" + key + "', which tune.search varies", "leave one of the two out");
  if (directory.empty()) directory = new_run_directory(job->name) + "-study";
  const Aim aim = aim_of(*job);
  const StudyHead head{read_text(system_disk(), words[0]),
                       overrides,
                       job->tune.sampler,
                       job->tune.stopper,
                       aim.monitor,
                       aim.minimize,
                       job->tune.trials,
                       evaluations_of(*job)};
  system_disk().make_directories(directory);
  const auto lock = lock_study(directory);
  if (!system_disk().exists(study_path(directory))) {  // before there is a study to go on with: it needs both
    keep_earlier(system_disk(), directory, *job, head);
    write_durably(system_disk(), directory + "/job.yaml", head.job);
  }
  StudyFile file(system_disk(), study_path(directory), head);
  return run_study(directory, *job, head, {}, file);
}

namespace {

// Goes on with a study, which from now on has as many trials as `planned` makes of those planned before. Trials that
// were asked for by name are made even where the study would end early.
int go_on(const std::string& directory, const std::function<int64_t(int64_t)>& planned) {
  spec::Job job = study_job(read_study_head(system_disk(), study_path(directory)), study_path(directory));
  const auto lock = lock_study(directory);
  const tune::Space space = space_of(job.tune.search);
  StudyFile file(system_disk(), study_path(directory));
  ReadStudy study = read_study(system_disk(), study_path(directory), space);
  if (const int64_t trials = planned(study.head.trials); trials != study.head.trials) {
    if (trials > study.head.trials) job.tune.end_early = false;
    study.head.trials = trials;
    file.append(space, {.kind = StudyEvent::Kind::extend, .trials = trials});
  }
  return run_study(directory, job, study.head, study.events, file);
}

}  // namespace

int resume_study(const Arguments& arguments) {
  if (arguments.empty() || arguments.size() > 2)
    throw UsageError("resume needs a study", "sinew tune resume DIR [trials=N]");
  if (arguments.size() == 1) return go_on(arguments[0], [](int64_t trials) { return trials; });
  if (!arguments[1].starts_with("trials="))
    throw UsageError("'" + arguments[1] + "' is not trials=N", "sinew tune resume DIR trials=100");
  const int64_t wanted = whole_number("trials", arguments[1].substr(7), 1, kMostTrials);
  return go_on(arguments[0], [&](int64_t) { return wanted; });
}

int extend_study(const Arguments& arguments) {
  if (arguments.size() != 3 || arguments[1] != "--trials")
    throw UsageError("extend needs a study and how many more trials", "sinew tune extend DIR --trials 20");
  const int64_t more = whole_number("--trials", arguments[2], 1, kMostTrials);
  return go_on(arguments[0], [&](int64_t trials) { return std::min(trials + more, kMostTrials); });
}

int report_study(const Arguments& arguments) {
  if (arguments.size() != 1) throw UsageError("report needs a study", "sinew tune report DIR");
  const std::string& directory = arguments[0];
  const spec::Job job = study_job(read_study_head(system_disk(), study_path(directory)), study_path(directory));
  const tune::Space space = space_of(job.tune.search);
  const ReadStudy read = read_study(system_disk(), study_path(directory), space);
  tune::Study study(study_options(read.head, space, job.tune.seed));
  for (const StudyEvent& event : read.events) apply(study, event);
  show_study(system_disk(), directory, study, read.head);
  return kDone;
}

}  // namespace sinew::cli
