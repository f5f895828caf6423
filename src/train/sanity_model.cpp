// Checks the untrained model as a function: its initial loss, what its output depends on, and whether it repeats.
#include <algorithm>
#include <cmath>

#include "train/sanity.h"

namespace sinew::train::sanity {
namespace {

constexpr int64_t kStartSamples = 256, kPieces = 64;
// The initial loss of a default initialisation differs from the expected loss by less than this.
constexpr double kStartFactor = 1.5, kStartSlack = 0.5;
constexpr double kStartFactorOfNumbers = 3;  // for regression, where squares of outputs add to those of targets
constexpr int64_t kRows = 8;                 // number of samples in the batch of the leak test
constexpr double kSame = 1e-4;               // relative tolerance; kernels may add in another order

RandomKey forward_key(const Subject& subject) {
  return derive(random_key({subject.job.trainer.seed}), "check");
}

torch::Tensor forward(const Subject& subject, model::Model& model, const torch::Tensor& input) {
  const torch::NoGradGuard no_grad;
  const model::RandomScope random(forward_key(subject));
  return model.forward(input).to(torch::kFloat32);
}

bool has_parameter_like(model::Model& model, const char* word) {
  for (const auto& buffer : model.buffers()) {
    if (buffer.name.find(word) != std::string::npos) return true;
  }
  return false;
}

double largest_difference(const torch::Tensor& a, const torch::Tensor& b) {
  if (!b.isfinite().all().item<bool>()) return INFINITY;
  const double scale = std::max(1e-6, a.abs().max().item<double>());
  return (a - b).abs().max().item<double>() / scale;
}

// Returns the largest relative change in the outputs of other samples when the input of one sample changes.
double leak(const Subject& subject, model::Model& model, const torch::Tensor& input) {
  const torch::Tensor before = forward(subject, model, input);
  double worst = 0;
  for (const int64_t row : {int64_t{0}, input.size(0) - 1}) {
    torch::Tensor changed = input.clone();
    changed.select(0, row).copy_(other_inputs(subject, input[row]));
    const torch::Tensor after = forward(subject, model, changed);
    std::vector<int64_t> others;
    for (int64_t i = 0; i < input.size(0); ++i) {
      if (i != row) others.push_back(i);
    }
    const torch::Tensor index = torch::tensor(others);
    worst = std::max(worst, largest_difference(before.index_select(0, index), after.index_select(0, index)));
  }
  return worst;
}

// Returns the largest relative change in the outputs of the first half when the second half of the tokens changes.
double future_leak(const Subject& subject, model::Model& model, const torch::Tensor& input) {
  const int64_t middle = input.size(1) / 2;
  torch::Tensor changed = input.clone();
  changed.slice(1, middle).copy_(other_inputs(subject, input.slice(1, middle)));
  const torch::Tensor before = forward(subject, model, input), after = forward(subject, model, changed);
  return middle == 0 ? 0 : largest_difference(before.slice(1, 0, middle), after.slice(1, 0, middle));
}

int64_t weight_matrices(model::Model& model) {
  int64_t count = 0;
  for (const auto& parameter : model.parameters()) count += parameter.tensor.dim() >= 2 ? 1 : 0;
  return count;
}

}  // namespace

void check_initial_loss(Subject& subject, SanityFinding& finding) {
  if (!subject.job.model.init_from.path.empty()) {
    finding.verdict = Verdict::skip;
    finding.what = "the job starts from given weights";
    return;
  }
  const auto model = subject.make_model();
  model->set_training(true);
  const auto chosen = subject.draw(subject.train, kStartSamples, 11);
  double sum = 0, weight = 0, nothing = 0, seen = 0;
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < chosen.size(); i += kPieces) {
    const data::Batch batch =
        subject.load(data::Split::train, std::span(chosen).subspan(i, std::min<size_t>(kPieces, chosen.size() - i)));
    const Loss::Value loss = subject.loss(forward(subject, *model, tensor_of(batch.input)), tensor_of(batch.target));
    sum += loss.sum.item<double>();
    weight += loss.weight;
    nothing += loss_of_zeros(subject, batch) * loss.weight;
    seen += static_cast<double>(batch.count());
  }
  if (weight <= 0) {
    finding.verdict = Verdict::skip;
    finding.what = "these samples have no weight (loss.class_weights)";
    return;
  }
  const double start = sum / weight, expected = nothing / weight;
  finding.what = format("%.4g, expected about %.4g (%s of a model that knows nothing)", start, expected,
                        subject.loss.name().c_str());
  const double factor = subject.info().task == data::Task::regression ? kStartFactorOfNumbers : kStartFactor;
  if (!(start <= factor * expected + kStartSlack)) {
    const bool large = subject.train.deviation > 5 || std::abs(subject.train.mean) > 5;
    judge(finding, Verdict::fail, large ? "inputs_unnormalised" : "initialisation",
          large ? "inputs are far from mean 0 and deviation 1"
                : "the initial weights, or those of the last layer, are too large",
          large ? "data.normalize=auto" : "initialise the last layer near zero");
  } else if (start < 0.5 * expected - 0.05 && !comes_with_weights(subject.job.model)) {
    judge(finding, Verdict::fail, "knows_too_much", "the target is part of the input, or the model is already trained",
          "remove the target from the inputs");
  }
}

