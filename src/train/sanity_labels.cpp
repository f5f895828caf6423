// Checks by a permutation test whether the inputs predict the labels. A learner predicts the labels of samples that it
// did not see. The test compares the fit of predictions and labels with the fit of all other pairings of the two.
//
// Two simple learners that need no learning rate come first. Only if neither finds a relation does the check train the
// job's own model. For next-token data, the check only counts pairs of neighbouring tokens.
#include <algorithm>
#include <cmath>

#include "train/sanity.h"

namespace sinew::train::sanity {
namespace {

constexpr int64_t kMostLearned = 2048, kMostHeld = 1024, kFewestHeld = 50, kEnoughHeld = 200;
constexpr double kSure = 3.5;  // in standard deviations; chance alone reaches it in 1 of 4000 cases
constexpr int64_t kMostFeatures = 1024;
constexpr int64_t kNeighbours = 10;
constexpr double kTrainSeconds = 5;
constexpr int64_t kTrainSteps = 300;

struct Samples {
  torch::Tensor inputs;  // [n, features], float32
  torch::Tensor labels;  // [n]
};

Samples samples_of(const Subject& subject, data::Split split, const std::vector<int64_t>& chosen) {
  std::vector<torch::Tensor> inputs, labels;
  for (size_t i = 0; i < chosen.size(); i += 256) {
    const data::Batch batch =
        subject.load(split, std::span(chosen).subspan(i, std::min<size_t>(256, chosen.size() - i)));
    torch::Tensor x = tensor_of(batch.input);
    if (x.dim() == 4 && (x.size(2) > 16 || x.size(3) > 16))
      x = torch::adaptive_avg_pool2d(x, {std::min<int64_t>(16, x.size(2)), std::min<int64_t>(16, x.size(3))});
    x = x.flatten(1);
    if (x.size(1) > kMostFeatures) x = x.slice(1, 0, x.size(1), (x.size(1) + kMostFeatures - 1) / kMostFeatures);
    inputs.push_back(x);
    labels.push_back(tensor_of(batch.target).reshape({batch.count(), -1}).select(1, 0));
  }
  return {torch::cat(inputs), torch::cat(labels)};
}

// A learner's predictions for the held-out samples and for val: scores [n, classes], or numbers [n, 1] in regression.
struct Learner {
  const char* name;
  torch::Tensor held, val;
};

class Probes {
 public:
  Probes(const Subject& subject, Samples learned, Samples held, std::optional<Samples> val)
      : regression_(subject.info().task == data::Task::regression),
        learned_(std::move(learned)),
        held_(std::move(held)),
        val_(std::move(val)) {
    const torch::Tensor mean = learned_.inputs.mean(0), deviation = learned_.inputs.std(0).clamp_min(1e-6);
    const auto standard = [&](torch::Tensor& x) { x = ((x - mean) / deviation).clamp(-10, 10); };
    standard(learned_.inputs);
    standard(held_.inputs);
    if (val_) standard(val_->inputs);
    if (regression_) {
      wanted_ = ranks(learned_.labels).unsqueeze(1);
      wanted_ = wanted_ - wanted_.mean();
    } else {
      wanted_ = torch::one_hot(learned_.labels, subject.info().classes).to(torch::kFloat32);
      wanted_ = wanted_ - wanted_.mean(0);
    }
  }

  static torch::Tensor ranks(const torch::Tensor& values) {
    return values.argsort(int64_t{0}).argsort(int64_t{0}).to(torch::kFloat32) / static_cast<double>(values.size(0));
  }

  Learner linear() const {
    const torch::Tensor& x = learned_.inputs;
    const torch::Tensor gram = x.t().mm(x) + 0.1 * static_cast<double>(x.size(0)) * torch::eye(x.size(1));
    const torch::Tensor weights = torch::linalg_solve(gram, x.t().mm(wanted_));
    return {"a linear fit", held_.inputs.mm(weights), val_ ? val_->inputs.mm(weights) : torch::Tensor()};
  }

