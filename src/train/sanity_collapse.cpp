// Checks that the trained model names every class. A model that never names a rare class has a good accuracy, and is of
// no use for that class.
#include <algorithm>

#include "train/sanity_probes.h"

namespace sinew::train::sanity {
namespace {

constexpr int64_t kFewestOfAClass = 8;  // samples without one prediction of their class, before it is judged
constexpr double kFindable = 0.2;       // share of a class's samples that a simple learner finds
constexpr int64_t kMostTaught = 2048;
constexpr int64_t kMostSilent = 3;  // names of classes in the text

std::vector<int64_t> counts_of(const torch::Tensor& values, int64_t classes) {
  const torch::Tensor counts = torch::bincount(values, {}, classes);
  return {counts.data_ptr<int64_t>(), counts.data_ptr<int64_t>() + classes};
}

// The classes that were never named, though the judged samples have enough of them. Validation samples decide if they
// have enough; else all judged samples do.
std::vector<int64_t> silent_classes(const Subject& subject, const ShortRun& run) {
  const int64_t classes = subject.info().classes;
  std::vector<int64_t> named(static_cast<size_t>(classes), 0), present = named, silent;
  std::vector<bool> decided(static_cast<size_t>(classes), false);
  for (const data::Split split : {data::Split::val, data::Split::train}) {
    const auto found = run.named.find(split);
    if (found == run.named.end()) continue;
    const auto said = counts_of(found->second.named, classes), there = counts_of(found->second.labels, classes);
    for (size_t c = 0; c < named.size(); ++c) {
      if (decided[c]) continue;
      named[c] += said[c];
      present[c] += there[c];
      decided[c] = present[c] >= kFewestOfAClass;
    }
  }
  for (size_t c = 0; c < named.size(); ++c) {
    if (decided[c] && named[c] == 0) silent.push_back(static_cast<int64_t>(c));
  }
  return silent;
}

// The share of the samples of each class that the better of two simple learners finds.
std::vector<double> findable(const Subject& subject) {
  const int64_t classes = subject.info().classes;
  const auto chosen = subject.draw(subject.train, kMostTaught, 73);
  const auto middle = chosen.begin() + static_cast<std::ptrdiff_t>(chosen.size() * 2 / 3);
  const Probes probes(classes, samples_of(subject, data::Split::train, {chosen.begin(), middle}),
                      samples_of(subject, data::Split::train, {middle, chosen.end()}));
  std::vector<double> best(static_cast<size_t>(classes), 0);
  for (const Learner& learner : {probes.linear(), probes.neighbours()}) {
    const torch::Tensor named = probes.named(learner.held), labels = probes.held().labels;
    for (int64_t c = 0; c < classes; ++c) {
      const torch::Tensor of_class = labels == c;
      const auto count = of_class.sum().item<double>();
      const double found = count > 0 ? named.eq(c).logical_and(of_class).sum().item<double>() / count : 0;
      best[static_cast<size_t>(c)] = std::max(best[static_cast<size_t>(c)], found);
    }
  }
  return best;
}

}  // namespace

void check_collapse(Subject& subject, SanityFinding& finding) {
  if (subject.info().task != data::Task::classification) {
    finding.verdict = Verdict::skip;
    finding.what = "there are no classes";
    return;
  }
  const ShortRun& run = short_run(subject);
  if (!run.finished) {
    finding.verdict = Verdict::skip;
    finding.what = "there is time for too few steps of training";
    return;
  }
  std::vector<int64_t> silent = silent_classes(subject, run);
  const bool whole = run.steps >= run.planned;
  finding.what = format("trained for %lld steps%s, the model names ", static_cast<long long>(run.steps),
                        whole ? "" : ", the job in short");
  if (silent.empty()) {
    finding.what += "every class that has enough samples to judge";
    return;
  }
  if (!whole) {
    // A longer training may still learn a class that even a simple learner finds.
    const std::vector<double> found = findable(subject);
    std::erase_if(silent, [&](int64_t c) { return found[static_cast<size_t>(c)] >= kFindable; });
  }
  if (silent.empty()) {
    finding.what += "not yet every class, but simple learners do";
    return;
  }
  std::string names;
  for (size_t i = 0; i < silent.size() && static_cast<int64_t>(i) < kMostSilent; ++i) {
    const auto c = static_cast<size_t>(silent[i]);
    const double share = static_cast<double>(subject.train.class_counts[c]) /
                         static_cast<double>(std::max<size_t>(1, subject.train.samples.size()));
    names += (i > 0 ? ", " : "") + class_name(subject.info(), silent[i]) + format(" (%.1f %% of train)", 100 * share);
  }
  finding.what +=
      format("%zu of %lld classes for no sample: ", silent.size(), static_cast<long long>(subject.info().classes)) +
      names;
  judge(finding, Verdict::fail, "class_collapse",
        "the loss gains more by never naming a rare class than by finding its few samples",
        subject.job.loss.balanced ? "the inputs do not tell this class apart: add inputs, or samples of the class"
                                  : "loss.balanced: true, or loss.class_weights; monitor val/f1 instead of accuracy");
}

}  // namespace sinew::train::sanity
