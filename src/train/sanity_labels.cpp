// Checks by a permutation test whether the inputs predict the labels. A learner predicts the labels of samples that it
// did not see. The test compares the fit of predictions and labels with the fit of all other pairings of the two.
//
// Two simple learners that need no learning rate come first. Only if neither finds a relation does the check train the
// job's own model. For next-token data, the check only counts pairs of neighbouring tokens.
#include <algorithm>
#include <cmath>

#include "train/sanity_probes.h"

namespace sinew::train::sanity {
namespace {

constexpr int64_t kMostLearned = 2048, kMostHeld = 1024, kFewestHeld = 50, kEnoughHeld = 200;
constexpr double kSure = 3.5;  // in standard deviations; chance alone reaches it in 1 of 4000 cases
constexpr double kTrainSeconds = 5;
constexpr int64_t kTrainSteps = 300;

// Returns the scores of the job's own model after a short training. The model may find relations that the simple
// learners do not find. Returns an undefined tensor if the training diverges.
torch::Tensor trained_scores(const Subject& subject, const std::vector<int64_t>& learned,
                             const std::vector<int64_t>& held) {
  const Excerpt excerpt(subject.data, data::Split::train, learned);
  spec::Job job = subject.job;
  job.trainer.batch_size = std::min<int64_t>(job.trainer.batch_size, excerpt.info().train_size);
  job.trainer.drop_last = false;
  Trial trial(subject, job, excerpt);
  const double until = subject.until(kTrainSeconds);
  try {
    for (int64_t i = 0; i < kTrainSteps && subject.now() < until; ++i) trial.engine().step(job.optimizer.lr, false);
  } catch (const Diverged&) {
    return {};
  }
  const torch::NoGradGuard no_grad;
  const auto model = trial.model(subject);
  model->set_training(false);
  torch::Tensor out = model->forward(tensor_of(subject.load(data::Split::train, held).input))
                          .reshape({static_cast<int64_t>(held.size()), -1});
  if (subject.info().task == data::Task::regression) return out.slice(1, 0, 1);
  return out.size(1) == 1 ? torch::cat({-out, out}, 1) : out.log_softmax(1);
}

// Names the classes that the learner recognises in held-out samples of train, but mistakes for one other class in
// another split.
std::string swapped_classes(const Subject& subject, const Probes& probes, const Learner& learner, size_t at,
                            const std::string& split) {
  const int64_t classes = subject.info().classes;
  const auto shares = [&](const torch::Tensor& scores, const torch::Tensor& labels) {
    const torch::Tensor pairs = torch::zeros({classes * classes})
                                    .index_add(0, labels * classes + scores.argmax(1), torch::ones(labels.size(0)));
    return pairs.view({classes, classes});
  };
  const torch::Tensor held = shares(learner.held, probes.held().labels),
                      other = shares(learner.others[at], probes.other(at).labels);
  std::string text;
  for (int64_t c = 0; c < classes; ++c) {
    const double here = held[c].sum().item<double>(), there = other[c].sum().item<double>();
    if (here < 10 || there < 10 || held[c][c].item<double>() < 0.5 * here || other[c][c].item<double>() > 0.25 * there)
      continue;
    const int64_t seen = other[c].argmax().item<int64_t>();
    if (other[c][seen].item<double>() < 0.5 * there) continue;
    if (text.size() < 80)
      text += (text.empty() ? "" : ", ") + class_name(subject.info(), c) + " in " + split + " looks like " +
              class_name(subject.info(), seen) + " in train";
  }
  return text;
}

// Judges whether val or test has labels of the same meaning as train. `at`: which of the others of `probes` it is.
void judge_other(const Subject& subject, const Probes& probes, const Learner& best, size_t at, data::Split split,
                 double z_held, SanityFinding& finding) {
  const double size = static_cast<double>(probes.other(at).labels.size(0));
  if (size < kFewestHeld || finding.verdict != Verdict::pass) return;
  const std::string name = to_string(split);
  const double z = probes.z(best.others[at], probes.other(at));
  // The z of a relation grows with the square root of the number of samples. `expected` is z_held scaled to the number
  // of samples of the split.
  const double expected = z_held * std::sqrt(size / static_cast<double>(probes.held().labels.size(0)));
  finding.what += ", in " + name + format(" %.1f", z);
  const std::string swapped =
      subject.info().task == data::Task::classification ? swapped_classes(subject, probes, best, at, name) : "";
  if (!swapped.empty()) {
    finding.what += "; " + swapped;
    judge(finding, Verdict::fail, name + "_labels_differ", name + " numbers its classes in another order than train",
          "number the classes of both splits equally, or split one data set: data.split." + name);
  } else if (expected > 8 && z < 2 && subject.job.data.split_by.empty()) {  // what held before may end later
    judge(finding, Verdict::fail, name + "_labels_differ",
          "the labels of " + name + " are shuffled, shifted by a row, or have another meaning than those of train",
          "check some samples of " + name + " and their labels");
  }
}

void check_tokens(Subject& subject, SanityFinding& finding) {
  const int64_t classes = subject.info().classes;
  const auto learned = subject.draw(subject.train, 2 * kMostLearned, 31);
  if (classes > 4096 || learned.size() < 20) {
    finding.verdict = Verdict::skip;
    finding.what = "there are too few samples, or too many different tokens to count pairs";
    return;
  }
  const size_t half = learned.size() / 2;
  const auto tokens = [&](size_t first, size_t last) {
    const data::Batch batch = subject.load(data::Split::train, std::span(learned).subspan(first, last - first));
    return std::pair{tensor_of(batch.input), tensor_of(batch.target)};
  };
  const auto [x, y] = tokens(0, half);
  const auto [u, v] = tokens(half, learned.size());
  const torch::Tensor pairs = torch::zeros({classes * classes})
                                  .index_add(0, (x * classes + y).flatten(), torch::ones(x.numel()))
                                  .view({classes, classes});
  const torch::Tensor alone = (pairs.sum(0) + 1) / (pairs.sum() + static_cast<double>(classes));
  const torch::Tensor after = (pairs + 5 * alone) / (pairs.sum(1, true) + 5);
  const torch::Tensor gain =
      (after.log().flatten().index_select(0, (u * classes + v).flatten()) - alone.log().index_select(0, v.flatten()))
          .view_as(u)
          .mean(1);
  const double z = gain.mean().item<double>() /
                   std::max(1e-12, gain.std().item<double>() / std::sqrt(static_cast<double>(gain.size(0))));
  finding.what = format("the previous token reduces the loss by %.2f (%.1f deviations from chance)",
                        gain.mean().item<double>(), z);
  if (z < kSure)
    judge(finding, Verdict::warn, "labels_unrelated", "pairs of neighbouring tokens show no order",
          "check that the text is not encrypted, compressed or shuffled");
}

}  // namespace

double pairing_z(const torch::Tensor& scores, const torch::Tensor& labels) {
  const int64_t n = labels.size(0);
  const torch::Tensor pairs =
      scores.to(torch::kFloat64).index_select(1, labels);  // [i, j]: score of sample i for the label of j
  const torch::Tensor centred = pairs - pairs.mean(0, true) - pairs.mean(1, true) + pairs.mean();
  const double variance = centred.square().sum().item<double>() / static_cast<double>(n - 1);
  return variance > 0 ? centred.diagonal().sum().item<double>() / std::sqrt(variance) : 0;
}

double ranking_z(const torch::Tensor& guesses, const torch::Tensor& targets) {
  const torch::Tensor a = Probes::ranks(guesses), b = Probes::ranks(targets);
  const torch::Tensor x = a - a.mean(), y = b - b.mean();
  const double scale = std::sqrt((x.square().sum() * y.square().sum()).item<double>());
  return scale > 0 ? (x * y).sum().item<double>() / scale * std::sqrt(static_cast<double>(targets.size(0) - 1)) : 0;
}

void check_labels(Subject& subject, SanityFinding& finding) {
  if (subject.info().task == data::Task::next_token) return check_tokens(subject, finding);
  const auto known = static_cast<int64_t>(subject.train.samples.size());
  const int64_t held_count = std::min(kMostHeld, known / 2), learned_count = std::min(kMostLearned, known - held_count);
  if (held_count < kFewestHeld || subject.reads_tokens()) {
    finding.verdict = Verdict::skip;
    finding.what = format("%lld samples are too few for this check", static_cast<long long>(known));
    return;
  }
  const auto chosen = subject.draw(subject.train, held_count + learned_count, 32);
  const std::vector<int64_t> held(chosen.begin(), chosen.begin() + held_count),
      learned(chosen.begin() + held_count, chosen.end());
  std::vector<Samples> others;
  std::vector<data::Split> splits;
  for (const auto& [facts, split] :
       {std::pair{&subject.val, data::Split::val}, std::pair{&subject.test, data::Split::test}}) {
    if (facts->samples.empty() || subject.drifted.contains(split)) continue;
    others.push_back(samples_of(subject, split, subject.draw(*facts, kMostHeld, 33)));
    splits.push_back(split);
  }
  const Probes probes(subject.info().task == data::Task::regression ? 0 : subject.info().classes,
                      samples_of(subject, data::Split::train, learned), samples_of(subject, data::Split::train, held),
                      std::move(others));
  double best_z = -1e9;
  Learner best;
  for (const Learner& learner : {probes.linear(), probes.neighbours()}) {
    const double z = probes.z(learner.held, probes.held());
    if (z > best_z) best = learner, best_z = z;
  }
  if (best_z >= kSure) {
    finding.what = format("%s on %lld samples predicts labels that it did not see: %.1f deviations above chance",
                          best.name, static_cast<long long>(learned_count), best_z);
    for (size_t i = 0; i < splits.size(); ++i) judge_other(subject, probes, best, i, splits[i], best_z, finding);
    return;
  }
  const torch::Tensor scores = trained_scores(subject, learned, held);
  const double z = scores.defined() && scores.isfinite().all().item<bool>() ? probes.z(scores, probes.held()) : 0;
  if (z >= kSure) {
    finding.what =
        format("after a short training the model predicts labels that it did not see: %.1f deviations above chance", z);
    return;
  }
  finding.what = format(
      "nothing learned from %lld samples holds for %lld others: linear or neighbours %.1f, the model %.1f "
      "deviations from chance",
      static_cast<long long>(learned_count), static_cast<long long>(held_count), best_z, z);
  judge(finding, held_count >= kEnoughHeld ? Verdict::fail : Verdict::warn, "labels_unrelated",
        "labels are shuffled or shifted against the inputs, or the inputs contain almost no information about them",
        "check some samples and their labels; keep the order when joining files");
}

}  // namespace sinew::train::sanity
