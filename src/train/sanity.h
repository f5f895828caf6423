// Inside train/: what the checks of `sinew check` share: the job under test, samples of its data, short trials.
//
// A check judges and never throws for what it is there to find. Each has a budget of samples, steps and seconds; what a
// slow machine could not measure in time is said to be unknown, not wrong.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "train/engine.h"
#include "train/resolve.h"

namespace sinew::train::sanity {

using Verdict = SanityFinding::Verdict;

template <typename... Values>
std::string say(const char* pattern, Values... values) {
  char text[600];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

// Chosen samples of one part as the training part, never augmented.
class Excerpt final : public data::Dataset {
 public:
  Excerpt(const data::Dataset& whole, data::Part part, std::vector<int64_t> samples);
  const data::DataInfo& info() const override { return info_; }
  int64_t size(data::Part part) const override { return part == data::Part::train ? info_.train_size : 0; }
  data::Batch load(data::Part part, std::span<const int64_t> samples,
                   const data::SampleContext& context) const override;
  std::string describe(data::Part part, int64_t sample) const override;
  bool in_memory() const override { return whole_.in_memory(); }

 private:
  const data::Dataset& whole_;
  data::Part part_;
  std::vector<int64_t> samples_;
  data::DataInfo info_;
};

// A place in the data: what, and which sample.
struct Place {
  int64_t sample = 0, count = 0;  // the first, and how many there are
};

// What one pass over (a bounded number of) a part's samples learned.
struct Facts {
  int64_t size = 0;
  std::vector<int64_t> samples;    // looked at, in this order
  std::vector<Digest> inputs;      // one a sample
  std::vector<float> low, high;    // by feature; numbers only
  double mean = 0, deviation = 0;  // of all finite input values
  Place not_finite, bad_target;    // count 0: none
  std::vector<int64_t> class_counts;
  double target_low = 0, target_high = 0;
  bool complete() const { return static_cast<int64_t>(samples.size()) == size; }
};

// The first steps of the training the job asks for.
struct FirstSteps {
  int64_t planned = 0;
  std::vector<double> losses, rates;
  double knows_nothing = 0;         // the loss of all-zero outputs, mean over some training samples
  std::vector<double> squares;      // by parameter: sum over early steps of the squared gradient
  std::vector<double> silent_rows;  // by parameter: share of rows that never had a gradient; -1 where it has no rows
  std::string diverged;             // why they ended early
  bool out_of_time = false;
};

struct Subject {
  spec::Job job;  // resolved
  const data::Dataset& data;
  std::function<std::unique_ptr<model::Model>()> make_model;
  Clock& clock;
  double deadline = 0;  // on the monotonic clock
  Loss loss;
  Facts train, val;
  std::string no_training;  // why trials would say nothing new; empty: they may run
  std::optional<FirstSteps> first_steps;

  const data::DataInfo& info() const { return data.info(); }
  double now() const { return clock.monotonic_seconds(); }
  // When a trial of at most this many seconds must end.
  double until(double seconds) const { return std::min(deadline, now() + seconds); }
  bool gives_its_loss() const { return loss.name() == "program"; }  // and no prediction
  bool reads_tokens() const { return info().input_dtype == DType::i64; }
  // Samples of a part as they are, never augmented.
  data::Batch load(data::Part part, std::span<const int64_t> samples) const;
  // `count` different samples in an order of their own for each purpose, out of those looked at.
  std::vector<int64_t> draw(const Facts& facts, int64_t count, uint64_t purpose) const;
};

torch::Tensor tensor_of(const Array& array);  // a copy

// An engine over (part of) the data, with what it stands on.
class Trial {
 public:
  Trial(const Subject& subject, const spec::Job& job, const data::Dataset& data);
  Engine& engine() { return engine_; }
  // The model at the engine's present state, alone and in float32.
  std::unique_ptr<model::Model> model(const Subject& subject);

 private:
  data::Prefetcher prefetcher_;
  std::unique_ptr<Reducer> reducer_;
  Engine engine_;
};

FirstSteps& first_steps(Subject& subject);

Facts look_at(const data::Dataset& data, data::Part part, int64_t most, double until, Clock& clock);
// The loss of a model that always answers zero, mean over a part's first looked-at samples.
double loss_of_zeros(const Subject& subject, const data::Batch& batch);

// How surely scores know labels, as deviations from what a random pairing of them gives: exact mean and variance over
// all permutations (Hoeffding 1951), so that whatever made the scores can not fool it.
double pairing_z(const torch::Tensor& scores, const torch::Tensor& labels);    // [n, classes], [n]
double ranking_z(const torch::Tensor& guesses, const torch::Tensor& targets);  // [n], [n]: Spearman

// ---- the checks: each fills its finding's verdict, what, cause, likely and hint

using Check = void (*)(Subject&, SanityFinding&);
void check_data(Subject&, SanityFinding&);
void check_classes(Subject&, SanityFinding&);
void check_duplicates(Subject&, SanityFinding&);
void check_labels(Subject&, SanityFinding&);
void check_initial_loss(Subject&, SanityFinding&);
void check_function(Subject&, SanityFinding&);
void check_batch_leak(Subject&, SanityFinding&);
void check_eval_mode(Subject&, SanityFinding&);
void check_one_batch(Subject&, SanityFinding&);
void check_first_steps(Subject&, SanityFinding&);
void check_gradients(Subject&, SanityFinding&);
void check_repeatable(Subject&, SanityFinding&);
// Of a model that gives its loss alone.
void check_own_function(Subject&, SanityFinding&);
void check_own_batch(Subject&, SanityFinding&);
void check_own_eval_mode(Subject&, SanityFinding&);
void check_own_one_batch(Subject&, SanityFinding&);
double own_loss(const Subject& subject, const data::Batch& batch);  // of the untrained model, a mean

inline void judge(SanityFinding& finding, Verdict verdict, std::string cause, std::string likely, std::string hint) {
  finding.verdict = verdict;
  finding.cause = std::move(cause);
  finding.likely = std::move(likely);
  finding.hint = std::move(hint);
}

}  // namespace sinew::train::sanity
