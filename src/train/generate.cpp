#include "train/generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "model/model.h"

namespace sinew::train {
namespace {

// The outputs of the model after the last of these tokens.
std::vector<float> outputs_after(const LoadedModel& loaded, std::span<const int64_t> tokens) {
  const torch::Tensor input =
      torch::from_blob(const_cast<int64_t*>(tokens.data()), {1, static_cast<int64_t>(tokens.size())}, torch::kInt64)
          .clone();
  const torch::Tensor outputs = loaded.model->forward(input, torch::zeros_like(input));
  if (outputs.dim() != 3 || outputs.size(1) != input.size(1) || outputs.size(2) != loaded.data.classes)
    throw Error("MODEL_OUTPUT_MISMATCH", "the model does not predict one token after each token of a text",
                "only a model that was trained on text continues a prompt");
  const torch::Tensor last = outputs[0][outputs.size(1) - 1].to(torch::kCPU, torch::kFloat32).contiguous();
  return {last.const_data_ptr<float>(), last.const_data_ptr<float>() + last.numel()};
}

}  // namespace

int64_t choose_token(std::span<const float> outputs, int64_t tokens, const Generation& options, RandomStream& random) {
  const auto allowed = outputs.first(static_cast<size_t>(std::min<int64_t>(tokens, std::ssize(outputs))));
  if (!std::ranges::all_of(allowed, [](float value) { return std::isfinite(value); }))
    throw Error("MODEL_OUTPUT_NOT_FINITE", "the model's outputs are not finite numbers",
                "train it again with a lower optimizer.lr");
  std::vector<int64_t> order(allowed.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::ranges::stable_sort(
      order, [&](int64_t a, int64_t b) { return allowed[static_cast<size_t>(a)] > allowed[static_cast<size_t>(b)]; });
  if (options.temperature == 0) return order.front();
  if (options.top_k > 0 && options.top_k < std::ssize(order)) order.resize(static_cast<size_t>(options.top_k));
  const double most = allowed[static_cast<size_t>(order.front())];
  std::vector<double> sums;  // of the weights up to each token
  double sum = 0;
  for (const int64_t token : order)
    sums.push_back(sum += std::exp((allowed[static_cast<size_t>(token)] - most) / options.temperature));
  const auto drawn = std::ranges::upper_bound(sums, random.uniform() * sum);
  return order[static_cast<size_t>(std::min(drawn - sums.begin(), std::ssize(order) - 1))];
}

std::string generate(const Trained& trained, const spec::Job& job, const Generation& options, Disk& disk) {
  const LoadedModel loaded = load_model(trained, job, disk);
  const data::TextCoder coder(job.data, loaded.data);
  std::vector<int64_t> tokens = coder.encode(options.prompt, "the prompt").tokens;
  if (tokens.empty())
    throw Error("PROMPT_EMPTY", "the prompt is empty", "give at least one character that the text begins with");
  const auto window = static_cast<size_t>(loaded.data.tokens_per_sample);
  if (!loaded.job.model.file.empty() && tokens.size() < window)
    throw Error("PROMPT_TOO_SHORT",
                "the prompt has " + std::to_string(tokens.size()) + " tokens, but a model from a file reads " +
                    std::to_string(window) + " at a time",
                "give a longer prompt");
  // A character that the training data does not have stands at the end of the vocabulary, and is never chosen.
  const bool unknown = coder.decode(loaded.data.classes - 1).empty();
  const torch::NoGradGuard no_grad;
  RandomStream random(random_key({options.seed}));
  std::string text;
  for (int64_t made = 0; made < options.max_tokens; ++made) {
    const size_t read = std::min(window, tokens.size());
    const std::vector<float> outputs = outputs_after(loaded, std::span(tokens).last(read));
    tokens.push_back(choose_token(outputs, loaded.data.classes - (unknown ? 1 : 0), options, random));
    text += coder.decode(tokens.back());
  }
  return text;
}

}  // namespace sinew::train
