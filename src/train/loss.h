// Computes each loss as a sum and the weight by which it is divided (Loss::Value), and metrics from counts and sums.
// Private to train/.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/class_metrics.h"
#include "train/train.h"

namespace sinew::train {

// Returns the name of the loss for this data. Sets `reason` if the job says auto. Throws Error if the loss does not fit
// the task.
std::string resolve_loss(const spec::Job& job, const data::DataInfo& data, std::string& reason);

// The number of outputs that a model needs for a loss on this data.
int64_t outputs_for(const std::string& loss, const data::DataInfo& data);

class Loss {
 public:
  // job.loss.name must be resolved. Class weights and target moments are copied to the device of the outputs.
  Loss(const spec::Job& job, const data::DataInfo& data);

  struct Value {
    torch::Tensor sum;  // scalar, differentiable
    double weight = 0;  // what divides the sum: samples, elements, tokens or class weights
  };
  Value operator()(const torch::Tensor& outputs, const torch::Tensor& targets) const;

  // Returns one loss for each sample, without gradients, to find bad samples.
  torch::Tensor per_sample(const torch::Tensor& outputs, const torch::Tensor& targets) const;  // [batch]

  // Returns the loss that an untrained model should have, such as ln(classes) for cross entropy. For `sinew check`.
  double expected_at_start() const;
  const std::string& name() const { return name_; }

 private:
  Value of_program(const torch::Tensor& output, const torch::Tensor& targets) const;
  Value of_library(const torch::Tensor& outputs, const torch::Tensor& targets) const;
  void keep_target_moments(const data::DataInfo& data);
  torch::Tensor standardised(const torch::Tensor& targets) const;
  torch::Tensor focal(const torch::Tensor& scores, const torch::Tensor& classes, const torch::Tensor& weights,
                      int64_t reduction) const;
  torch::Tensor sum_of(const torch::Tensor& outputs, const torch::Tensor& targets, int64_t reduction) const;

  std::string name_;
  double label_smoothing_, focal_gamma_;
  // How a program reduces its loss: a mean or a sum, and over targets or over samples.
  bool is_mean_, over_targets_;
  int64_t ignore_index_;
  torch::Tensor class_weights_;  // undefined if the job has none
  double target_mean_ = 0, target_std_ = 1;
  torch::Tensor target_means_, target_stds_;  // of each number of a target; undefined if a target is one number
  int64_t classes_;
  model::LossFunction own_;  // the loss function of a library
};

// Counts the metrics of evaluations, and the cheap metrics of training. The counts and sums can be merged exactly.
class MetricCounter {
 public:
  MetricCounter(const std::string& loss, const data::DataInfo& data, bool detailed);
  // Adds the outputs of one shard to its contribution. Throws Error if the outputs or the labels do not fit the
  // classes.
  void count(const torch::Tensor& outputs, const torch::Tensor& targets, Contribution& leaf) const;
  // Returns the metrics of a reduced result, without prefix: loss, accuracy, rmse ... (docs/reference/metrics.md).
  report::Metrics finish(const Contribution& reduced) const;
  // [classes * classes], one row for each true class; empty if it was not counted
  std::vector<int64_t> confusion(const Contribution& reduced) const;
  std::vector<report::ThresholdCounts> thresholds(const Contribution& reduced) const;  // only for two classes
  Calibration calibration(const Contribution& reduced) const;
  // Returns the name of every metric that an evaluation computes, "loss" first.
  static std::vector<std::string> names(const std::string& loss, const data::DataInfo& data);
  // From now on, a sample of two classes counts as one of the second class from this score on (threshold.h).
  void use_threshold(std::optional<double> score) { threshold_ = score; }
  // Returns the same threshold as a probability.
  std::optional<double> threshold() const;

 private:
  void check_rows(const torch::Tensor& x, const torch::Tensor& y) const;
  void check_class(int64_t label) const;
  size_t bins_at() const;  // where Contribution::counts has the bins of the calibration
  void count_classes(const torch::Tensor& outputs, const torch::Tensor& targets, Contribution& leaf) const;
  void count_numbers(const torch::Tensor& outputs, const torch::Tensor& targets, Contribution& leaf) const;

  bool only_loss_;  // true: the model returns only its loss, so there is nothing else to count
  data::Task task_;
  int64_t classes_;
  bool single_logit_, detailed_, confusion_, gather_, calibration_;
  std::vector<double> target_mean_, target_std_;
  std::optional<double> threshold_;
};

}  // namespace sinew::train