void check_function(Subject& subject, SanityFinding& finding) {
  const auto model = subject.make_model();
  model->set_training(false);
  const auto chosen = subject.draw(subject.train, kRows, 12);
  const torch::Tensor x = tensor_of(subject.load(data::Split::train, chosen).input);
  const torch::Tensor out = forward(subject, *model, x);
  if (!out.isfinite().all().item<bool>()) {
    finding.what = "outputs are not finite before any training";
    judge(finding, Verdict::fail, "initialisation", "the initial weights overflow", "use smaller initial weights");
    return;
  }
  const torch::Tensor other = forward(subject, *model, other_inputs(subject, x));
  finding.what =
      format("%lld parameters; outputs depend on inputs", static_cast<long long>(model::parameter_count(*model)));
  if (largest_difference(out, other) == 0) {
    finding.what = "outputs are the same for every input";
    judge(finding, Verdict::fail, "output_constant", "a dead layer, a layer of zeros, or an input that is never used",
          "check the initial weights and how forward uses its input");
    return;
  }
  if (subject.reads_tokens() || subject.reads_indices || x.size(0) < 2) return;
  // A linear function preserves differences: f(x + y) - f(x) = f(y) - f(0).
  const torch::Tensor y = 2 * x.roll(1, 0) + 1, zero = forward(subject, *model, torch::zeros_like(x));
  const torch::Tensor left = forward(subject, *model, x + y) - out, right = forward(subject, *model, y) - zero;
  // If the outputs hardly depend on the input, rounding hides the differences. The check then concludes nothing.
  const bool shows = right.abs().max().item<double>() > 1e-3 * out.abs().max().item<double>();
  const bool linear = shows && largest_difference(right, left) < kSame;
  const bool meant =
      subject.job.model.name == "linear" || subject.job.model.name == "svm" || weight_matrices(*model) < 2;
  if (linear && !meant) {
    finding.what = format("the model is a linear function although it has %lld layers",
                          static_cast<long long>(weight_matrices(*model)));
    judge(finding, Verdict::fail, "no_activation", "there is no activation between its layers",
          "put an activation after each hidden layer");
  } else {
    finding.what += linear ? " linearly, as intended" : "";
  }
}

void check_batch_leak(Subject& subject, SanityFinding& finding) {
  const auto model = subject.make_model();
  const auto chosen = subject.draw(subject.train, kRows, 13);
  if (chosen.size() < 2) {
    finding.verdict = Verdict::skip;
    finding.what = "there is only one sample";
    return;
  }
  const torch::Tensor input = tensor_of(subject.load(data::Split::train, chosen).input);
  model->set_training(false);
  const double in_eval = leak(subject, *model, input);
  finding.what = "changing one sample does not change the outputs of others";
  if (in_eval > kSame) {
    finding.what = format("changing one sample changes the outputs of others by %.2g in evaluation mode", in_eval);
    judge(finding, Verdict::fail, "batch_leak",
          "an operation mixes samples: a view or transpose over the wrong dimension, or statistics over the batch",
          "operate only along the feature dimensions; dimension 0 is the sample");
    return;
  }
  if (subject.info().task == data::Task::next_token && input.dim() == 2 && input.size(1) > 1) {
    const double future = future_leak(subject, *model, input);
    if (future > kSame) {
      finding.what = format("changing later tokens changes earlier outputs by %.2g", future);
      judge(finding, Verdict::fail, "future_leak", "the model sees the tokens that it must predict",
            "mask the future, and use no bidirectional layers");
      return;
    }
    finding.what += ", and later tokens do not change earlier ones";
  }
  if (has_parameter_like(*model, "running_mean")) {
    finding.what += " (in evaluation; in training batch norm correctly mixes them)";
    return;
  }
  model->set_training(true);
  const double in_training = leak(subject, *model, input);
  if (in_training <= kSame) return;
  finding.what = format(
      "changing one sample changes the outputs of others by %.2g in training mode, without batch norm", in_training);
  judge(finding, Verdict::fail, "batch_leak", "an operation mixes samples in training mode",
        "operate only along the feature dimensions; dimension 0 is the sample");
}

void check_eval_mode(Subject& subject, SanityFinding& finding) {
  const auto model = subject.make_model();
  const data::Batch batch = subject.load(data::Split::train, subject.draw(subject.train, 32, 14));
  const torch::Tensor input = tensor_of(batch.input), targets = tensor_of(batch.target);
  const auto run = [&](uint64_t draw) {
    const torch::NoGradGuard no_grad;
    const model::RandomScope random(random_key({draw}));
    return model->forward(input);
  };
  const auto loss_of = [&](const torch::Tensor& outputs) {
    const Loss::Value loss = subject.loss(outputs, targets);
    return loss.sum.item<double>() / std::max(1e-12, loss.weight);
  };
  model->set_training(true);
  const double training = loss_of(run(1));
  model->set_training(false);
  const torch::Tensor once = run(1), twice = run(2);
  if (!torch::equal(once, twice)) {
    finding.what =
        format("the same input gave outputs that differ by %.2g of their size", largest_difference(once, twice));
    judge(finding, Verdict::fail, "random_in_eval",
          "dropout or noise stays on in evaluation mode (traced TorchScript does this), or forward keeps hidden state",
          "make forward depend only on its input, weights and training mode");
    return;
  }
  finding.what = format("the same input gave the same output twice; untrained loss %.4g, in training mode %.4g",
                        loss_of(once), training);
}

}  // namespace sinew::train::sanity
