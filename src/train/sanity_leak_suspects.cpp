// Judges columns that tell more about the target than columns usually do, though none is an exact copy of it: a counter
// that sorts the target, a column that knows what all others together do not, and columns that add up to the target.
#include <algorithm>
#include <cmath>
#include <map>

#include "train/sanity_probes.h"
#include "train/sanity_statistics.h"

namespace sinew::train::sanity {
namespace {

constexpr double kSorts = 0.25, kSortsPartly = 0.6;  // shares of the usual change between neighbours
constexpr double kAlone = 0.03;                      // a column with more errors is a usual good column
constexpr double kOthers = 4, kFewestErrors = 0.08;  // the others must have so many times its errors, and so many
constexpr int64_t kMostOthers = 1024;                // inputs; the learners take time with their cube
constexpr double kCounterSeconds = 1;
constexpr double kExact = 0.002;      // error of a sum against the spread of the target
constexpr double kSameWeight = 0.02;  // relative
constexpr double kPart = 0.05;        // a column with a smaller part in a sum is not named

// The samples without the inputs of one column.
Samples without(const Samples& samples, const std::vector<int64_t>& kept) {
  return {samples.inputs.index_select(1, torch::tensor(kept)), samples.labels};
}

// The share of rows that the better of two simple learners gets wrong without the column; the last third of the rows is
// asked.
double errors_without(const Subject& subject, const data::Batch& batch, const std::vector<data::InputGroup>& groups,
                      const std::string& column) {
  std::vector<int64_t> kept;
  for (const data::InputGroup& group : groups) {
    for (int64_t i = 0; i < group.count && column_of(subject.info(), group) != column; ++i)
      kept.push_back(group.first + i);
  }
  if (kept.empty() || static_cast<int64_t>(kept.size()) > kMostOthers)
    return 0;  // nothing to compare with, or too much
  const int64_t learned = std::min<int64_t>(2048, batch.count() * 2 / 3);
  const torch::Tensor inputs = tensor_of(batch.input), labels = tensor_of(batch.target);
  const Samples first = {inputs.slice(0, 0, learned), labels.slice(0, 0, learned)},
                last = {inputs.slice(0, learned), labels.slice(0, learned)};
  const Probes probes(subject.info().classes, without(first, kept), without(last, kept));
  double least = 1;
  for (const Learner& learner : {probes.linear(), probes.neighbours()}) {
    const torch::Tensor wrong = probes.named(learner.held) != probes.held().labels;
    least = std::min(least, wrong.to(torch::kFloat64).mean().item<double>());
  }
  return least;
}

// Regression: the error of the best weighted sum of all numbers, and the columns that have a part in it.
struct Sum {
  double error = 1;  // median, against the spread of the target
  std::vector<std::string> columns;
  bool plain = true;  // the columns are added or subtracted as they are, as the parts of a total
};

// The deviation by which each input of a number was divided.
std::map<int64_t, double> scales_of(const data::DataInfo& info) {
  std::map<int64_t, double> scales;
  if (info.preparation.empty()) return scales;
  for (const data::PreparedColumn& column : data::preparation_of(info).columns) {
    if (column.kind == data::PreparedColumn::Kind::number) scales[column.number_at] = column.std;
  }
  return scales;
}

Sum best_sum(const Subject& subject, const data::Batch& batch, const std::vector<data::InputGroup>& groups) {
  std::vector<int64_t> places;
  std::vector<std::string> names;
  for (const data::InputGroup& group : groups) {
    if (group.kind != data::InputGroup::Kind::number) continue;
    places.push_back(group.first);
    names.push_back("'" + column_of(subject.info(), group) + "'");
  }
  if (places.size() < 2 || batch.count() < 4 * static_cast<int64_t>(places.size())) return {};
  const torch::Tensor x = tensor_of(batch.input).to(torch::kFloat64).index_select(1, torch::tensor(places)),
                      y = tensor_of(batch.target).to(torch::kFloat64);
  const torch::Tensor centred = x - x.mean(0), wanted = y - y.mean();
  const double spread = wanted.abs().median().item<double>();
  if (!(spread > 0)) return {};
  const auto columns = static_cast<int64_t>(places.size());
  const torch::Tensor gram = centred.t().mm(centred);
  const double least = 1e-9 * gram.trace().item<double>() / static_cast<double>(columns);
  const torch::Tensor weights =
      torch::linalg_solve(gram + least * torch::eye(columns, torch::kFloat64), centred.t().mv(wanted));
  Sum sum{(centred.mv(weights) - wanted).abs().median().item<double>() / spread, {}};
  const torch::Tensor parts = weights.abs() * centred.std(0);
  std::map<int64_t, double> scales = scales_of(subject.info());
  double first = 0;
  for (int64_t i = 0; i < columns; ++i) {
    if (parts[i].item<double>() <= kPart * parts.max().item<double>()) continue;
    const auto at = static_cast<size_t>(i);
    const auto scale = scales.find(places[at]);
    const double weight = std::abs(weights[i].item<double>()) / (scale == scales.end() ? 1 : scale->second);
    if (sum.columns.empty()) first = weight;
    sum.columns.push_back(names[at]);
    sum.plain = sum.plain && std::abs(weight - first) < kSameWeight * first;
  }
  return sum;
}

void judge_sum(const Subject& subject, const data::Batch& batch, const std::vector<data::InputGroup>& groups,
               SanityFinding& finding) {
  const Sum sum = best_sum(subject, batch, groups);
  if (sum.error > kExact || !sum.plain || sum.columns.size() < 2) return;
  std::string names;
  for (size_t i = 0; i < sum.columns.size() && i < 4; ++i) names += (i > 0 ? ", " : "") + sum.columns[i];
  finding.what += format("; a sum of columns leaves %.2f %% of the target's spread: ", 100 * sum.error) + names;
  judge(finding, Verdict::warn, "target_sum",
        "the target is a sum of the columns " + names + ", so they are its parts, and known only together with it",
        "if new rows do not have them when you predict: data.columns.ignore: [" + names + "]");
}

}  // namespace

bool judge_counters(const Subject& subject, const data::Batch& batch, const std::vector<data::InputGroup>& groups,
                    const std::vector<double>& targets, SanityFinding& finding) {
  const data::DataInfo& info = subject.info();
  const double end = subject.until(kCounterSeconds);
  for (const data::InputGroup& group : groups) {
    if (subject.now() > end) return false;
    if (group.kind != data::InputGroup::Kind::number) continue;
    const std::string column = column_of(info, group);
    const std::vector<float> values = column_values(batch, group);
    if (column == subject.job.data.split_by || is_date(info, column) || !counts_up(values)) continue;
    const double change = change_in_order(values, targets, info.task == data::Task::classification);
    if (change > kSortsPartly) continue;
    finding.what = format("'%s' numbers the rows, and in its order the target changes %.0f %% as often as by chance",
                          column.c_str(), 100 * change);
    judge(finding, change <= kSorts ? Verdict::fail : Verdict::warn, "id_leak",
          "column '" + column + "' is the place of a row in a file that was sorted by the target, or a hidden time",
          "data.columns.ignore: ['" + column + "']; if it is a time: data.split.by: " + column);
    return true;
  }
  return false;
}

void judge_suspects(const Subject& subject, const data::Batch& batch, const std::vector<data::InputGroup>& groups,
                    size_t best, double error, SanityFinding& finding) {
  if (subject.info().task != data::Task::classification) return judge_sum(subject, batch, groups, finding);
  if (error > kAlone) return;
  const std::string column = column_of(subject.info(), groups[best]);
  const double others = errors_without(subject, batch, groups, column);
  finding.what += format("; all others together %.1f %%", 100 * others);
  if (others < kFewestErrors || others < kOthers * error) return;
  judge(finding, Verdict::warn, "target_leak",
        "column '" + column + "' knows what all others together do not, so it was probably filled in afterwards",
        "if new rows do not have it when you predict: data.columns.ignore: ['" + column + "']");
}

}  // namespace sinew::train::sanity