  Learner neighbours() const {
    const auto answer = [&](const torch::Tensor& inputs) {
      const int64_t k = std::min(kNeighbours, learned_.inputs.size(0));
      const torch::Tensor nearest = std::get<1>(torch::cdist(inputs, learned_.inputs).topk(k, 1, /*largest=*/false));
      return wanted_.index_select(0, nearest.flatten()).view({inputs.size(0), k, -1}).mean(1);
    };
    return {"nearest neighbours", answer(held_.inputs), val_ ? answer(val_->inputs) : torch::Tensor()};
  }

  double z(const torch::Tensor& scores, const Samples& samples) const {
    return regression_ ? ranking_z(scores.select(1, 0), samples.labels) : pairing_z(scores, samples.labels);
  }
  const Samples& held() const { return held_; }
  const Samples& val() const { return *val_; }
  bool has_val() const { return val_ && val_->labels.size(0) >= kFewestHeld; }

 private:
  bool regression_;
  Samples learned_, held_;
  std::optional<Samples> val_;
  torch::Tensor wanted_;
};

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

// Names the classes that the learner recognises in held-out samples of train, but mistakes for one other class in val.
std::string swapped_classes(const Subject& subject, const Probes& probes, const Learner& learner) {
  const int64_t classes = subject.info().classes;
  const auto shares = [&](const torch::Tensor& scores, const torch::Tensor& labels) {
    const torch::Tensor pairs = torch::zeros({classes * classes})
                                    .index_add(0, labels * classes + scores.argmax(1), torch::ones(labels.size(0)));
    return pairs.view({classes, classes});
  };
  const torch::Tensor held = shares(learner.held, probes.held().labels), val = shares(learner.val, probes.val().labels);
  std::string text;
  const auto name = [&](int64_t c) {
    const auto& names = subject.info().class_names;
    return static_cast<size_t>(c) < names.size() ? "'" + names[static_cast<size_t>(c)] + "'" : std::to_string(c);
  };
  for (int64_t c = 0; c < classes; ++c) {
    const double here = held[c].sum().item<double>(), there = val[c].sum().item<double>();
    if (here < 10 || there < 10 || held[c][c].item<double>() < 0.5 * here || val[c][c].item<double>() > 0.25 * there)
      continue;
    const int64_t seen = val[c].argmax().item<int64_t>();
    if (val[c][seen].item<double>() < 0.5 * there) continue;
    if (text.size() < 80)
      text += (text.empty() ? "" : ", ") + name(c) + " in val looks like " + name(seen) + " in train";
  }
  return text;
}

void judge_val(const Subject& subject, const Probes& probes, const Learner& best, double z_held,
               SanityFinding& finding) {
  if (!probes.has_val()) return;
  const double z_val = probes.z(best.val, probes.val());
  // The z of a relation grows with the square root of the number of samples. `expected` is z_held scaled to the number
  // of samples of val.
  const double expected = z_held * std::sqrt(static_cast<double>(probes.val().labels.size(0)) /
                                             static_cast<double>(probes.held().labels.size(0)));
  finding.what += format(", in val %.1f", z_val);
  const std::string swapped =
      subject.info().task == data::Task::classification ? swapped_classes(subject, probes, best) : "";
  if (!swapped.empty()) {
    finding.what += "; " + swapped;
    judge(finding, Verdict::fail, "val_labels_differ", "val numbers its classes in another order than train",
          "number the classes of both splits equally, or split one data set: data.split.val");
  } else if (expected > 8 && z_val < 2) {
    judge(finding, Verdict::fail, "val_labels_differ",
          "the labels of val are shuffled, shifted by a row, or have another meaning than those of train",
          "check some validation samples and their labels");
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
  std::optional<Samples> val;
  if (!subject.val.samples.empty())
    val = samples_of(subject, data::Split::val, subject.draw(subject.val, kMostHeld, 33));
  const Probes probes(subject, samples_of(subject, data::Split::train, learned),
                      samples_of(subject, data::Split::train, held), val);
  double best_z = -1e9;
  Learner best;
  for (const Learner& learner : {probes.linear(), probes.neighbours()}) {
    const double z = probes.z(learner.held, probes.held());
    if (z > best_z) best = learner, best_z = z;
  }
  if (best_z >= kSure) {
    finding.what = format("%s on %lld samples predicts labels that it did not see: %.1f deviations above chance",
                          best.name, static_cast<long long>(learned_count), best_z);
    return judge_val(subject, probes, best, best_z, finding);
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
