// A small data set of keyed random numbers, with labels that a model can learn. For tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <utility>

#include "train/engine.h"
#include "train/state.h"

namespace sinew::train {

class SyntheticData final : public data::Dataset {
 public:
  // In images and tables, a sample of class c is a pattern for c plus noise. In text, each token follows from the one
  // before it by a rule.
  SyntheticData(data::Task task, Shape input, int64_t classes, int64_t train, int64_t val, double noise = 1.0)
      : noise_(noise) {
    info_.task = task;
    info_.format = "synthetic";
    info_.input_shape = std::move(input);
    info_.input_dtype = task == data::Task::next_token ? DType::i64 : DType::f32;
    if (task == data::Task::next_token) info_.target_shape = info_.input_shape;
    info_.classes = task == data::Task::regression ? 0 : classes;
    info_.train_size = train;
    info_.val_size = val;
    info_.tokens_per_sample = task == data::Task::next_token ? info_.input_shape[0] : 1;
  }

  const data::DataInfo& info() const override { return info_; }
  int64_t size(data::Split split) const override {
    return split == data::Split::train ? info_.train_size : split == data::Split::val ? info_.val_size : 0;
  }
  std::string describe(data::Split split, int64_t sample) const override {
    return to_string(split) + "#" + std::to_string(sample);
  }
  bool in_memory() const override { return in_memory_; }
  void pretend_on_disk() { in_memory_ = false; }  // makes the prefetcher use its threads

  data::Batch load(data::Split split, std::span<const int64_t> samples,
                   const data::SampleContext& context) const override {
    const auto n = static_cast<int64_t>(samples.size());
    Shape input = info_.input_shape, target = info_.target_shape;
    input.insert(input.begin(), n);
    target.insert(target.begin(), n);
    const bool regression = info_.task == data::Task::regression;
    data::Batch batch{Array(info_.input_dtype, input),
                      Array(regression ? DType::f32 : DType::i64, target),
                      {samples.begin(), samples.end()},
                      {}};
    for (int64_t i = 0; i < n; ++i)
      fill(batch, i, random_key({static_cast<uint64_t>(split), static_cast<uint64_t>(samples[static_cast<size_t>(i)])}),
           context);
    return batch;
  }

 private:
  void fill(data::Batch& batch, int64_t row, RandomKey key, const data::SampleContext& context) const {
    RandomStream random(key);
    const int64_t size = element_count(info_.input_shape);
    if (info_.task == data::Task::next_token) {
      int64_t token = static_cast<int64_t>(random.below(static_cast<uint64_t>(info_.classes)));
      for (int64_t t = 0; t < size; ++t) {
        batch.input.as<int64_t>()[row * size + t] = token;
        token = (token * 3 + 1) % info_.classes;
        batch.target.as<int64_t>()[row * size + t] = token;
      }
      return;
    }
    const auto label = static_cast<int64_t>(random.below(static_cast<uint64_t>(std::max<int64_t>(2, info_.classes))));
    double sum = 0;
    RandomStream pattern(random_key({77, static_cast<uint64_t>(label)}));
    RandomStream augment(derive(derive(key, static_cast<uint64_t>(context.epoch)), "augment"));
    for (int64_t i = 0; i < size; ++i) {
      double value = pattern.normal() + noise_ * random.normal();
      sum += value * std::cos(static_cast<double>(i));
      if (context.augment) value += 0.1 * augment.normal();  // like data/, a function of (seed, epoch, sample)
      batch.input.as<float>()[row * size + i] = static_cast<float>(value);
    }
    if (info_.task == data::Task::regression) {
      batch.target.as<float>()[row] = static_cast<float>(sum);
    } else {
      batch.target.as<int64_t>()[row] = label;
    }
  }

  data::DataInfo info_;
  double noise_;
  bool in_memory_ = true;
};

// Base of data sets that alter the samples of another one.
class AlteredData : public data::Dataset {
 public:
  explicit AlteredData(const SyntheticData& data) : data_(data) {}
  const data::DataInfo& info() const override { return data_.info(); }
  int64_t size(data::Split split) const override { return data_.size(split); }
  std::string describe(data::Split split, int64_t sample) const override { return data_.describe(split, sample); }
  bool in_memory() const override { return true; }

 protected:
  const SyntheticData& data_;
};

// An engine with the objects that it needs, for a job without autos.
struct TestEngine {
  TestEngine(const spec::Job& job, const data::Dataset& data,
             std::function<std::unique_ptr<model::Model>()> make_model = nullptr, bool counts_layers = false)
      : prefetcher(data, job.trainer.seed, 2, 1 << 24),
        reducer(make_local_reducer()),
        engine(EngineOptions{.job = job,
                             .dataset = &data,
                             .prefetcher = &prefetcher,
                             .reducer = reducer.get(),
                             .make_model = std::move(make_model),
                             .counts_layers = counts_layers}) {}
  data::Prefetcher prefetcher;
  std::unique_ptr<Reducer> reducer;
  Engine engine;
};

// Runs a step that must fail, and returns its message.
inline std::string refused_step(Engine& engine) {
  const Digest before = digest(engine.state());
  try {
    engine.step(0.01, false);
  } catch (const Diverged& error) {
    EXPECT_EQ(error.code, ErrorCode("TRAIN_DIVERGED"));
    EXPECT_EQ(digest(engine.state()), before);  // the state is unchanged
    return error.what();
  }
  ADD_FAILURE() << "the step was committed";
  return "";
}

inline spec::Job test_job(const std::string& model, int64_t lanes = 1, int64_t shards = 8) {
  model::install_keyed_random();
  spec::Job job;
  job.model.name = model;
  job.loss.name = "cross_entropy";
  job.trainer.batch_size = 40;
  job.trainer.shards = shards;
  job.trainer.lanes = lanes;
  job.trainer.precision = "fp32";
  job.trainer.memory_format = "contiguous";
  job.trainer.device = "cpu";
  job.trainer.seed = 5;
  return job;
}

}  // namespace sinew::train
