// Checks whether one column of a table alone predicts the target: then it most likely has the answer, for example
// because somebody filled it in after the event that the model shall predict.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "train/sanity.h"

namespace sinew::train::sanity {
namespace {

constexpr int64_t kMostRows = 4000;        // rows that are read
constexpr int64_t kFewestRows = 200;       // with fewer rows, a good column may make no error by chance
constexpr double kMostSeconds = 3;         // for all columns together
constexpr double kMostErrors = 0.002;      // a column with more errors than this share is a good column, not a leak
constexpr double kUsualErrors = 0.05;      // without the column, at least this share must be wrong
constexpr double kMostDifference = 0.002;  // regression: error of the column against the spread of the target

// The rows with an even index teach, and the odd ones are predicted. A class is that of the nearest value, and the most
// common one of equal values. A number is interpolated between the means at the two nearest values. Returns the
// predictions of the odd rows.
std::vector<double> predicted_by(const std::vector<float>& column, const std::vector<double>& targets, bool classes) {
  std::map<float, std::vector<double>> seen;
  for (size_t i = 0; i < column.size(); i += 2) seen[column[i]].push_back(targets[i]);
  std::map<float, double> answer;
  for (const auto& [value, known] : seen) {
    if (!classes) {
      answer[value] = std::accumulate(known.begin(), known.end(), 0.0) / static_cast<double>(known.size());
      continue;
    }
    std::map<double, int64_t> votes;
    for (const double target : known) ++votes[target];
    answer[value] = std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) {
                      return a.second < b.second;
                    })->first;
  }
  std::vector<double> guesses;
  for (size_t i = 1; i < column.size(); i += 2) {
    const auto above = answer.lower_bound(column[i]);
    if (above == answer.begin() || above == answer.end()) {
      guesses.push_back(above == answer.end() ? std::prev(above)->second : above->second);
      continue;
    }
    const auto below = std::prev(above);
    const double part =
        (static_cast<double>(column[i]) - below->first) / (static_cast<double>(above->first) - below->first);
    const double nearest = part < 0.5 ? below->second : above->second;
    guesses.push_back(classes ? nearest : std::lerp(below->second, above->second, part));
  }
  return guesses;
}

// Classification: the share of wrong guesses. Regression: the median of the absolute errors.
double leak_error(const std::vector<double>& guesses, const std::vector<double>& targets, bool classes) {
  std::vector<double> errors;
  for (size_t i = 0; i < guesses.size(); ++i) errors.push_back(std::abs(guesses[i] - targets[2 * i + 1]));
  if (classes)
    return static_cast<double>(std::ranges::count_if(errors, [](double error) { return error > 0; })) /
           static_cast<double>(errors.size());
  std::ranges::nth_element(errors, errors.begin() + static_cast<int64_t>(errors.size() / 2));
  return errors[errors.size() / 2];
}

}  // namespace

void check_leak(Subject& subject, SanityFinding& finding) {
  const data::DataInfo& info = subject.info();
  const bool classes = info.task == data::Task::classification;
  if (!is_table(info)) {
    finding.verdict = Verdict::skip;
    finding.what = "the samples are not rows of a table with one target";
    return;
  }
  const std::vector<data::InputGroup> groups = data::input_groups(info);
  const data::Batch batch = subject.load(data::Split::train, subject.draw(subject.train, kMostRows, 77));
  const std::vector<double> targets = target_values(batch);
  if (judge_counters(subject, batch, groups, targets, finding)) return;
  if (groups.size() < 2 || batch.count() < kFewestRows) {
    finding.verdict = Verdict::skip;
    finding.what = groups.size() < 2 ? "there is only one column"
                                     : format("%lld rows are too few to tell", static_cast<long long>(batch.count()));
    return;
  }
  const std::vector<float> nothing(targets.size(), 0.0F);
  const double usual = leak_error(predicted_by(nothing, targets, classes), targets, classes);
  size_t best = 0, compared = 0;
  double least = usual;
  for (const double end = subject.until(kMostSeconds); compared < groups.size() && subject.now() < end; ++compared) {
    const std::vector<float> column = column_values(batch, groups[compared]);
    const double error = leak_error(predicted_by(column, targets, classes), targets, classes);
    if (error >= least) continue;
    least = error;
    best = compared;
  }
  const std::string name = least < usual ? "'" + column_of(info, groups[best]) + "'" : "";
  const std::string some =
      compared == groups.size() ? "" : format(" (%zu of %zu columns compared in the time)", compared, groups.size());
  if (name.empty()) {
    finding.what = "no column predicts the target by itself" + some;
    return;
  }
  finding.what = classes ? format("the best single column, %s, is wrong in %.1f %% of the rows; without it %.1f %%",
                                  name.c_str(), 100 * least, 100 * usual)
                         : format("the best single column, %s, leaves %.1f %% of the target's spread", name.c_str(),
                                  100 * least / usual);
  finding.what += some;
  const bool leak = classes ? least <= kMostErrors && usual >= kUsualErrors : least <= kMostDifference * usual;
  if (!leak) return judge_suspects(subject, batch, groups, best, least, finding);
  judge(finding, Verdict::fail, "target_leak",
        "column " + name + " alone predicts the target, so it is probably a copy of it, or known only afterwards",
        "if new rows do not have it when you predict: data.columns.ignore: [" + name + "]");
}

}  // namespace sinew::train::sanity
