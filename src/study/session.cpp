#include <algorithm>

#include "base/proc.h"
#include "base/shell_loop.h"
#include "report/report.h"
#include "study/directory.h"
#include "study/folds.h"
#include "study/record_file.h"
#include "study/search_space.h"
#include "study/study.h"
#include "study/study_shell.h"
#include "study/text.h"

namespace sinew::study {
namespace {

constexpr double kTurnSeconds = 0.05;

// Returns the pruner of a study. It is "none" if there are several objectives or constraints, because pruners judge by
// one metric. It is also "none" for a population, because pruners cannot judge generations, and for folds: a trial that
// trains all of them measures only their means, at its end.
std::string pruner_of(const spec::Job& job) {
  const spec::TuneOptions& tune = job.tune;
  const bool can_prune = tune.objectives.empty() && tune.constraints.empty() && !trains_in_generations(tune.sampler);
  return can_prune && !job.data.trains_folds() ? tune.pruner : "none";
}

// Returns as many slots as the user asked for, or else as many trials as the machine's free cores can run.
TrialSlots slots_of(const spec::Job& job, std::optional<int64_t> wanted) {
  if (!wanted) wanted = job.tune.parallel;
  SlotOptions options;
  options.adaptive = !wanted && !job.tune.deterministic;
  options.cores = static_cast<double>(own_cores().size());
  options.allowed = static_cast<double>(usable_cores());
  options.each = job.command.given() ? std::max(1.0, job.command.resources.cpus)
                                     : static_cast<double>(job.trainer.lanes.value_or(1) * job.workers.max);
  options.most = wanted.value_or(std::max<int64_t>(1, static_cast<int64_t>(options.allowed / options.each)));
  if (!wanted && job.tune.deterministic) options.most = std::min(options.most, kDefaultLag);
  return TrialSlots(options);
}

class Session final : public StudySession {
 public:
  Session(const Options& options, const std::string& directory)
      : options_(options), leader_(options.disk, directory, options.clock) {
    study_.directory = directory;
  }

  void begin(const NewStudy& study, const StudyHead& head);
  void resume(const Extension& extension);

  int run(SignalSource& signals) override {
    StudyShell shell(options_, study_, *record_, leader_, slots_of(study_.job, options_.slots));
    return run_shell(shell, signals, kTurnSeconds);
  }

 private:
  void extend(const tune::Space& space, const Extension& extension);
  void retry_failed(const tune::Space& space);
  void prepare() const;

