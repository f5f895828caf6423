// Defines what the checks of `sinew check` share: the job under test, samples of its data, and short trials. Private to
// train/.
//
// A check reports a problem as a finding and does not throw. Each check has a budget of samples, steps and seconds. If
// a slow machine leaves too little time for a measurement, the check is skipped; it does not fail.
#pragma once

#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "train/engine.h"
#include "train/lone_engine.h"
#include "train/resolve.h"

namespace sinew::train::sanity {

using Verdict = SanityFinding::Verdict;

template <typename... Values>
std::string format(const char* pattern, Values... values) {
  char text[600];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

// Some samples of one split, presented as the training split and never augmented.
class Excerpt final : public data::Dataset {
 public:
  Excerpt(const data::Dataset& whole, data::Split split, std::vector<int64_t> samples);
  const data::DataInfo& info() const override { return info_; }
  int64_t size(data::Split split) const override { return split == data::Split::train ? info_.train_size : 0; }
  data::Batch load(data::Split split, std::span<const int64_t> samples,
                   const data::SampleContext& context) const override;
  std::string describe(data::Split split, int64_t sample) const override;
  bool in_memory() const override { return whole_.in_memory(); }

 private:
  const data::Dataset& whole_;
  data::Split split_;
  std::vector<int64_t> samples_;
  data::DataInfo info_;
};

// The first of several bad samples, and how many there are.
struct BadSamples {
  int64_t first = 0, count = 0;
};

// The results of one pass over a bounded number of samples of a split.
struct Facts {
  int64_t size = 0;
  std::vector<int64_t> samples;       // the samples that the pass read, in this order
  std::vector<Digest> inputs;         // one for each sample
  std::vector<float> low, high;       // lowest and highest value of each feature; only if inputs are numbers
  double mean = 0, deviation = 0;     // mean and standard deviation of the finite inputs
  BadSamples not_finite, bad_target;  // count is 0 if there are none
  std::vector<int64_t> class_counts;
  double target_low = 0, target_high = 0;
  bool complete() const { return static_cast<int64_t>(samples.size()) == size; }
};

// The first steps of the training that the job describes.
struct FirstSteps {
  int64_t planned = 0;
  std::vector<double> losses, rates;
  double uninformed_loss = 0;   // the loss of all-zero outputs, averaged over some training samples
  std::vector<double> squares;  // for each parameter: the sum of its squared gradients over the early steps
  // For each parameter: the fraction of its rows that never had a gradient, or -1 if it has no rows.
  std::vector<double> inactive_rows;
  std::string diverged;  // the reason if training diverged and the steps ended early
  bool out_of_time = false;
  double seconds = 0;  // of all steps
};

// A training with the job's schedule compressed into few steps.
struct ShortRun {
  struct Named {
    torch::Tensor named, labels;  // for some samples: the class that the model names, and the true one
  };
  int64_t steps = 0, planned = 0;
  bool finished = false;               // false: there was too little time, or the training diverged
  double loss = 0;                     // of training samples, in evaluation mode; infinite if the training diverged
  std::map<data::Split, Named> named;  // classification: of train and val
};

struct Subject {
  spec::Job job;  // the job with every auto resolved
  const data::Dataset& data;
  std::function<std::unique_ptr<model::Model>()> make_model;
  Clock& clock;
  double deadline = 0;  // when the checks must end, by the monotonic clock
  Loss loss;
  Facts train, val, test;
  std::set<data::Split> drifted;  // splits whose inputs are not like those of train
  bool reads_indices = false;     // the inputs are whole numbers that the model uses as indices, for example of words
  std::string no_training;        // why the checks that train are skipped; empty if they may run
  std::optional<FirstSteps> first_steps;
  std::optional<ShortRun> short_run;

  const data::DataInfo& info() const { return data.info(); }
  double now() const { return clock.monotonic_seconds(); }
  // The time at which a trial of at most `seconds` must end.
  double until(double seconds) const { return std::min(deadline, now() + seconds); }
  bool returns_only_loss() const { return loss.name() == "program"; }  // the model returns its loss and no predictions
  bool reads_tokens() const { return info().input_dtype == DType::i64; }
  // Loads samples of a split, never augmented.
  data::Batch load(data::Split split, std::span<const int64_t> samples) const;
  // Draws `count` different samples from those that the pass read. Each `purpose` has a random order of its own.
  std::vector<int64_t> draw(const Facts& facts, int64_t count, uint64_t purpose) const;
};

torch::Tensor tensor_of(const Array& array);  // a copy
bool uses_indices(const Subject& subject);    // asks the model; the value of reads_indices
// Other inputs of the same kind: scaled and shifted numbers, or another token or index at every position.
torch::Tensor other_inputs(const Subject& subject, const torch::Tensor& inputs);
std::string class_name(const data::DataInfo& info, int64_t index);
std::string coverage_text(const Facts& facts);  // how many samples the pass read

// ---- columns of a table

bool is_table(const data::DataInfo& info);  // samples are rows of numbers with one target
// The value of each row in one column; a category is the place of its 1, or -1.
std::vector<float> column_values(const data::Batch& batch, const data::InputGroup& group);
std::vector<double> target_values(const data::Batch& batch);  // the first number, or the class, of each target
// The name of the column of the file that these inputs were made of.
std::string column_of(const data::DataInfo& info, const data::InputGroup& group);
bool is_date(const data::DataInfo& info, const std::string& column);
// Judges counters that sort the targets. Returns whether it found one.
bool judge_counters(const Subject& subject, const data::Batch& batch, const std::vector<data::InputGroup>& groups,
                    const std::vector<double>& targets, SanityFinding& finding);
// Judges whether columns tell suspiciously much. `best`: the group that is the best alone; `error`: its share of
// errors.
void judge_suspects(const Subject& subject, const data::Batch& batch, const std::vector<data::InputGroup>& groups,
                    size_t best, double error, SanityFinding& finding);

// ---- parameters

bool comes_with_weights(const spec::ModelOptions& model);  // the model is a file, which may hold trained weights
bool frozen_on_purpose(const spec::ModelOptions& model, const std::string& parameter);

// ---- trials

// An engine over the data or an excerpt of it, with the prefetcher and reducer that it needs.
class Trial {
 public:
  Trial(const Subject& subject, const spec::Job& job, const data::Dataset& data)
      : lone_(job, data, subject.make_model) {}
  Engine& engine() { return lone_.engine(); }
  // A float32 copy of the model with the engine's current weights.
  std::unique_ptr<model::Model> model(const Subject& subject);

 private:
  LoneEngine lone_;
};

FirstSteps& first_steps(Subject& subject);
const ShortRun& short_run(Subject& subject);

Facts scan_data(const data::Dataset& data, data::Split split, int64_t most, double until, Clock& clock);
// Returns the mean loss on the batch that all-zero outputs would have. For a model that returns only its loss, returns
// the mean loss of the untrained model instead.
double loss_of_zeros(const Subject& subject, const data::Batch& batch);

// Returns how well scores predict labels, in standard deviations above a random pairing of scores and labels. The mean
// and the variance over all pairings are exact (Hoeffding 1951), so the scores may have any distribution.
double pairing_z(const torch::Tensor& scores, const torch::Tensor& labels);  // shapes [n, classes] and [n]
// Compares ranks (Spearman). The shapes are [n] and [n].
double ranking_z(const torch::Tensor& guesses, const torch::Tensor& targets);

// ---- the checks: each fills its finding's verdict, what, cause, likely and hint

using Check = void (*)(Subject&, SanityFinding&);
void check_data(Subject&, SanityFinding&);
void check_classes(Subject&, SanityFinding&);
void check_duplicates(Subject&, SanityFinding&);
void check_leak(Subject&, SanityFinding&);
void check_dates(Subject&, SanityFinding&);
void check_drift(Subject&, SanityFinding&);
void check_labels(Subject&, SanityFinding&);
void check_outputs(Subject&, SanityFinding&);
void check_initial_loss(Subject&, SanityFinding&);
void check_function(Subject&, SanityFinding&);
void check_batch_leak(Subject&, SanityFinding&);
void check_eval_mode(Subject&, SanityFinding&);
void check_one_batch(Subject&, SanityFinding&);
void check_first_steps(Subject&, SanityFinding&);
void check_frozen(Subject&, SanityFinding&);
void check_gradients(Subject&, SanityFinding&);
void check_learning_rate(Subject&, SanityFinding&);
void check_collapse(Subject&, SanityFinding&);
void check_repeatable(Subject&, SanityFinding&);
// For models that return only their loss, these checks replace the checks above.
void check_loss_only_function(Subject&, SanityFinding&);
void check_loss_only_batch(Subject&, SanityFinding&);
void check_loss_only_eval_mode(Subject&, SanityFinding&);
void check_loss_only_one_batch(Subject&, SanityFinding&);
double mean_returned_loss(const Subject& subject, const data::Batch& batch);  // mean loss of the untrained model

inline void judge(SanityFinding& finding, Verdict verdict, std::string cause, std::string likely, std::string hint) {
  finding.verdict = verdict;
  finding.cause = std::move(cause);
  finding.likely = std::move(likely);
  finding.hint = std::move(hint);
}

}  // namespace sinew::train::sanity
