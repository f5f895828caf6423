#include <algorithm>

#include "base/proc.h"
#include "report/report.h"
#include "study/directory.h"
#include "study/run.h"
#include "study/scheduler.h"
#include "study/study.h"
#include "study/text.h"

namespace sinew::study {
namespace {

// The one metric, where the job leaves it open.
std::string monitor_of(const spec::Job& job) {
  const std::string monitor = job.tune.monitor != "auto"         ? job.tune.monitor
                              : job.objective                    ? job.objective->metric
                              : job.checkpoint.monitor != "auto" ? job.checkpoint.monitor
                              : job.command.given()              ? job.early_stopping.monitor
                                                                 : "val/loss";
  if (monitor.empty()) {
    throw UsageError("the job does not say which metric of its command to search by",
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

class Session final : public StudySession {
 public:
  Session(const Options& options, std::string directory)
      : options_(options), directory_(std::move(directory)), self_(options.disk, directory_, options.clock) {}

  void begin(const NewStudy& study, const StudyHead& head);
  void resume(const Extension& extension);
  int run(SignalSource& signals) override {
    return run_trials(options_, directory_, job_, head_, events_, *file_, self_, places_of(job_, options_.slots),
                      signals);
  }

 private:
  void prepare() const;

  const Options& options_;
  std::string directory_;
  StudyProcess self_;
  spec::Job job_;
  StudyHead head_;
  std::vector<StudyEvent> events_;
  std::optional<StudyFile> file_;
};

void Session::begin(const NewStudy& study, const StudyHead& head) {
  job_ = study.job;
  head_ = head;
  {
    const auto turn = self_.next_turn();
    if (!options_.disk.exists(study_path(directory_))) {  // before there is a study to go on with: it needs both
      keep_earlier(options_.disk, directory_, job_, head_);
      write_durably(options_.disk, directory_ + "/job.yaml", head_.job);
    }
    file_.emplace(options_.disk, study_path(directory_), head_);
  }
  prepare();
}

// From now on it has as many trials as `extension` makes of those planned before. Trials that were asked for by name
// are made even where the study would end early.
void Session::resume(const Extension& extension) {
  head_ = read_study_head(options_.disk, study_path(directory_));
  job_ = study_job(head_, study_path(directory_), options_.environment);
  const tune::Space space = space_of(job_.tune);
  file_.emplace(options_.disk, study_path(directory_));
  {
    const auto turn = self_.next_turn();
    events_ = file_->news(space);
    const int64_t before = planned_trials(head_, events_);
    const int64_t trials = extension.trials.value_or(
        extension.more_trials == 0 ? before : std::min(before + extension.more_trials, kMostTrials));
    if (trials != before && trains_in_parts(head_.sampler))
      throw UsageError("a population trains to its end: how many parts there are is fixed when it begins",
                       "begin another study, with more tune.trials or a longer trainer.max_duration");
    if (extension.cost && !(job_.tune.cost > 0))
      throw UsageError("this study has no tune.cost", "leave --cost out: nothing limits what it costs");
    if (trials != before || extension.cost) {
      events_.push_back({.kind = StudyEvent::Kind::extend, .trials = trials, .cost = extension.cost});
      file_->append(space, events_.back());
    }
  }
  prepare();
}

// All data is read for it once, which may take long.
void Session::prepare() const {
  if (!job_.command.given() && options_.record_data) options_.record_data(job_, directory_, directory_);
  const StudyPlaces places = places_of(job_, options_.slots);
  if (options_.output)
    options_.output("study: " + directory_ + "; " + aim_text(head_.aim) + "; " +
                    std::to_string(planned_trials(head_, events_)) + " trials, " + std::to_string(places.most()) +
                    " side by side" +
                    (places.follows() && places.most() > 1 ? ", fewer while other programs need the cores" : ""));
}

}  // namespace

void check_search(const spec::Job& job, const std::string& file) {
  if (job.tune.search.empty()) return;
  try {
    space_of(job.tune);
  } catch (const Error& error) {
    throw UsageError(file + ": " + error.what(), error.hint);
  }
}

std::unique_ptr<StudySession> begin(const Options& options, const NewStudy& study) {
  const spec::TuneOptions& tune = study.job.tune;
  if (tune.search.empty())
    throw UsageError(study.job_path + " has no tune.search: nothing is varied",
                     "for example 'tune: {search: {optimizer.lr: {low: 1e-4, high: 1e-1, log: true}}}'");
  // Its value would hold for the first check of the job, and for no trial.
  if (const std::string key = spec::overridden(tune.search, study.overrides); !key.empty())
    throw UsageError("a value is given for '" + key + "', which tune.search varies", "leave one of the two out");
  check_search(study.job, study.job_path);
  const StudyHead head{study.job_text, study.overrides,          tune.sampler, pruner_of(tune), aim_of(study.job),
                       tune.trials,    evaluations_of(study.job)};
  const Tuning possible(tuning_options(head, tune, space_of(tune)));  // says no before there is a directory
  options.disk.make_directories(study.directory);
  auto session = std::make_unique<Session>(options, study.directory);
  session->begin(study, head);
  return session;
}

std::unique_ptr<StudySession> resume(const Options& options, const std::string& directory, const Extension& extension) {
  read_study_head(options.disk, study_path(directory));  // says no before this process is part of it
  auto session = std::make_unique<Session>(options, directory);
  session->resume(extension);
  return session;
}

void report(const Options& options, const std::string& directory) {
  const StudyHead head = read_study_head(options.disk, study_path(directory));
  const spec::Job job = study_job(head, study_path(directory), options.environment);
  const tune::Space space = space_of(job.tune);
  const ReadStudy read = read_study(options.disk, study_path(directory), space);
  tune::Study study(study_options(read.head, space, job.tune.seed));
  for (const StudyEvent& event : read.events) apply(study, event);
  show_study(options, directory, study, read.head);
}

}  // namespace sinew::study
