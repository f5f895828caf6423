// Checks that the model can overfit one small batch. A model that cannot do this will not learn the whole data set.
//
// The batch is small enough for the number of parameters. Everything that prevents overfitting is off: dropout, weight
// decay, augmentation, label smoothing, class weights and weight averaging. The learning rate is the job's, held
// constant. If the loss does not halve, the check tries other learning rates. These distinguish a wrong learning rate
// from a model that cannot learn.
#include <algorithm>
#include <cmath>
#include <set>

#include "train/sanity.h"

namespace sinew::train::sanity {
namespace {

constexpr int64_t kMostInBatch = 64, kFewestInBatch = 4;
constexpr int64_t kBatchSteps = 200, kOtherSteps = 100;
constexpr double kBatchSeconds = 5, kOtherSeconds = 1.5;
constexpr double kOverfit = 0.1, kLearns = 0.5;  // fractions of the loss of a model that knows nothing
constexpr int64_t kShortJob = 500;               // shorter jobs are judged as if they had this many steps

struct Outcome {
  double lr = 0, start = 0, lowest = INFINITY;
  int64_t steps = 0;
  int64_t half_after = 0;  // number of steps until the loss had halved; 0 if it never did
  bool diverged = false, out_of_time = false;
};

spec::Job job_of(const Subject& subject, int64_t samples) {
  spec::Job job = subject.job;
  job.trainer.batch_size = samples;
  job.trainer.shards = data::default_shards(samples);
  job.trainer.drop_last = false;
  job.trainer.ema_decay = 0;
  job.model.dropout = 0;
  job.optimizer.weight_decay = 0;
  job.loss.label_smoothing = 0;
  job.loss.class_weights.clear();
  job.loss.balanced = false;
  return job;
}

// Chooses samples with different inputs, few enough that the model's parameters can memorise them.
std::vector<int64_t> choose(const Subject& subject) {
  const auto model = subject.make_model();
  const int64_t outputs = std::max<int64_t>(1, outputs_for(subject.loss.name(), subject.info()));
  const int64_t room = model::parameter_count(*model) / (4 * outputs * subject.info().tokens_per_sample);
  const int64_t wanted = std::clamp(room, kFewestInBatch, kMostInBatch);
  const auto known = static_cast<int64_t>(subject.train.samples.size());
  const data::Permutation order(random_key({subject.job.trainer.seed, 41}), known);
  std::set<Digest> seen;
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < known && static_cast<int64_t>(chosen.size()) < wanted; ++i) {
    const auto at = static_cast<size_t>(order[i]);
    if (seen.insert(subject.train.inputs[at]).second) chosen.push_back(subject.train.samples[at]);
  }
  return chosen;
}

Outcome train_on(const Subject& subject, const spec::Job& job, const data::Dataset& batch, double lr, int64_t most,
                 double until, double nothing) {
  Outcome outcome;
  outcome.lr = lr;
  Trial trial(subject, job, batch);
  try {
    while (outcome.steps < most && outcome.lowest > kOverfit * nothing) {
      const double loss = trial.engine().step(lr, false).loss;
      if (outcome.steps == 0) outcome.start = std::max(loss, nothing);
      outcome.lowest = std::min(outcome.lowest, loss);
      ++outcome.steps;
      if (outcome.half_after == 0 && loss < kLearns * outcome.start) outcome.half_after = outcome.steps;
      if (subject.now() > until) {
        outcome.out_of_time = true;
        break;
      }
    }
  } catch (const Diverged&) {
    outcome.diverged = true;
  }
  return outcome;
}

// If the subject's job sets model.dropout, returns the subject with a model that is built from `job`, in which dropout
// is 0. Otherwise returns the subject unchanged.
Subject without_dropout(const Subject& subject, const spec::Job& job) {
  Subject copy = subject;
  const bool named = subject.job.model.dropout > 0;
  if (named) {
    const data::DataInfo info = subject.info();
    copy.make_model = [job, info] {
      return model::make_model(job.model, info, outputs_for(job.loss.name, info), job.trainer.seed);
    };
  }
  return copy;
}

}  // namespace

