#include "study/table.h"

#include <algorithm>
#include <cstdio>

#include "base/printable.h"
#include "study/folds.h"
#include "study/search_space.h"
#include "study/text.h"

namespace sinew::study {
namespace {

constexpr size_t kBest = 3;

std::string duration_text(double seconds) {
  const auto whole = static_cast<long long>(seconds);
  char text[48];
  std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
  return text;
}

// Whether the trials are the folds of a cross-validation.
bool of_folds(const tune::Study& study) {
  return study.space().size() == 1 && study.space()[0].name == kFoldOption;
}

std::string head_line(const tune::Study& study, double seconds) {
  const auto count = [&](tune::TrialState state) {
    return std::ranges::count(study.trials(), state, &tune::Trial::state);
  };
  const auto running = count(tune::TrialState::running), paused = count(tune::TrialState::paused);
  std::string text = std::to_string(study.next_id()) + " of " + std::to_string(study.options().budget) +
                     (of_folds(study) ? " folds" : " trials") + " started, " + std::to_string(study.observed().size()) +
                     " ended, " + std::to_string(running) + " running";
  if (paused > 0) text += ", " + std::to_string(paused) + " paused";
  return text + "; " + duration_text(seconds);
}

std::string row(const std::string& what, const std::string& value, const std::string& evaluations, int64_t id,
                const tune::Study& study) {
  const bool fold = of_folds(study);
  char text[96];
  std::snprintf(text, sizeof text, "  %-7s %10s %9s  %s %-5lld", what.c_str(), value.c_str(), evaluations.c_str(),
                fold ? "fold" : "trial", static_cast<long long>(fold ? study.trial(id).point[0] : id));
  std::string line = text;
  if (fold) return line.substr(0, line.find_last_not_of(' ') + 1);
  for (const std::string& change : overrides_of(study.space(), study.trial(id).point)) line += " " + change;
  return line;
}

std::string evaluations_text(const tune::Trial& trial, double all) {
  const std::string count = std::to_string(trial.reports.size());
  return all > 0 ? count + "/" + short_number(all) : count;
}

}  // namespace

std::vector<std::string> study_table(const tune::Study& study, const StudyHead& head, double seconds, int columns,
                                     int rows) {
  std::vector<std::string> lines = {head_line(study, seconds)};
  const auto best = best_first(study);
  for (size_t k = 0; k < std::min(best.size(), kBest); ++k)
    lines.push_back(row(k == 0 ? "best" : "", short_number(best[k]->values[0]),
                        evaluations_text(*best[k], head.max_resource), best[k]->id, study));
  size_t running = 0;
  for (const int64_t id : study.open()) {
    const tune::Trial& trial = study.trial(id);
    if (trial.state != tune::TrialState::running) continue;
    const std::string value = trial.reports.empty() ? "-" : short_number(trial.reports.back().value);
    lines.push_back(row(running++ == 0 ? "running" : "", value, evaluations_text(trial, head.max_resource), id, study));
  }
  const auto most = static_cast<size_t>(std::max(rows, 1));
  if (lines.size() > most) {
    const size_t left_out = lines.size() - most + 1;
    lines.resize(most - 1);
    lines.push_back("  ... " + std::to_string(left_out) + " more");
  }
  for (std::string& line : lines) line = printable_start(line, static_cast<size_t>(std::max(columns - 4, 1)));
  return lines;
}

}  // namespace sinew::study
