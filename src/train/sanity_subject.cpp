// Implements what the checks share: a pass over the data, excerpts of it, and engines for short trials.
#include <algorithm>
#include <cmath>
#include <limits>

#include "train/sanity.h"

namespace sinew::train::sanity {
namespace {

constexpr int64_t kChunk = 256;  // number of samples loaded at once

Shape without_first(const Shape& shape) {
  return {shape.begin() + 1, shape.end()};
}

// Accumulates Facts over the batches of one split.
class DataPass {
 public:
  DataPass(const data::DataInfo& info, Facts& facts) : info_(info), facts_(facts) {
    facts_.class_counts.assign(static_cast<size_t>(std::clamp<int64_t>(info.classes, 0, 1 << 20)), 0);
    facts_.target_low = std::numeric_limits<double>::infinity();
    facts_.target_high = -facts_.target_low;
  }

  void add(const data::Batch& batch) {
    const int64_t n = batch.count(), features = element_count(without_first(batch.input.shape));
    const int64_t targets = element_count(without_first(batch.target.shape));
    const size_t bytes =
        static_cast<size_t>(features) * (info_.input_dtype == DType::f32 ? sizeof(float) : sizeof(int64_t));
    for (int64_t row = 0; row < n; ++row) {
      const int64_t sample = batch.samples[static_cast<size_t>(row)];
      facts_.samples.push_back(sample);
      facts_.inputs.push_back(digest_of(std::span(batch.input.bytes.data() + static_cast<size_t>(row) * bytes, bytes)));
      if (info_.input_dtype == DType::f32) add_numbers(batch.input.as<float>() + row * features, features, sample);
      for (int64_t t = 0; t < targets; ++t) add_target(batch, row * targets + t, sample);
    }
  }

  void finish() {
    if (values_ == 0) return;
    facts_.mean = sum_ / static_cast<double>(values_);
    facts_.deviation = std::sqrt(std::max(0.0, squares_ / static_cast<double>(values_) - facts_.mean * facts_.mean));
  }

 private:
  static void record(BadSamples& bad, int64_t sample) {
    if (bad.count == 0 || bad.first != sample) ++bad.count;
    if (bad.count == 1) bad.first = sample;
  }

  void add_numbers(const float* values, int64_t features, int64_t sample) {
    if (facts_.low.empty()) {
      facts_.low.assign(static_cast<size_t>(features), std::numeric_limits<float>::infinity());
      facts_.high.assign(static_cast<size_t>(features), -std::numeric_limits<float>::infinity());
    }
    double sum = 0, squares = 0;
    bool finite = true;
    for (int64_t i = 0; i < features; ++i) {
      const float value = values[i];
      finite = finite && std::isfinite(value);
      sum += value;
      squares += static_cast<double>(value) * value;
      float &low = facts_.low[static_cast<size_t>(i)], &high = facts_.high[static_cast<size_t>(i)];
      low = value < low ? value : low;
      high = value > high ? value : high;
    }
    if (!finite) {
      ++facts_.not_finite.count;
      if (facts_.not_finite.count == 1) facts_.not_finite.first = sample;
      return;
    }
    sum_ += sum;
    squares_ += squares;
    values_ += features;
  }

  void add_target(const data::Batch& batch, int64_t at, int64_t sample) {
    if (batch.target.dtype == DType::f32) {
      const float value = batch.target.as<float>()[at];
      if (!std::isfinite(value)) return record(facts_.bad_target, sample);
      facts_.target_low = std::min<double>(facts_.target_low, value);
      facts_.target_high = std::max<double>(facts_.target_high, value);
      return;
    }
    const int64_t label = batch.target.as<int64_t>()[at];
    if (label < 0 || label >= static_cast<int64_t>(facts_.class_counts.size()))
      return record(facts_.bad_target, sample);
    ++facts_.class_counts[static_cast<size_t>(label)];
  }

  const data::DataInfo& info_;
  Facts& facts_;
  double sum_ = 0, squares_ = 0;
  int64_t values_ = 0;
};

}  // namespace

Excerpt::Excerpt(const data::Dataset& whole, data::Split split, std::vector<int64_t> samples)
    : whole_(whole), split_(split), samples_(std::move(samples)), info_(whole.info()) {
  info_.train_size = static_cast<int64_t>(samples_.size());
  info_.val_size = info_.test_size = 0;
}

data::Batch Excerpt::load(data::Split, std::span<const int64_t> samples, const data::SampleContext& context) const {
  std::vector<int64_t> chosen;
  for (const int64_t sample : samples) chosen.push_back(samples_.at(static_cast<size_t>(sample)));
  data::Batch batch = whole_.load(split_, chosen, {context.seed, 0, false});
  // The batch has the requested samples in order, without corrupt ones. Their numbers are translated back to those of
  // this data set.
  size_t at = 0;
  for (int64_t& sample : batch.samples) {
    while (chosen.at(at) != sample) ++at;
    sample = samples[at++];
  }
  return batch;
}

std::string Excerpt::describe(data::Split, int64_t sample) const {
  return whole_.describe(split_, samples_.at(static_cast<size_t>(sample)));
}

data::Batch Subject::load(data::Split split, std::span<const int64_t> samples) const {
  return data.load(split, samples, {job.trainer.seed, 0, false});
}

std::vector<int64_t> Subject::draw(const Facts& facts, int64_t count, uint64_t purpose) const {
  const auto known = static_cast<int64_t>(facts.samples.size());
  const data::Permutation order(random_key({job.trainer.seed, purpose}), std::max<int64_t>(1, known));
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < std::min(count, known); ++i) chosen.push_back(facts.samples[static_cast<size_t>(order[i])]);
  return chosen;
}

