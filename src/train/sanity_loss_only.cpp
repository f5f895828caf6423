// Checks models that return only their loss (loss: program), one number for each batch.
#include <algorithm>
#include <cmath>

#include "train/sanity.h"

namespace sinew::train::sanity {
namespace {

constexpr int64_t kLossRows = 8, kLossSteps = 100, kFewestLossSteps = 20;
constexpr double kSameLoss = 1e-3;  // relative tolerance; kernels add in another order
constexpr double kLossSeconds = 5;

struct Rows {
  torch::Tensor input, target;
};

Rows rows_of(const Subject& subject, int64_t count, uint64_t purpose) {
  const data::Batch batch = subject.load(data::Split::train, subject.draw(subject.train, count, purpose));
  return {tensor_of(batch.input), tensor_of(batch.target)};
}

Loss::Value loss_of(const Subject& subject, model::Model& model, const Rows& rows, uint64_t draw) {
  const torch::NoGradGuard no_grad;
  const model::RandomScope random(random_key({draw}));
  return subject.loss(model.forward(rows.input, rows.target), rows.target);
}

double number(const Loss::Value& loss) {
  return loss.sum.item<double>() / std::max(1e-12, loss.weight);
}

bool differ(double a, double b) {
  return std::abs(a - b) > kSameLoss * std::max({std::abs(a), std::abs(b), 1e-6});
}

double mean_of(const std::vector<double>& values, size_t first, size_t last) {
  double sum = 0;
  for (size_t i = first; i < last; ++i) sum += values[i];
  return sum / static_cast<double>(last - first);
}

}  // namespace

double mean_returned_loss(const Subject& subject, const data::Batch& batch) {
  const auto model = subject.make_model();
  model->set_training(true);
  return number(loss_of(subject, *model, {tensor_of(batch.input), tensor_of(batch.target)}, 5));
}

void check_loss_only_function(Subject& subject, SanityFinding& finding) {
  const auto model = subject.make_model();
  model->set_training(false);
  Rows rows = rows_of(subject, kLossRows, 12);
  const double before = number(loss_of(subject, *model, rows, 1));
  finding.what =
      format("%lld parameters; the loss depends on the input", static_cast<long long>(model::parameter_count(*model)));
  if (!std::isfinite(before)) {
    finding.what = "the loss is not finite before any training";
    return judge(finding, Verdict::fail, "initialisation", "the weights overflow, or the loss expects other inputs",
                 "check the weights, data.normalize and model.inputs");
  }
  rows.input = other_inputs(subject, rows.input);
  if (number(loss_of(subject, *model, rows, 1)) != before) return;
  finding.what = "the loss is the same for every input";
  judge(finding, Verdict::fail, "output_constant", "a dead layer, or an input that is never used",
        "check how forward uses its input, and model.inputs");
}

// Checks loss.reduction and loss.over. If they are correct, the weighted losses of two parts add up to the weighted
// loss of the batch.
void check_loss_only_batch(Subject& subject, SanityFinding& finding) {
  const auto model = subject.make_model();
  model->set_training(false);
  const Rows rows = rows_of(subject, kLossRows, 13);
  if (rows.input.size(0) < 4) {
    finding.verdict = Verdict::skip;
    finding.what = "there are too few samples";
    return;
  }
  const Loss::Value whole = loss_of(subject, *model, rows, 1);
  if (differ(number(whole), number(loss_of(subject, *model, rows, 2)))) {
    finding.verdict = Verdict::skip;
    finding.what = "the loss draws random numbers in evaluation too, different ones for every batch";
    return;
  }
  Loss::Value parts{torch::zeros({}), 0};
  const int64_t cut = rows.input.size(0) / 3;  // unequal parts reveal a mean that is taken for a sum
  for (const auto& [first, last] : {std::pair(int64_t{0}, cut), std::pair(cut, rows.input.size(0))}) {
    const Loss::Value part =
        loss_of(subject, *model, {rows.input.slice(0, first, last), rows.target.slice(0, first, last)}, 1);
    parts.sum = parts.sum + part.sum;
    parts.weight += part.weight;
  }
  finding.what = format("the loss of a batch is the combined loss of its parts: %.4g", number(whole));
  if (!differ(number(whole), number(parts))) return;
  finding.what =
      format("the loss of a batch is %.4g, but the combined loss of its parts is %.4g", number(whole), number(parts));
  judge(finding, Verdict::fail, "reduction",
        "the loss is not the " + subject.job.loss.reduction + " over " + subject.job.loss.over + ", or samples mix",
        "describe the number with loss.reduction and loss.over; dimension 0 is the sample");
}

void check_loss_only_eval_mode(Subject& subject, SanityFinding& finding) {
  const auto model = subject.make_model();
  const Rows rows = rows_of(subject, 32, 14);
  model->set_training(true);
  const double training = number(loss_of(subject, *model, rows, 1));
  model->set_training(false);
  const double once = number(loss_of(subject, *model, rows, 1)), again = number(loss_of(subject, *model, rows, 1)),
               other = number(loss_of(subject, *model, rows, 2));
  if (once != again && !(std::isnan(once) && std::isnan(again))) {
    finding.what = format("the same samples and random numbers gave %.6g and %.6g", once, again);
    return judge(finding, Verdict::fail, "random_in_eval",
                 "forward keeps hidden state, or draws its own random numbers",
                 "make forward depend only on its input, weights and training mode");
  }
  finding.what = format("the same samples gave the same loss twice, %.4g; in training mode %.4g", once, training) +
                 (once == other ? "" : "; it draws random numbers in evaluation too");
}

void check_loss_only_one_batch(Subject& subject, SanityFinding& finding) {
  const auto chosen = subject.draw(subject.train, 16, 41);
  spec::Job job = subject.job;
  job.trainer.batch_size = static_cast<int64_t>(chosen.size());
  job.trainer.shards = data::default_shards(job.trainer.batch_size);
  job.trainer.drop_last = false;
  job.trainer.ema_decay = 0;
  const Excerpt batch(subject.data, data::Split::train, chosen);
  Trial trial(subject, job, batch);
  const double until = subject.until(kLossSeconds);
  std::vector<double> losses;
  try {
    while (static_cast<int64_t>(losses.size()) < kLossSteps && subject.now() < until)
      losses.push_back(trial.engine().step(job.optimizer.lr, false).loss);
  } catch (const Diverged&) {
    finding.what = format("the loss is not finite after %zu steps at lr %.2g", losses.size(), job.optimizer.lr);
    return judge(finding, Verdict::fail, "learning_rate_too_large",
                 format("a learning rate of %.2g is too large", job.optimizer.lr),
                 format("optimizer.lr=%.1g", job.optimizer.lr / 10));
  }
  const size_t n = losses.size(), few = 5;
  if (static_cast<int64_t>(n) < kFewestLossSteps) {
    finding.verdict = Verdict::skip;
    finding.what = format("there was time for only %zu steps", n);
    return;
  }
  const double start = mean_of(losses, 0, few), end = mean_of(losses, n - few, n);
  finding.what = format("loss %.4g -> %.4g on %zu samples in %zu steps at lr %.2g", start, end, chosen.size(), n,
                        job.optimizer.lr);
  if (end < start - 1e-4 * std::abs(start)) return;
  judge(finding, Verdict::fail, "cannot_learn",
        "the loss of one batch does not fall: no gradient reaches the parameters, or the learning rate is far off",
        format("see the checks above; try optimizer.lr=%.1g and %.1g", job.optimizer.lr / 10, job.optimizer.lr * 10));
}

}  // namespace sinew::train::sanity
