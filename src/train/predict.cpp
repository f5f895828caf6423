#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "train/apply_model.h"

namespace sinew::train {
namespace {

// Returns the most likely class of one row of outputs, and its probability. A row with a NaN has no class. Neither has
// a row of several outputs of which the largest is infinite, because its softmax is undefined. The metrics also count
// such rows as wrong.
std::pair<int32_t, float> most_likely(const float* row, int64_t width, bool single_logit, bool sigmoid) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  if (std::any_of(row, row + width, [](float value) { return std::isnan(value); })) return {kNoClass, kNaN};
  const auto logistic = [](double x) { return 1.0 / (1.0 + std::exp(-x)); };
  if (single_logit) return {row[0] > 0 ? 1 : 0, static_cast<float>(logistic(std::abs(row[0])))};
  const int64_t best = std::max_element(row, row + width) - row;
  if (!std::isfinite(row[best])) return {kNoClass, kNaN};
  if (sigmoid) return {static_cast<int32_t>(best), static_cast<float>(logistic(row[best]))};
  double sum = 0;
  for (int64_t i = 0; i < width; ++i) sum += std::exp(static_cast<double>(row[i]) - static_cast<double>(row[best]));
  return {static_cast<int32_t>(best), static_cast<float>(1.0 / sum)};
}

// The class and its probability, as most_likely() returns them, if the second class needs this score.
std::pair<int32_t, float> by_threshold(const float* row, int64_t width, std::pair<int32_t, float> likely,
                                       double score) {
  if (likely.first == kNoClass || width > 2) return likely;
  const int32_t chosen = (width == 1 ? row[0] : row[1] - row[0]) >= score ? 1 : 0;
  return {chosen, chosen == likely.first ? likely.second : 1 - likely.second};
}

}  // namespace

Predictions predict(const Trained& trained, const spec::Job& job, const std::string& path, Disk& disk) {
  const data::DataInfo known = training_data(trained, job);
  spec::DataSource source;
  (known.format == "idx" || known.format == "npy" ? source.images : source.path) = path;
  AppliedModel applied = apply_model(trained, job, open_samples(trained, job, source, /*labelled=*/false, disk), disk);
  const data::DataInfo& info = applied.dataset->info();
  const bool numbers = info.task == data::Task::regression, sigmoid = applied.job.loss.name == "bce";
  const auto count = static_cast<size_t>(applied.dataset->size(data::Split::test));
  const auto threshold = threshold_of(trained, job);
  const int64_t wanted = outputs_for(applied.job.loss.name, info);
  if (wanted == 0)
    throw Error("MODEL_OUTPUT_MISMATCH", "the model returns only its loss, so it has no predictions",
                "use sinew eval, or export a model that returns the prediction");
  Predictions predictions;
  predictions.width = numbers ? element_count(info.target_shape) : 1;
  predictions.numbers.resize(numbers ? count * static_cast<size_t>(predictions.width) : 0);
  predictions.classes.resize(numbers ? 0 : count);
  predictions.probabilities.resize(numbers ? 0 : count);
  std::vector<char> decoded(count, 0);  // bytes and not bits, because lanes write to it in parallel
  std::mutex mutex;
  applied.engine->outputs(
      data::Split::test, [&](const data::ShardRequest&, const data::Batch& batch, const torch::Tensor& outputs) {
        for (const data::Skipped& skipped : batch.skipped) {
          const std::lock_guard lock(mutex);
          if (predictions.first_skipped.empty()) predictions.first_skipped = skipped.what;
        }
        if (batch.count() == 0) return;
        // [batch, outputs]; for tokens, the outputs at the last position, which predict the token after the window.
        const torch::Tensor last = outputs.dim() == 3 ? outputs.select(1, outputs.size(1) - 1) : outputs;
        const torch::Tensor values = last.to(torch::kCPU, torch::kFloat32).reshape({batch.count(), -1}).contiguous();
        const int64_t width = values.size(1);
        if (width != wanted)
          throw Error("MODEL_OUTPUT_MISMATCH",
                      "the model has " + std::to_string(width) + " outputs for each sample, but the loss takes " +
                          std::to_string(wanted),
                      "change the model's last layer or the data's classes");
        for (int64_t i = 0; i < batch.count(); ++i) {
          const float* row = values.const_data_ptr<float>() + i * width;
          const auto sample = static_cast<size_t>(batch.samples[static_cast<size_t>(i)]);
          decoded[sample] = 1;
          for (int64_t j = 0; numbers && j < width; ++j) {
            const size_t which = info.target_std.size() == 1 ? 0 : static_cast<size_t>(j);
            predictions.numbers[sample * static_cast<size_t>(width) + static_cast<size_t>(j)] =
                row[j] * info.target_std[which] + info.target_mean[which];
          }
          if (numbers) continue;
          auto likely = most_likely(row, width, width == 1 && info.classes == 2, sigmoid);
          if (threshold) likely = by_threshold(row, width, likely, *threshold);
          std::tie(predictions.classes[sample], predictions.probabilities[sample]) = likely;
        }
      });
  predictions.decoded.assign(decoded.begin(), decoded.end());
  predictions.samples = std::move(applied.dataset);
  return predictions;
}

}  // namespace sinew::train