  Options options_;
  StudyLeader leader_;
  OpenStudy study_;
  std::optional<RecordFile> record_;
};

void Session::begin(const NewStudy& study, const StudyHead& head) {
  study_.job = study.job;
  study_.head = head;
  const std::string path = study_path(study_.directory);
  {
    const auto lock = leader_.lock();
    if (!options_.disk.exists(path)) {  // the event log comes last, so a study that exists is complete
      copy_earlier_studies(options_.disk, study_.directory, study_.job, head);
      write_durably(options_.disk, rundir::file_in(study_.directory, rundir::kJobFile), head.job);
      if (leads_folds(study_.job)) {
        spec::Job run = study_.job;
        run.tune = {};
        write_durably(options_.disk, rundir::file_in(study_.directory, rundir::kResolvedFile), spec::to_yaml(run));
      }
    }
    record_.emplace(options_.disk, path, head);
  }
  prepare();
}

void Session::resume(const Extension& extension) {
  const std::string path = study_path(study_.directory);
  study_.head = read_study_head(options_.disk, path);
  study_.job = study_job(study_.head, path, options_.environment);
  const tune::Space space = space_of(study_.job.tune);
  record_.emplace(options_.disk, path);
  {
    const auto lock = leader_.lock();
    study_.events = record_->news(space);
    extend(space, extension);
    if (leads_folds(study_.job)) retry_failed(space);
  }
  prepare();
}

void Session::extend(const tune::Space& space, const Extension& extension) {
  const int64_t before = planned_trials(study_.head, study_.events);
  int64_t trials = extension.trials.value_or(before);
  if (extension.more_trials > 0) trials = std::min(before + extension.more_trials, kMostTrials);
  if (trials != before && trains_in_generations(study_.head.sampler))
    throw UsageError("STUDY_POPULATION_FIXED",
                     "the number of trials of a population is fixed when the study begins, because it divides each "
                     "training into generations",
                     "begin another study with more tune.trials or a longer trainer.max_duration");
  if (extension.cost && !(study_.job.tune.cost > 0))
    throw UsageError("STUDY_NO_COST_LIMIT", "this study has no tune.cost, so nothing limits its cost",
                     "leave --cost out");
  if (trials == before && !extension.cost) return;
  study_.events.push_back({.kind = StudyEvent::Kind::extend, .trials = trials, .cost = extension.cost});
  record_->append(space, study_.events.back());
}

// A cross-validation needs all its folds. So a fold that failed, for example because the disk was full, trains again.
void Session::retry_failed(const tune::Space& space) {
  tune::Study trials(study_options(study_.head, space, study_.job.tune.seed));
  for (const StudyEvent& event : study_.events) apply(trials, event);
  for (const tune::Trial& trial : trials.trials()) {
    if (trial.state != tune::TrialState::failed) continue;
    study_.events.push_back({.kind = StudyEvent::Kind::retry, .id = trial.id, .leader = leader_.name()});
    record_->append(space, study_.events.back());
  }
}

void Session::prepare() const {
  for (const std::string& directory : {study_.directory, study_.directory + "/.sinew"})
    rundir::remove_abandoned_writes(options_.disk, directory);  // of leaders that were killed
  if (!study_.job.command.given() && options_.record_data)
    options_.record_data(study_.job, study_.directory, study_.directory);
  if (leads_folds(study_.job)) {  // those of an earlier session, which stopped
    options_.disk.remove_file(rundir::file_in(study_.directory, rundir::kOutcomeFile));
    options_.disk.remove_file(rundir::file_in(study_.directory, rundir::kRunPageFile));
  }
  if (!options_.output) return;
  const TrialSlots slots = slots_of(study_.job, options_.slots);
  const std::string less = slots.adaptive() && slots.most() > 1 ? ", fewer while other programs use the cores" : "";
  if (leads_folds(study_.job))
    return options_.output("cross-validation: " + study_.directory + "; " + std::to_string(study_.job.data.folds) +
                           " folds, " + std::to_string(slots.most()) + " side by side" + less);
  options_.output("study: " + study_.directory + "; " + aim_text(study_.head.aim) + "; " +
                  std::to_string(planned_trials(study_.head, study_.events)) + " trials, " +
                  std::to_string(slots.most()) + " side by side" + less);
}

}  // namespace

std::unique_ptr<StudySession> begin(const Options& options, const NewStudy& study) {
  const spec::TuneOptions& tune = study.job.tune;
  if (tune.search.empty())
    throw UsageError("TUNE_NO_SEARCH", study.job_path + " has no tune.search, so there is nothing to vary",
                     "for example 'tune: {search: {optimizer.lr: {low: 1e-4, high: 1e-1, log: true}}}'");
  // The check of the job would use the value of the override. No trial would use it, because each trial sets this
  // option itself.
  if (const std::string key = spec::overridden(tune.search, study.overrides); !key.empty())
    throw UsageError("TUNE_SEARCHED_AND_GIVEN", "an override gives '" + key + "' a value, and tune.search varies it",
                     "remove the override, or remove " + key + " from tune.search");
  if (study.job.data.trains_folds() && trains_in_generations(tune.sampler))
    throw UsageError("TUNE_FOLDS_IN_GENERATIONS",
                     "tune.sampler: " + tune.sampler + " cannot train the folds of data.split.folds: a generation " +
                         "continues one training, and a trial has one for each fold",
                     "choose another sampler, or one fold for all trials: data.split.fold=0");
  check_search(study.job, study.job_path);
  const StudyHead head{.job = study.job_text,
                       .overrides = study.overrides,
                       .sampler = tune.sampler,
                       .pruner = pruner_of(study.job),
                       .aim = aim_of(study.job),
                       .trials = tune.trials,
                       .max_resource = evaluations_of(study.job)};
  const TrialScheduler check(scheduler_options(head, tune, space_of(tune)));  // throws before the directory exists
  options.disk.make_directories(study.directory);
  auto session = std::make_unique<Session>(options, study.directory);
  session->begin(study, head);
  return session;
}

std::unique_ptr<StudySession> train_folds(const Options& options, NewStudy study, bool resume) {
  Disk& disk = options.disk;
  if (resume && is_study(disk, study.directory)) return study::resume(options, study.directory, {});
  // A resolved.yaml alone is that of a session that was killed as it began.
  for (const std::string& file :
       {study_path(study.directory), rundir::file_in(study.directory, rundir::kEnvironmentFile)}) {
    if (disk.exists(file))
      throw UsageError("RUN_EXISTS", study.directory + " already holds a run",
                       "choose another directory, or go on with it: sinew resume " + study.directory);
  }
  study.overrides = overrides_for_folds(study.job, std::move(study.overrides));
  const spec::Reading reading = spec::read_job(study.job_text, study.job_path, study.overrides, options.environment);
  if (!reading.problems.empty())
    throw UsageError(reading.problems[0].code, reading.problems[0].what, reading.problems[0].hint);
  study.job = reading.job;
  return begin(options, study);
}

bool is_study(Disk& disk, const std::string& directory) {
  return disk.exists(study_path(directory));
}

std::unique_ptr<StudySession> resume(const Options& options, const std::string& directory, const Extension& extension) {
  read_study_head(options.disk, study_path(directory));  // throws before a session joins as a leader
  auto session = std::make_unique<Session>(options, directory);
  session->resume(extension);
  return session;
}

void report(const Options& options, const std::string& directory) {
  const std::string path = study_path(directory);
  const StudyHead head = read_study_head(options.disk, path);
  const spec::Job job = study_job(head, path, options.environment);
  const tune::Space space = space_of(job.tune);
  tune::Study study(study_options(head, space, job.tune.seed));
  OpenStudy open{directory, job, head, read_study(options.disk, path, space).events};
  for (const StudyEvent& event : open.events) apply(study, event);
  if (!leads_folds(job)) return show_study(options, directory, study, head, study_summary(directory, study, head));
  const rundir::Outcome outcome = outcome_of_folds(options.disk, open, study, TrialResults(open));
  report::keep_run_page(options.disk, directory, outcome);
  output_lines(options, folds_summary(directory, outcome));
}

}  // namespace sinew::study
