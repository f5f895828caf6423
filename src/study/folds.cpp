#include "study/folds.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/exit_code.h"
#include "base/json_text.h"
#include "report/report.h"
#include "study/directory.h"
#include "study/study.h"
#include "study/text.h"

namespace sinew::study {
namespace {

std::string status_of(tune::TrialState state) {
  return state == tune::TrialState::complete ? "done" : state == tune::TrialState::failed ? "failed" : "stopped";
}

// Adds the mean of each metric over the folds, and its standard deviation as NAME_std. A metric that a fold lacks, such
// as the AUC of a fold with one class, has neither.
void add_means(rundir::Outcome& outcome) {
  const auto count = static_cast<double>(outcome.folds.size());
  for (const auto& [name, first] : outcome.folds.front().metrics) {
    const auto has = [&](const rundir::FoldResult& fold) { return fold.metrics.contains(name); };
    if (!std::ranges::all_of(outcome.folds, has)) continue;
    double sum = 0, squared = 0;
    for (const rundir::FoldResult& fold : outcome.folds) sum += fold.metrics.at(name);
    const double mean = sum / count;
    for (const rundir::FoldResult& fold : outcome.folds) {
      const double distance = fold.metrics.at(name) - mean;
      squared += distance * distance;
    }
    outcome.last[name] = mean;
    outcome.last[name + "_std"] = std::sqrt(squared / (count - 1));
  }
}

void judge_objective(rundir::Outcome& outcome, const spec::Job& job) {
  if (!job.objective) return;
  const auto found = outcome.last.find(job.objective->metric);
  const double value = found == outcome.last.end() ? std::nan("") : found->second;
  const bool met = job.objective->at_least ? value >= job.objective->value : value <= job.objective->value;
  outcome.objective = {to_string(*job.objective), met, value};
}

void set_status(rundir::Outcome& outcome, int64_t folds) {
  const auto folds_that_are = [&](const std::string& status) {
    std::string names;
    for (const rundir::FoldResult& fold : outcome.folds)
      if (fold.status == status) names += (names.empty() ? "" : ", ") + std::to_string(fold.fold);
    return names;
  };
  const std::string failed = folds_that_are("failed"), missing = folds_that_are("missing");
  const bool done = std::ranges::count(outcome.folds, "done", &rundir::FoldResult::status) == folds;
  const bool bad = !failed.empty() || !missing.empty();
  outcome.status = bad ? "failed" : done ? "done" : "stopped";
  outcome.exit_code = bad ? kTrainingError : done ? kDone : kResumable;
  if (failed.empty() && !missing.empty()) {
    outcome.error = "no mean over the folds, because the directories of these are gone: " + missing;
    outcome.hint = "restore them (sinew runs restore), or train the folds in another directory";
  }
  if (failed.empty()) return;
  outcome.error = "no mean over the folds, because these failed: " + failed;
  outcome.hint =
      "the output.log of each fold in trials/ says why; once that is mended, sinew resume trains these folds";
}

}  // namespace

bool leads_folds(const spec::Job& job) {
  return job.data.trains_folds() && job.tune.search.size() == 1 && job.tune.search[0].key == kFoldOption;
}

std::vector<std::string> overrides_for_folds(const spec::Job& job, std::vector<std::string> overrides) {
  std::erase_if(overrides,
                [](const std::string& word) { return word.starts_with("tune.") || word.starts_with("tune="); });
  const std::string folds = std::to_string(job.data.folds), last = std::to_string(job.data.folds - 1);
  std::string tune = std::string("tune={search: {") + kFoldOption + ": {low: 0, high: " + last + "}}, sampler: grid, " +
                     "pruner: none, trials: " + folds;
  if (job.tune.parallel) tune += ", parallel: " + std::to_string(*job.tune.parallel);
  overrides.push_back(tune + "}");
  return overrides;
}

rundir::Outcome outcome_of_folds(Disk& disk, const OpenStudy& study, const tune::Study& trials,
                                 const TrialResults& results) {
  rundir::Outcome outcome;
  outcome.job = study.job.name;
  for (const tune::Trial& trial : trials.trials()) {
    const std::string own = trial_directory(study.directory, trial.id);
    rundir::FoldResult fold{
        static_cast<int64_t>(trial.point[0]), own.substr(study.directory.size() + 1), status_of(trial.state), {}};
    if (const auto ended = rundir::parse_outcome(rundir::report_text(disk, own))) {
      if (trial.state == tune::TrialState::complete) fold.metrics = results.measured(trial.id, *ended);
      const double began = outcome.started_wall_seconds;
      outcome.started_wall_seconds =
          began == 0 ? ended->started_wall_seconds : std::min(began, ended->started_wall_seconds);
      outcome.seconds += ended->seconds;
      outcome.steps += ended->steps;
      outcome.samples += ended->samples;
      outcome.epochs += ended->epochs;
    } else if (trial.state == tune::TrialState::complete) {
      fold.status = "missing";
    }
    outcome.folds.push_back(std::move(fold));
  }
  std::ranges::sort(outcome.folds, {}, &rundir::FoldResult::fold);
  set_status(outcome, study.job.data.folds);
  if (outcome.status == "done") add_means(outcome);
  judge_objective(outcome, study.job);
  return outcome;
}

std::string write_folds(Disk& disk, const std::string& directory, const rundir::Outcome& outcome) {
  if (outcome.status == "done") {
    nlohmann::ordered_json line = {{"step", outcome.steps},
                                   {"samples", outcome.samples},
                                   {"time", json_number(outcome.started_wall_seconds + outcome.seconds)}};
    for (const auto& [name, value] : outcome.last) line[name] = json_number(value);
    write_durably(disk, rundir::file_in(directory, rundir::kMetricsFile), dump_json(line) + "\n");
  }
  std::string trouble = report::keep_run_page(disk, directory, outcome);
  write_durably(disk, rundir::file_in(directory, rundir::kOutcomeFile), rundir::outcome_json(outcome));
  return trouble;
}

std::string folds_summary(const std::string& directory, const rundir::Outcome& outcome) {
  std::string text = report::folds_table(outcome.folds, outcome.last);
  if (!outcome.error.empty()) text += outcome.error + "\n" + outcome.hint + "\n";
  if (outcome.objective)
    text += "objective " + std::string(outcome.objective->met ? "met" : "not met") +
            " by the mean: " + outcome.objective->text + ", and it is " + short_number(outcome.objective->value) + "\n";
  return text + "the models of the folds: " + directory + "/trials/*/model\n" +
         "the run as a page: " + rundir::file_in(directory, rundir::kRunPageFile) + "\n";
}

}  // namespace sinew::study
