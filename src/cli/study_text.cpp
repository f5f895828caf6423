#include "cli/study_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

namespace sinew::cli {
namespace {

constexpr size_t kShown = 10;

std::string counts(const tune::Study& study) {
  std::map<tune::TrialState, int64_t> by_state;
  double evaluations = 0;
  for (const tune::Trial& trial : study.trials()) {
    ++by_state[trial.state];
    evaluations += static_cast<double>(trial.reports.size());
  }
  const std::vector<std::pair<tune::TrialState, std::string>> words = {{tune::TrialState::complete, " complete"},
                                                                       {tune::TrialState::pruned, " stopped early"},
                                                                       {tune::TrialState::paused, " paused"},
                                                                       {tune::TrialState::running, " running"},
                                                                       {tune::TrialState::failed, " failed"}};
  std::string text = std::to_string(study.trials().size()) + " trials:";
  std::string between = " ";
  for (const auto& [state, word] : words) {
    if (by_state[state] == 0) continue;
    text += between + std::to_string(by_state[state]) + word;
    between = ", ";
  }
  return text + "; " + short_number(evaluations) + " evaluations\n";
}

std::vector<const tune::Trial*> best_first(const tune::Study& study) {
  std::vector<const tune::Trial*> trials;
  for (const tune::Trial& trial : study.trials()) {
    if (trial.state == tune::TrialState::complete && std::isfinite(study.loss(trial))) trials.push_back(&trial);
  }
  std::ranges::stable_sort(trials, {}, [&](const tune::Trial* trial) { return study.loss(*trial); });
  return trials;
}

std::string quoted(const std::string& word) {
  return word.find(' ') == std::string::npos ? word : "'" + word + "'";
}

std::string changes(const tune::Study& study, const tune::Trial& trial) {
  std::string text;
  for (const std::string& change : overrides_of(study.space(), trial.point)) text += " " + quoted(change);
  return text;
}

}  // namespace

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", value);
  return text;
}

std::string trial_directory(const std::string& study, int64_t id) {
  char name[32];
  std::snprintf(name, sizeof name, "/trials/%05lld", static_cast<long long>(id));
  return study + name;
}

std::string study_summary(const std::string& directory, const tune::Study& study, const StudyHead& head) {
  std::string text = counts(study);
  const auto trials = best_first(study);
  if (trials.empty()) return text + "no trial came to its end yet\n";
  for (size_t i = 0; i < std::min(trials.size(), kShown); ++i) {
    const tune::Trial& trial = *trials[i];
    text += (i == 0 ? "best " : "     ") + head.monitor + " " + short_number(trial.values[0]) + "  trial " +
            std::to_string(trial.id) + " " + changes(study, trial) + "\n";
  }
  text += "its run: " + trial_directory(directory, trials[0]->id) + "\n";
  std::string given;
  for (const std::string& word : head.overrides) given += " " + quoted(word);
  return text + "train it again: sinew train " + directory + "/job.yaml" + given + changes(study, *trials[0]) + "\n";
}

}  // namespace sinew::cli
