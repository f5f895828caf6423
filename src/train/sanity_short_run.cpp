// Trains the job in short: its schedule compressed into the steps that there is time for. Checks that a learning rate
// ten times smaller does not fit the training samples much better. In so few steps a smaller rate has a handicap, so if
// it wins clearly, the job's own is too large.
#include <algorithm>
#include <cmath>

#include "train/sanity.h"

namespace sinew::train::sanity {
namespace {

constexpr int64_t kMostShortSteps = 600, kFewestShortSteps = 30;
constexpr double kShortSeconds = 3, kShortShare = 0.3;  // of the time that is left, so that all checks get some
constexpr int64_t kJudgedRows = 512, kRowsAtOnce = 64;
constexpr double kMuchBetter = 0.6;  // the loss at the smaller rate, as a share of the loss at the job's own
constexpr double kWorthIt = 0.15;    // and their difference, as a share of the loss of a model that knows nothing

int64_t steps_in(Subject& subject, double seconds) {
  const FirstSteps& first = first_steps(subject);
  if (first.losses.empty() || !first.diverged.empty()) return 0;
  const double each = std::max(1e-5, first.seconds / static_cast<double>(first.losses.size()));
  return std::min({first.planned, kMostShortSteps, static_cast<int64_t>(seconds / each)});
}

// The classes that the outputs name.
torch::Tensor classes_named(const torch::Tensor& outputs) {
  const torch::Tensor rows = outputs.reshape({outputs.size(0), -1});
  return rows.size(1) == 1 ? rows.select(1, 0).gt(0).to(torch::kInt64) : rows.argmax(1);
}

void judge_rows(const Subject& subject, model::Model& model, data::Split split, const Facts& facts, ShortRun& run) {
  const torch::NoGradGuard no_grad;
  const bool classes = subject.info().task == data::Task::classification;
  std::vector<torch::Tensor> named, labels;
  double sum = 0, weight = 0;
  const auto rows = subject.draw(facts, kJudgedRows, 71);
  for (size_t i = 0; i < rows.size(); i += kRowsAtOnce) {
    const data::Batch batch =
        subject.load(split, std::span(rows).subspan(i, std::min<size_t>(kRowsAtOnce, rows.size() - i)));
    const torch::Tensor targets = tensor_of(batch.target);
    const torch::Tensor outputs = model.forward(tensor_of(batch.input)).to(torch::kFloat32);
    const Loss::Value loss = subject.loss(outputs, targets);
    sum += loss.sum.item<double>();
    weight += loss.weight;
    if (classes) named.push_back(classes_named(outputs)), labels.push_back(targets);
  }
  if (split == data::Split::train) run.loss = weight > 0 ? sum / weight : 0;
  if (!named.empty()) run.named[split] = {torch::cat(named), torch::cat(labels)};
}

// Trains `steps` steps with the job's schedule times `factor`.
ShortRun run_briefly(const Subject& subject, double factor, int64_t steps, double until) {
  ShortRun run;
  const spec::Job& job = subject.job;
  const loop::Lengths lengths = loop::lengths_of(job, subject.info().train_size, subject.info().tokens_per_sample);
  const loop::Schedule schedule(job.scheduler, lengths);
  run.planned = lengths.total_steps.value_or(1'000'000);
  Trial trial(subject, job, subject.data);
  try {
    for (run.steps = 0; run.steps < steps && subject.now() < until; ++run.steps)
      trial.engine().step(job.optimizer.lr * factor * schedule.factor(run.steps * run.planned / steps), false);
  } catch (const Diverged&) {
    run.loss = INFINITY;
    return run;
  }
  run.finished = run.steps == steps;
  const auto model = trial.model(subject);
  model->set_training(false);
  const model::RandomScope random(random_key({job.trainer.seed, 72}));
  judge_rows(subject, *model, data::Split::train, subject.train, run);
  if (factor == 1 && !subject.val.samples.empty()) judge_rows(subject, *model, data::Split::val, subject.val, run);
  return run;
}

double time_for_run(const Subject& subject) {
  return std::min(kShortSeconds, kShortShare * (subject.deadline - subject.now()));
}

}  // namespace

const ShortRun& short_run(Subject& subject) {
  if (subject.short_run) return *subject.short_run;
  const double seconds = time_for_run(subject);
  const int64_t steps = steps_in(subject, seconds);
  // A run that takes longer than the first steps let expect may finish, within reason: half a schedule says little.
  return subject.short_run.emplace(
      steps < kFewestShortSteps ? ShortRun{} : run_briefly(subject, 1, steps, subject.until(2 * seconds)));
}

void check_learning_rate(Subject& subject, SanityFinding& finding) {
  const ShortRun& own = short_run(subject);
  if (!own.finished && std::isfinite(own.loss)) {
    finding.verdict = Verdict::skip;
    finding.what =
        format("there is time for too few steps: fewer than %lld", static_cast<long long>(kFewestShortSteps));
    return;
  }
  const double lr = subject.job.optimizer.lr;
  const double nothing = first_steps(subject).uninformed_loss;
  finding.what = format("the job in %lld steps: loss %.3g at lr %.2g", static_cast<long long>(own.steps), own.loss, lr);
  for (const double factor : {0.1, 0.01}) {
    // The smaller of the two is tried only if the job's rate teaches little, since then 0.1 may be too large as well.
    if (factor < 0.1 && own.loss < 0.5 * nothing) break;
    const ShortRun lower = run_briefly(subject, factor, own.steps, subject.until(2 * kShortSeconds));
    if (!lower.finished) {
      finding.what += "; there was no time to compare it with a smaller rate";
      return;
    }
    finding.what += format(", %.3g at %.2g", lower.loss, lr * factor);
    if (lower.loss > kMuchBetter * own.loss || own.loss - lower.loss < kWorthIt * std::abs(nothing)) continue;
    judge(
        finding, Verdict::fail, "learning_rate_too_large",
        format("a learning rate of %.2g is too large: steps overshoot, and a smaller one fits the same samples better",
               lr),
        format("optimizer.lr=%.1g", lr * factor));
    return;
  }
}

}  // namespace sinew::train::sanity
