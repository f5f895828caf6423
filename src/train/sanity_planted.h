// What the tests of `sinew check` share: data sets and models with planted bugs, and what the check must say about
// them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "train/sanity.h"
#include "train/synthetic.h"

namespace sinew::train {

using data::Split;
using data::Task;

// A data set whose samples are altered by the function `change`.
class Altered final : public data::Dataset {
 public:
  using Change = std::function<void(Split, data::Batch&)>;
  Altered(std::shared_ptr<const data::Dataset> inner, Change change)
      : inner_(std::move(inner)), change_(std::move(change)), info_(inner_->info()) {}
  data::DataInfo& info_to_change() { return info_; }
  const data::DataInfo& info() const override { return info_; }
  int64_t size(Split split) const override { return inner_->size(split); }
  std::string describe(Split split, int64_t sample) const override { return inner_->describe(split, sample); }
  bool in_memory() const override { return true; }
  data::Batch load(Split split, std::span<const int64_t> samples, const data::SampleContext& context) const override {
    data::Batch batch = inner_->load(split, samples, context);
    change_(split, batch);
    return batch;
  }

 private:
  std::shared_ptr<const data::Dataset> inner_;
  Change change_;
  data::DataInfo info_;
};

inline std::shared_ptr<SyntheticData> synthetic(Task task, Shape shape, int64_t classes, int64_t train = 700,
                                                int64_t val = 200, double noise = 1.0) {
  return std::make_shared<SyntheticData>(task, std::move(shape), classes, train, val, noise);
}

// Regression data that has the mean and standard deviation of its training targets, as readers of tables provide them.
inline std::shared_ptr<Altered> numbers(Shape shape, int64_t train = 700, int64_t val = 200) {
  auto inner = synthetic(Task::regression, std::move(shape), 0, train, val);
  std::vector<int64_t> all(static_cast<size_t>(train));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  const data::Batch batch = inner->load(Split::train, all, {});
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < train; ++i)
    sum += batch.target.as<float>()[i], squares += std::pow(batch.target.as<float>()[i], 2);
  auto data = std::make_shared<Altered>(inner, [](Split, data::Batch&) {});
  data->info_to_change().target_mean = {sum / static_cast<double>(train)};
  data->info_to_change().target_std = {
      std::sqrt(squares / static_cast<double>(train) - std::pow(sum / static_cast<double>(train), 2))};
  return data;
}

inline spec::Job job_for(const std::string& model) {
  spec::Job job = test_job(model, 1, 4);
  job.loss.name = "auto";
  job.trainer.batch_size = 32;
  job.optimizer.lr = 3e-3;
  job.model.hidden = {24};
  job.model.channels = {6};
  job.model.embedding = 12;
  job.model.hidden_size = 16;
  job.data.prefetch_threads = 1;
  return job;
}

inline std::vector<SanityFinding> check(const spec::Job& job, const data::Dataset& data,
                                        std::function<std::unique_ptr<model::Model>()> make = nullptr) {
  return check_sanity({job, &data, std::move(make), 60, nullptr}, system_clock());
}

inline std::string all_text(const std::vector<SanityFinding>& findings) {
  std::string text;
  for (const auto& finding : findings) text += finding_text(finding) + "\n";
  return text;
}

inline int64_t& label(data::Batch& batch, size_t row) {
  return batch.target.as<int64_t>()[row];
}
inline float* input(data::Batch& batch, size_t row) {
  return batch.input.as<float>() + static_cast<int64_t>(row) * (element_count(batch.input.shape) / batch.count());
}
inline int64_t width(const data::Batch& batch) {
  return element_count(batch.input.shape) / batch.count();
}
inline RandomStream dice(const data::Batch& batch, size_t row) {
  return RandomStream(random_key({4711, static_cast<uint64_t>(batch.samples[row])}));
}

// A model that is a function of its named weights and the input.
struct Custom final : model::Model {
  using Function = std::function<torch::Tensor(Custom&, const torch::Tensor&)>;
  Custom(std::vector<model::NamedTensor> weights, Function function)
      : weights_(std::move(weights)), function_(std::move(function)) {}
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor&) override { return function_(*this, x); }
  void set_training(bool on) override { training = on; }
  std::vector<model::NamedTensor> parameters() override { return weights_; }
  std::vector<model::NamedTensor> buffers() override { return {}; }
  void share(size_t index, const torch::Tensor& memory) override { weights_.at(index).tensor.set_data(memory); }
  bool wants_shadow(size_t) override { return false; }
  torch::Tensor operator[](size_t i) const { return weights_.at(i).tensor; }
  torch::Tensor layer(size_t i, const torch::Tensor& x) const {
    return torch::linear(x, weights_.at(i).tensor, weights_.at(i + 1).tensor);
  }

  std::vector<model::NamedTensor> weights_;
  Function function_;
  bool training = true;
};

// Returns the weights of linear layers of these widths, initialised as in PyTorch and multiplied by `scale`.
inline std::vector<model::NamedTensor> layers(const std::vector<int64_t>& widths, double scale = 1.0) {
  const model::RandomScope random(random_key({99}));
  std::vector<model::NamedTensor> list;
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    const double bound = scale / std::sqrt(static_cast<double>(widths[i]));
    const std::string name = "layers." + std::to_string(i);
    list.push_back(
        {name + ".weight", torch::empty({widths[i + 1], widths[i]}).uniform_(-bound, bound).requires_grad_()});
    list.push_back({name + ".bias", torch::empty({widths[i + 1]}).uniform_(-bound, bound).requires_grad_()});
  }
  return list;
}

inline std::function<std::unique_ptr<model::Model>()> custom(Custom::Function function,
                                                             std::vector<int64_t> widths = {10, 24, 4},
                                                             double scale = 1.0) {
  return [=] { return std::make_unique<Custom>(layers(widths, scale), function); };
}

struct Planted {
  std::string name;
  std::string check, cause;  // the expected check and cause
  spec::Job job;
  std::shared_ptr<const data::Dataset> data;
  std::function<std::unique_ptr<model::Model>()> make = nullptr;
};

inline std::shared_ptr<Altered> altered(std::shared_ptr<const data::Dataset> inner, Altered::Change change) {
  return std::make_shared<Altered>(std::move(inner), std::move(change));
}

inline void expect_named(const std::vector<Planted>& bugs) {
  for (const Planted& bug : bugs) {
    const auto findings = check(bug.job, *bug.data, bug.make);
    const auto found =
        std::find_if(findings.begin(), findings.end(), [&](const auto& finding) { return finding.check == bug.check; });
    ASSERT_NE(found, findings.end());
    EXPECT_EQ(found->cause, bug.cause) << bug.name << "\n" << all_text(findings);
    EXPECT_FALSE(found->hint.empty()) << bug.name;
    const auto failed =
        std::find_if(findings.begin(), findings.end(), [](const auto& finding) { return !finding.cause.empty(); });
    EXPECT_EQ(failed, found) << bug.name << " is first named otherwise\n" << all_text(findings);
    if (std::getenv("SINEW_SHOW") != nullptr) std::printf("--- %s\n%s", bug.name.c_str(), all_text(findings).c_str());
  }
}

}  // namespace sinew::train
