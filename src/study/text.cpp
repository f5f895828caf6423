#include "study/text.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/number_text.h"
#include "base/printable.h"
#include "study/directory.h"
#include "study/search_space.h"

namespace sinew::study {
namespace {

constexpr size_t kShown = 10;

std::string counts(const tune::Study& study) {
  std::map<tune::TrialState, int64_t> by_state;
  double evaluations = 0;
  for (const tune::Trial& trial : study.trials()) {
    ++by_state[trial.state];
    evaluations += static_cast<double>(trial.reports.size());
  }
  const std::vector<std::pair<tune::TrialState, std::string>> names = {{tune::TrialState::complete, " complete"},
                                                                       {tune::TrialState::pruned, " pruned"},
                                                                       {tune::TrialState::paused, " paused"},
                                                                       {tune::TrialState::running, " running"},
                                                                       {tune::TrialState::failed, " failed"}};
  std::string text = std::to_string(study.trials().size()) + " trials:";
  std::string between = " ";
  for (const auto& [state, name] : names) {
    if (by_state[state] == 0) continue;
    text += between + std::to_string(by_state[state]) + name;
    between = ", ";
  }
  return text + "; " + short_number(evaluations) + " evaluations\n";
}

std::string changes(const tune::Study& study, const tune::Trial& trial) {
  std::string text;
  for (const std::string& change : overrides_of(study.space(), trial.point)) text += " " + shell_quoted(change);
  return text;
}

// Lists the trials whose states led to the last trial of a population. A single training cannot repeat them, so the
// summary shows this list instead of a command.
std::string generations_text(const tune::Study& study, const tune::Trial& last) {
  std::string text;
  for (const tune::Trial* trial = &last; trial != nullptr; trial = trial->from ? &study.trial(*trial->from) : nullptr)
    text = "  trial " + std::to_string(trial->id) + " " + changes(study, *trial) + "\n" + text;
  return "its generations, each trained from the final state of the one before:\n" + text;
}

}  // namespace

std::vector<const tune::Trial*> best_first(const tune::Study& study) {
  std::vector<const tune::Trial*> trials;
  if (study.objectives() > 1) {
    for (const int64_t id : tune::best_trials(study)) trials.push_back(&study.trial(id));
  } else {
    for (const tune::Trial& trial : study.trials()) {
      const bool known = std::isfinite(study.loss(trial)) && std::isfinite(tune::Study::violation(trial));
      if (trial.state == tune::TrialState::complete && known) trials.push_back(&trial);
    }
  }
  std::ranges::stable_sort(trials, {}, [&](const tune::Trial* trial) {
    return std::pair(tune::Study::violation(*trial), study.loss(*trial));
  });
  return trials;
}

std::string short_number(double value) {
  return rounded_text(value, 5);
}

std::string aim_text(const StudyAim& aim) {
  std::string text;
  for (const auto& [name, minimize] : aim.objectives)
    text += (text.empty() ? "" : ", ") + std::string(minimize ? "minimise " : "maximise ") + name;
  std::string between = " with ";
  for (const spec::Objective& constraint : aim.constraints) {
    text += between + to_string(constraint);
    between = ", ";
  }
  return text;
}

std::string result_text(const StudyAim& aim, const tune::Trial& trial) {
  std::string text;
  for (size_t k = 0; k < trial.values.size(); ++k)
    text += (k == 0 ? "" : ", ") + aim.objectives[k].name + " " + short_number(trial.values[k]);
  std::string between = "; violates ";
  for (size_t k = 0; k < trial.constraints.size(); ++k) {
    if (trial.constraints[k] <= 0) continue;
    text += between + to_string(aim.constraints[k]);
    if (!std::isnan(trial.constraints[k])) text += " by " + short_number(trial.constraints[k]);
    between = ", ";
  }
  return text;
}

std::string study_summary(const std::string& directory, const tune::Study& study, const StudyHead& head) {
  std::string text = counts(study);
  const auto trials = best_first(study);
  if (trials.empty()) {
    const bool ended = std::ranges::count(study.trials(), tune::TrialState::complete, &tune::Trial::state) > 0;
    return text + (ended ? "no trial measured every metric of the search\n" : "no trial is complete yet\n");
  }
  const bool several = study.objectives() > 1;
  if (tune::Study::violation(*trials[0]) > 0) text += "no trial meets the constraints; these come nearest:\n";
  const std::string first = several ? "Pareto front: " : "best ", rest(first.size(), ' ');
  for (size_t i = 0; i < std::min(trials.size(), kShown); ++i) {
    const tune::Trial& trial = *trials[i];
    text += (i == 0 ? first : rest) + result_text(head.aim, trial) + "  trial " + std::to_string(trial.id) + " " +
            changes(study, trial) + "\n";
  }
  if (trials.size() > kShown && several) text += rest + std::to_string(trials.size() - kShown) + " more\n";
  text += several ? "run of the first: " : "its run: ";
  text += trial_directory(directory, trials[0]->id) + "\n";
  if (trials[0]->from) return text + generations_text(study, *trials[0]);
  std::string given;
  for (const std::string& word : head.overrides) given += " " + shell_quoted(word);
  return text + "to train it again: sinew train " + shell_quoted(directory + "/job.yaml") + given +
         changes(study, *trials[0]) + "\n";
}

}  // namespace sinew::study