void check_one_batch(Subject& subject, SanityFinding& finding) {
  const auto chosen = choose(subject);
  const spec::Job job = job_of(subject, static_cast<int64_t>(chosen.size()));
  const Subject plain = without_dropout(subject, job);
  const Excerpt batch(subject.data, data::Split::train, chosen);
  const loop::Lengths lengths =
      loop::lengths_of(subject.job, subject.info().train_size, subject.info().tokens_per_sample);
  const double nothing = loss_of_zeros(subject, subject.load(data::Split::train, chosen));
  const double lr = job.optimizer.lr;
  const Outcome own = train_on(plain, job, batch, lr, kBatchSteps, subject.until(kBatchSeconds), nothing);
  finding.what = own.diverged ? format("the loss is not finite after %lld steps on %zu samples at lr %.2g",
                                       static_cast<long long>(own.steps), chosen.size(), lr)
                              : format("loss %.4g -> %.4g on %zu samples in %lld steps at lr %.2g", own.start,
                                       own.lowest, chosen.size(), static_cast<long long>(own.steps), lr);
  if (own.half_after > 0) return;
  if (own.out_of_time) {
    finding.verdict = Verdict::skip;
    finding.what += "; there was no time for more steps";
    return;
  }
  // If training diverged, tries lower rates first, otherwise higher ones. If a rate halves the loss, the job's rate was
  // the cause.
  const bool blew_up = own.diverged || own.lowest > 0.95 * own.start;
  std::vector<double> rates;
  for (double factor = 10; factor <= 1e6 && (lr / factor >= 1e-5) && blew_up; factor *= 10)
    rates.push_back(lr / factor);
  for (double factor = 10; lr * factor <= 1.0001 && !own.diverged; factor *= 10) rates.push_back(lr * factor);
  if (lr < 1e-5) rates = {1e-3, 1e-2, 1e-1, 1.0};
  double closest = INFINITY;
  for (const double rate : rates) {
    if (subject.now() >= subject.deadline) {
      finding.verdict = Verdict::skip;
      finding.what += "; there was no time to try other learning rates";
      return;
    }
    const Outcome other = train_on(plain, job, batch, rate, kOtherSteps, subject.until(kOtherSeconds), nothing);
    closest = std::min(closest, other.lowest);
    if (other.half_after == 0) continue;
    finding.what += format("; at lr %.1g it halves in %lld steps", rate, static_cast<long long>(other.half_after));
    if (rate < lr) {
      judge(finding, Verdict::fail, "learning_rate_too_large", format("a learning rate of %.2g is too large", lr),
            format("optimizer.lr=%.1g", rate));
      return;
    }
    // A rate that is n times smaller needs n times as many steps. A job that has so many steps is slow but not wrong.
    const double needed = static_cast<double>(other.half_after) * rate / lr;
    const auto has = static_cast<double>(std::max(kShortJob, lengths.total_steps.value_or(1'000'000)));
    if (needed < has) {
      finding.what += format("; the job needs about %.0f steps and has %.0f", needed, has);
      return;
    }
    judge(finding, needed > 10 * has ? Verdict::fail : Verdict::warn, "learning_rate_too_small",
          format("a learning rate of %.2g is too small: halving the loss would take about %.2g steps, the job has %.0f",
                 lr, needed, has),
          format("optimizer.lr=%.1g", rate));
    return;
  }
  finding.what += format("; no other learning rate gets below %.3g", std::min(own.lowest, closest));
  judge(finding, Verdict::fail, "cannot_learn",
        "the model cannot distinguish these samples: gradients do not reach its parameters, or its inputs lose the "
        "relevant information",
        "see the checks above; try a larger model");
}

}  // namespace sinew::train::sanity