Facts scan_data(const data::Dataset& data, data::Split split, int64_t most, double until, Clock& clock) {
  Facts facts;
  facts.size = data.size(split);
  if (facts.size == 0) return facts;
  DataPass pass(data.info(), facts);
  // If the pass can read the whole split from memory, it reads in order. Otherwise it reads in random order, so that
  // the samples that it reads before its limits represent the split.
  const data::Permutation order(random_key({77}), facts.size);
  const bool in_order = facts.size <= most && data.in_memory();
  std::vector<int64_t> chunk;
  for (int64_t i = 0; i < std::min(most, facts.size); i += kChunk) {
    chunk.clear();
    for (int64_t k = i; k < std::min({i + kChunk, most, facts.size}); ++k) chunk.push_back(in_order ? k : order[k]);
    pass.add(data.load(split, chunk, {0, 0, false}));
    if (clock.monotonic_seconds() > until) break;
  }
  pass.finish();
  return facts;
}

std::string class_name(const data::DataInfo& info, int64_t index) {
  const auto at = static_cast<size_t>(index);
  return at < info.class_names.size() ? "'" + info.class_names[at] + "'" : std::to_string(index);
}

std::string coverage_text(const Facts& facts) {
  if (facts.complete()) return std::to_string(facts.size) + " samples";
  return std::to_string(facts.samples.size()) + " of " + std::to_string(facts.size) + " samples";
}

torch::Tensor tensor_of(const Array& array) {
  const auto type = array.dtype == DType::f32 ? torch::kFloat32 : torch::kInt64;
  return torch::from_blob(const_cast<std::byte*>(array.bytes.data()), at::IntArrayRef(array.shape),
                          torch::TensorOptions().dtype(type))
      .clone();
}

std::unique_ptr<model::Model> Trial::model(const Subject& subject) {
  const torch::NoGradGuard no_grad;
  auto model = subject.make_model();
  const TrainingState& state = engine().state();
  for (size_t p = 0; p < state.parameters.size(); ++p)
    model->share(p, state.parameters[p].tensor.to(torch::kCPU).clone());
  auto buffers = model->buffers();
  for (size_t b = 0; b < buffers.size(); ++b) buffers[b].tensor.copy_(state.buffers[b].tensor);
  return model;
}

bool uses_indices(const Subject& subject) {
  const bool own_model = comes_with_weights(subject.job.model) || subject.job.model.name == "library";
  if (!own_model || subject.returns_only_loss() || subject.info().input_dtype != DType::f32) return false;
  const torch::Tensor x = tensor_of(subject.load(data::Split::train, subject.draw(subject.train, 16, 66)).input);
  if (x.numel() == 0 || !x.ge(0).logical_and(x.eq(x.floor())).all().item<bool>()) return false;
  const torch::NoGradGuard no_grad;
  const model::RandomScope random(random_key({subject.job.trainer.seed, 67}));
  torch::Tensor whole;
  std::unique_ptr<model::Model> model;
  try {
    model = subject.make_model();
    model->set_training(false);
    whole = model->forward(x);
  } catch (const std::exception&) {
    return false;  // the checks of the model say what is wrong
  }
  try {
    return torch::equal(whole, model->forward(x + 0.25));  // TorchScript drops the fraction of an index
  } catch (const std::exception&) {
    return true;  // a program refuses it
  }
}

torch::Tensor other_inputs(const Subject& subject, const torch::Tensor& inputs) {
  if (subject.reads_tokens()) return (inputs + 1).remainder(std::max<int64_t>(2, subject.info().classes));
  if (subject.reads_indices) return (inputs + 1).remainder(1 + std::ranges::max(subject.train.high));
  return -3 * inputs + 5;
}

double loss_of_zeros(const Subject& subject, const data::Batch& batch) {
  if (subject.returns_only_loss()) return mean_returned_loss(subject, batch);
  const torch::Tensor targets = tensor_of(batch.target);
  std::vector<int64_t> shape(batch.target.shape.begin(), batch.target.shape.end());
  if (subject.info().task == data::Task::regression) {
    shape = {batch.count(), outputs_for(subject.loss.name(), subject.info())};
  } else {
    shape.push_back(outputs_for(subject.loss.name(), subject.info()));
  }
  const Loss::Value loss = subject.loss(torch::zeros(shape), targets);
  return loss.weight > 0 ? loss.sum.item<double>() / loss.weight : 0;
}

}  // namespace sinew::train::sanity
