// Implements the simple learners: a linear fit and nearest neighbours.
#include "train/sanity_probes.h"

#include <algorithm>
#include <functional>

namespace sinew::train::sanity {
namespace {

constexpr int64_t kMostFeatures = 1024;
constexpr int64_t kNeighbours = 10;

Learner asked(const char* name, const Samples& held, const std::vector<Samples>& others,
              const std::function<torch::Tensor(const torch::Tensor&)>& answer) {
  Learner learner{name, answer(held.inputs), {}};
  for (const Samples& other : others) learner.others.push_back(answer(other.inputs));
  return learner;
}

}  // namespace

Samples samples_of(const Subject& subject, data::Split split, const std::vector<int64_t>& chosen) {
  std::vector<torch::Tensor> inputs, labels;
  for (size_t i = 0; i < chosen.size(); i += 256) {
    const data::Batch batch =
        subject.load(split, std::span(chosen).subspan(i, std::min<size_t>(256, chosen.size() - i)));
    torch::Tensor x = tensor_of(batch.input);
    if (x.dim() == 4 && (x.size(2) > 16 || x.size(3) > 16))
      x = torch::adaptive_avg_pool2d(x, {std::min<int64_t>(16, x.size(2)), std::min<int64_t>(16, x.size(3))});
    x = x.flatten(1);
    if (x.size(1) > kMostFeatures) x = x.slice(1, 0, x.size(1), (x.size(1) + kMostFeatures - 1) / kMostFeatures);
    inputs.push_back(x);
    labels.push_back(tensor_of(batch.target).reshape({batch.count(), -1}).select(1, 0));
  }
  return {torch::cat(inputs), torch::cat(labels)};
}

Probes::Probes(int64_t classes, Samples learned, Samples held, std::vector<Samples> others)
    : regression_(classes == 0), learned_(std::move(learned)), held_(std::move(held)), others_(std::move(others)) {
  const torch::Tensor mean = learned_.inputs.mean(0), deviation = learned_.inputs.std(0).clamp_min(1e-6);
  const auto standard = [&](torch::Tensor& x) { x = ((x - mean) / deviation).clamp(-10, 10); };
  standard(learned_.inputs);
  standard(held_.inputs);
  for (Samples& other : others_) standard(other.inputs);
  wanted_ =
      regression_ ? ranks(learned_.labels).unsqueeze(1) : torch::one_hot(learned_.labels, classes).to(torch::kFloat32);
  prior_ = wanted_.mean(0);
  wanted_ = wanted_ - prior_;
}

torch::Tensor Probes::ranks(const torch::Tensor& values) {
  return values.argsort(int64_t{0}).argsort(int64_t{0}).to(torch::kFloat32) / static_cast<double>(values.size(0));
}

Learner Probes::linear() const {
  const torch::Tensor& x = learned_.inputs;
  const torch::Tensor gram = x.t().mm(x) + 0.1 * static_cast<double>(x.size(0)) * torch::eye(x.size(1));
  const torch::Tensor weights = torch::linalg_solve(gram, x.t().mm(wanted_));
  return asked("a linear fit", held_, others_, [&](const torch::Tensor& inputs) { return inputs.mm(weights); });
}

Learner Probes::neighbours() const {
  return asked("nearest neighbours", held_, others_, [&](const torch::Tensor& inputs) {
    const int64_t k = std::min(kNeighbours, learned_.inputs.size(0));
    const torch::Tensor nearest = std::get<1>(torch::cdist(inputs, learned_.inputs).topk(k, 1, /*largest=*/false));
    return wanted_.index_select(0, nearest.flatten()).view({inputs.size(0), k, -1}).mean(1);
  });
}

double Probes::z(const torch::Tensor& scores, const Samples& samples) const {
  return regression_ ? ranking_z(scores.select(1, 0), samples.labels) : pairing_z(scores, samples.labels);
}

}  // namespace sinew::train::sanity
