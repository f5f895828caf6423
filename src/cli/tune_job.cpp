#include "cli/tune_job.h"

#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "base/disk.h"
#include "base/proc.h"
#include "cli/data_manifest.h"
#include "cli/launch.h"
#include "cli/numbers.h"
#include "cli/study_directory.h"
#include "cli/study_run.h"
#include "cli/study_text.h"
#include "cli/tuning.h"
#include "report/report.h"
#include "rundir/rundir.h"

namespace sinew::cli {
namespace {

constexpr int64_t kMostTrials = 1'000'000, kMostPlaces = 4096;

// The one metric, where the job leaves it open.
std::string monitor_of(const spec::Job& job) {
  const std::string monitor = job.tune.monitor != "auto"         ? job.tune.monitor
                              : job.objective                    ? job.objective->metric
                              : job.checkpoint.monitor != "auto" ? job.checkpoint.monitor
                              : job.command.given()              ? job.early_stopping.monitor
                                                                 : "val/loss";
  if (monitor.empty()) {
    throw UsageError("nobody knows before it runs what this command measures",
                     "name it: 'tune: {monitor: val/loss}', or give an objective");
  }
  return monitor;
}

StudyAim::Metric metric_of(const std::string& name, const std::string& mode) {
  return {name, report::lower_is_better(name, mode)};
}

StudyAim aim_of(const spec::Job& job) {
  const spec::TuneOptions& tune = job.tune;
  StudyAim aim{{}, tune.constraints};
  if (tune.objectives.empty()) aim.objectives.push_back(metric_of(monitor_of(job), tune.mode));
  for (size_t k = 0; k < tune.objectives.size(); ++k)
    aim.objectives.push_back(metric_of(tune.objectives[k], tune.directions.empty() ? "auto" : tune.directions[k]));
  return aim;
}

// Pruners judge by one metric of trainings that each go their own way.
std::string pruner_of(const spec::TuneOptions& tune) {
  const bool judged = tune.objectives.empty() && tune.constraints.empty() && !trains_in_parts(tune.sampler);
  return judged ? tune.pruner : "none";
}

// A number that was asked for, or as many trainings as there are cores free for.
StudyPlaces places_of(const spec::Job& job, std::optional<int64_t> wanted = {}) {
  if (!wanted) wanted = job.tune.parallel;
  PlacesOptions options;
  options.follows = !wanted && !job.tune.deterministic;
  options.cores = static_cast<double>(own_cores().size());
  options.allowed = static_cast<double>(usable_cores());
  options.each = job.command.given() ? std::max(1.0, job.command.resources.cpus)
                                     : static_cast<double>(job.trainer.lanes.value_or(1));
  options.most = wanted.value_or(std::max<int64_t>(1, static_cast<int64_t>(options.allowed / options.each)));
  if (!wanted && job.tune.deterministic) options.most = std::min(options.most, kLag);
  return StudyPlaces(options);
}

int run_study(const std::string& directory, const spec::Job& job, const StudyHead& head,
              const std::vector<StudyEvent>& events, StudyFile& file, StudyProcess& self, const StudyPlaces& places) {
  // All data is read for it once, which may take long: while a signal still ends this at once.
  if (!job.command.given()) record_data(job, directory, directory);
  std::printf("study: %s; %s; %lld trials, %lld side by side%s\n", directory.c_str(), aim_text(head.aim).c_str(),
              static_cast<long long>(planned_trials(head, events)), static_cast<long long>(places.most()),
              places.follows() && places.most() > 1 ? ", fewer while other programs need the cores" : "");
  return run_trials(directory, job, head, events, file, self, places, system_clock());
}

// A study that is begun in a turn of its first process.
StudyFile begin_study(const StudyProcess& self, const std::string& directory, const spec::Job& job,
                      const StudyHead& head) {
  const auto turn = self.next_turn();
  if (!system_disk().exists(study_path(directory))) {  // before there is a study to go on with: it needs both
    keep_earlier(system_disk(), directory, job, head);
    write_durably(system_disk(), directory + "/job.yaml", head.job);
  }
  return StudyFile(system_disk(), study_path(directory), head);
}

}  // namespace

int tune_job(const Arguments& arguments) {
  std::vector<std::string> words;
  std::string directory;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--study" && i + 1 < arguments.size()) {
      directory = arguments[++i];
    } else if (arguments[i].starts_with("-")) {
      throw UsageError("no option '" + arguments[i] + "', or it needs a value",
                       "how to search is said by overrides, as tune.trials=4; sinew tune --help");
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
  check_search(*job, words[0]);
  const StudyHead head{read_text(system_disk(), words[0]),
                       overrides,
                       job->tune.sampler,
                       pruner_of(job->tune),
                       aim_of(*job),
                       job->tune.trials,
                       evaluations_of(*job)};
  const Tuning possible(tuning_options(head, job->tune, space_of(job->tune)));  // says no before there is a directory
  if (directory.empty()) directory = rundir::new_run_directory("runs", job->name, system_clock()) + "-study";
  system_disk().make_directories(directory);
  StudyProcess self(system_disk(), directory, system_clock());
  StudyFile file = begin_study(self, directory, *job, head);
  return run_study(directory, *job, head, {}, file, self, places_of(*job));
}

namespace {

// Goes on with a study, which from now on has as many trials as `planned` makes of those planned before. Trials that
// were asked for by name are made even where the study would end early.
int go_on(const std::string& directory, const std::function<int64_t(int64_t)>& planned,
          std::optional<int64_t> places = {}, std::optional<double> cost = {}) {
  const StudyHead head = read_study_head(system_disk(), study_path(directory));
  const spec::Job job = study_job(head, study_path(directory));
  const tune::Space space = space_of(job.tune);
  StudyProcess self(system_disk(), directory, system_clock());
  StudyFile file(system_disk(), study_path(directory));
  std::vector<StudyEvent> events;
  {
    const auto turn = self.next_turn();
    events = file.news(space);
    const int64_t before = planned_trials(head, events), trials = planned(before);
    if (trials != before && trains_in_parts(head.sampler))
      throw UsageError("a population trains to its end: how many parts there are is fixed when it begins",
                       "begin another study, with more tune.trials or a longer trainer.max_duration");
    if (cost && !(job.tune.cost > 0))
      throw UsageError("this study has no tune.cost", "leave cost= out: nothing limits what it costs");
    if (trials != before || cost) {
      events.push_back({.kind = StudyEvent::Kind::extend, .trials = trials, .cost = cost});
      file.append(space, events.back());
    }
  }
  return run_study(directory, job, head, events, file, self, places_of(job, places));
}

}  // namespace

int resume_study(const Arguments& arguments) {
  constexpr const char* kUse = "sinew tune resume DIR [trials=N] [cost=C] [--parallel N]";
  if (arguments.empty()) throw UsageError("resume needs a study", kUse);
  std::optional<int64_t> wanted, places;
  std::optional<double> cost;
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i].starts_with("trials=")) {
      wanted = whole_number("trials", arguments[i].substr(7), 1, kMostTrials);
    } else if (arguments[i].starts_with("cost=")) {
      cost = number_above_0("cost", arguments[i].substr(5));
    } else if (arguments[i] == "--parallel" && i + 1 < arguments.size()) {
      places = whole_number("--parallel", arguments[++i], 1, kMostPlaces);
    } else {
      throw UsageError("'" + arguments[i] + "' is not trials=N or cost=C, or it needs a value", kUse);
    }
  }
  return go_on(
      arguments[0], [&](int64_t trials) { return wanted.value_or(trials); }, places, cost);
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
  const tune::Space space = space_of(job.tune);
  const ReadStudy read = read_study(system_disk(), study_path(directory), space);
  tune::Study study(study_options(read.head, space, job.tune.seed));
  for (const StudyEvent& event : read.events) apply(study, event);
  show_study(system_disk(), directory, study, read.head);
  return kDone;
}

}  // namespace sinew::cli
