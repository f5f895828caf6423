// Checks the data alone: its values, its classes, and samples that are in both splits.
#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "train/sanity.h"

namespace sinew::train::sanity {
namespace {

constexpr double kMajority = 0.95;   // above this fraction of one class, a constant prediction looks good
constexpr double kRepeated = 0.01;   // fraction of val; images and texts without copies have far fewer repetitions
constexpr double kLargeInputs = 50;  // default initialisations do not suit a mean or standard deviation above this

struct DigestHash {
  size_t operator()(const Digest& digest) const { return digest.low; }
};

std::string class_name(const data::DataInfo& info, int64_t index) {
  const auto at = static_cast<size_t>(index);
  return at < info.class_names.size() ? "'" + info.class_names[at] + "'" : std::to_string(index);
}

std::string coverage_text(const Facts& facts) {
  if (facts.complete()) return std::to_string(facts.size) + " samples";
  return std::to_string(facts.samples.size()) + " of " + std::to_string(facts.size) + " samples";
}

// Reports the first problem that would make every trial training meaningless. Returns whether there is such a problem.
bool broken(Subject& subject, SanityFinding& finding) {
  for (const auto& [facts, split] :
       {std::pair{&subject.train, data::Split::train}, std::pair{&subject.val, data::Split::val}}) {
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

void check_duplicates(Subject& subject, SanityFinding& finding) {
  const Facts &train = subject.train, &val = subject.val;
  if (val.samples.empty()) {
    finding.verdict = Verdict::skip;
    finding.what = "there is no validation data";
    return;
  }
  std::unordered_map<Digest, int64_t, DigestHash> first;
  int64_t repeated_in_train = 0, repeated = 0;
  for (size_t i = 0; i < train.inputs.size(); ++i)
    repeated_in_train += first.emplace(train.inputs[i], train.samples[i]).second ? 0 : 1;
  std::string example;
  for (size_t i = 0; i < val.inputs.size(); ++i) {
    const auto found = first.find(val.inputs[i]);
    if (found == first.end()) continue;
    if (++repeated == 1)
      example = subject.data.describe(data::Split::val, val.samples[i]) + " = " +
                subject.data.describe(data::Split::train, found->second);
  }
  const double share = static_cast<double>(repeated) / static_cast<double>(val.inputs.size());
  const double natural = static_cast<double>(repeated_in_train) / static_cast<double>(train.inputs.size());
  finding.what = format("%lld of %zu validation inputs (%.1f %%) are also in train", static_cast<long long>(repeated),
                        val.inputs.size(), 100 * share);
  if (!train.complete()) finding.what += " (" + coverage_text(train) + " checked)";
  if (repeated <= 1 || share <= kRepeated) return;
  finding.what += ", first: " + example;
  // Rows with few distinct values repeat naturally, within train about as often as across the splits.
  if (subject.info().input_shape.size() == 1 && share < 2 * natural) {
    finding.what += format("; %.1f %% repeat within train", 100 * natural);
    if (subject.reads_tokens()) return;
    judge(finding, Verdict::warn, "rows_repeat", "rows have few distinct values, or copies were made before the split",
          "if copies were made, split first");
    return;
  }
  judge(finding, Verdict::fail, "duplicates", "train and val overlap, so validation would reward overfitting",
        "remove the copies from train, or split again: data.split.val");
}

}  // namespace sinew::train::sanity
