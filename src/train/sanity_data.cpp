// Checks the data alone: its values and its classes.
#include <algorithm>
#include <cmath>
#include <set>

#include "train/sanity.h"

namespace sinew::train::sanity {
namespace {

constexpr double kMajority = 0.975;  // above this fraction of one class, a constant prediction looks good
constexpr double kLargeInputs = 50;  // default initialisations do not suit a mean or standard deviation above this

// Reports the first problem that would make every trial training meaningless. Returns whether there is such a problem.
bool broken(Subject& subject, SanityFinding& finding) {
  for (const auto& [facts, split] :
       {std::pair{&subject.train, data::Split::train}, std::pair{&subject.val, data::Split::val},
        std::pair{&subject.test, data::Split::test}}) {
    if (facts->not_finite.count > 0) {
      finding.what = format("%lld samples of %s have inputs that are not finite, first: ",
                            static_cast<long long>(facts->not_finite.count), to_string(split).c_str()) +
                     subject.data.describe(split, facts->not_finite.first);
      judge(finding, Verdict::fail, "input_not_finite", "a missing value, a division by zero or a damaged file",
            "repair or remove these samples");
      return true;
    }
    if (facts->bad_target.count > 0) {
      const bool number = subject.info().task == data::Task::regression;
      finding.what = format("%lld samples of %s have a target that is %s, first: ",
                            static_cast<long long>(facts->bad_target.count), to_string(split).c_str(),
                            number ? "not finite" : "no class") +
                     subject.data.describe(split, facts->bad_target.first);
      judge(finding, Verdict::fail, "target_out_of_range",
            number ? "a missing value"
                   : format("labels must be 0..%lld", static_cast<long long>(subject.info().classes - 1)),
            "repair or remove these samples");
      return true;
    }
  }
  const Facts& train = subject.train;
  if (std::set<Digest>(train.inputs.begin(), train.inputs.end()).size() == 1 && train.samples.size() > 1) {
    finding.what = "all " + coverage_text(train) + " of train have the same input";
    judge(finding, Verdict::fail, "inputs_constant",
          "the job reads the wrong columns or files, or normalisation removed all differences",
          "check data.train and data.columns");
    return true;
  }
  if (subject.info().task == data::Task::regression && train.target_low == train.target_high) {
    finding.what = format("every target of train is %g", train.target_low);
    judge(finding, Verdict::fail, "target_constant", "the wrong column is the target", "set data.columns.target");
    return true;
  }
  return false;
}

void count_constant(const Subject& subject, SanityFinding& finding) {
  const Facts& train = subject.train;
  int64_t constant = 0;
  std::string names;
  for (size_t i = 0; i < train.low.size(); ++i) {
    if (train.low[i] != train.high[i]) continue;
    const auto& known = subject.info().input_names;
    if (++constant <= 3) names += (names.empty() ? "" : ", ") + (i < known.size() ? known[i] : "#" + std::to_string(i));
  }
  if (constant == 0) return;
  finding.what += format("; %lld of %zu features are constant", static_cast<long long>(constant), train.low.size());
  if (subject.info().input_shape.size() != 1) return;  // constant features are normal in images (dark borders)
  finding.what += " (" + names + (constant > 3 ? ", ..." : "") + ")";
  judge(finding, Verdict::warn, "feature_constant", "a column that was never filled in, or data from a single source",
        "exclude them: data.columns.ignore");
}

}  // namespace

void check_data(Subject& subject, SanityFinding& finding) {
  if (broken(subject, finding)) {
    subject.no_training = "the data must be fixed first";
    return;
  }
  const Facts& train = subject.train;
  finding.what = coverage_text(train) + ", all finite";
  if (subject.info().task == data::Task::regression)
    finding.what += format("; target %g to %g", train.target_low, train.target_high);
  if (train.low.empty()) return;
  finding.what += format("; inputs %.3g +- %.3g", train.mean, train.deviation);
  if (subject.reads_indices) {
    finding.what += ", indices of the model";
    return;
  }
  if (std::abs(train.mean) > kLargeInputs || train.deviation > kLargeInputs) {
    judge(finding, Verdict::fail, "inputs_unnormalised",
          "inputs are not normalised, or one column has very large values", "data.normalize=auto");
    return;
  }
  count_constant(subject, finding);
}

void check_classes(Subject& subject, SanityFinding& finding) {
  if (subject.info().task != data::Task::classification) {
    finding.verdict = Verdict::skip;
    finding.what = "there are no classes";
    return;
  }
  const auto &train = subject.train.class_counts, &val = subject.val.class_counts;
  int64_t sum = 0, largest = 0, present = 0, smallest = -1;
  std::string unlearned;
  for (size_t c = 0; c < train.size(); ++c) {
    sum += train[c];
    if (train[c] > train[static_cast<size_t>(largest)]) largest = static_cast<int64_t>(c);
    present += train[c] > 0 ? 1 : 0;
    if (train[c] > 0 && (smallest < 0 || train[c] < train[static_cast<size_t>(smallest)]))
      smallest = static_cast<int64_t>(c);
    if (train[c] == 0 && c < val.size() && val[c] > 0)
      unlearned += (unlearned.empty() ? "" : ", ") + class_name(subject.info(), static_cast<int64_t>(c));
  }
  const auto share = [&](int64_t c) {
    return sum > 0 ? static_cast<double>(train[static_cast<size_t>(c)]) / static_cast<double>(sum) : 0.0;
  };
  if (present <= 1) {
    finding.what = "every training sample that was checked has class " + class_name(subject.info(), largest);
    if (subject.train.complete()) {
      subject.no_training = "there is only one class";
      judge(finding, Verdict::fail, "one_class",
            "labels were lost, the wrong column is the target, or the data was cut while sorted by class",
            "check the labels of data.train");
    }
    return;
  }
  finding.what = format("%lld of %zu classes, from %.1f %% (%s) to %.1f %% (%s)", static_cast<long long>(present),
                        train.size(), 100 * share(smallest), class_name(subject.info(), smallest).c_str(),
                        100 * share(largest), class_name(subject.info(), largest).c_str());
  if (!unlearned.empty() && subject.train.complete()) {
    finding.what += "; in val but never in train: " + unlearned;
    judge(finding, Verdict::fail, "class_missing_in_train", "the data was split by class, or a file is missing",
          "split at random: data.split.val; or add samples of the class");
  } else if (share(largest) > kMajority) {
    judge(finding, Verdict::warn, "imbalance",
          format("a model that always predicts one class would be right %.1f %% of the time", 100 * share(largest)),
          "set loss.balanced: true, and monitor val/f1 or val/auc instead of accuracy");
  }
}

}  // namespace sinew::train::sanity
