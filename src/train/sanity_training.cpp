// Runs the first steps of the job's own training. Checks that the loss stays sane and that every parameter takes part.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "train/sanity.h"

namespace sinew::train::sanity {
namespace {

constexpr int64_t kWatchedSteps = 60, kGradientSteps = 5;
constexpr double kWatchedSeconds = 6;
constexpr double kWorse = 1.3, kWorseSlack = 0.2;    // relative to the start; the noise of small batches stays below
constexpr double kVanished = 1e-6, kExploded = 1e5;  // relative to the gradients of other layers
constexpr size_t kFewestLayers = 8, kShownLayers = 6;
constexpr double kShrinks = 1e-3, kSteady = 0.8;  // between the outer quarters of the layers; rank correlation
constexpr double kMaxInactive = 0.9;

// Adds up the squares of the gradients, and notes which rows of the weights had a gradient. A row belongs to a unit. If
// the row's gradient was zero in every step, the unit was never active.
void record_gradients(Engine& engine, FirstSteps& steps, std::vector<torch::Tensor>& active_rows) {
  const auto& gradients = engine.gradients();
  steps.squares.resize(gradients.size(), 0.0);
  active_rows.resize(gradients.size());
  for (size_t p = 0; p < gradients.size(); ++p) {
    const torch::Tensor gradient = gradients[p].to(torch::kCPU, torch::kFloat64);
    steps.squares[p] += gradient.square().sum().item<double>();
    if (gradient.dim() < 2) continue;
    const torch::Tensor active = gradient.flatten(1).abs().amax(1) > 0;
    active_rows[p] = active_rows[p].defined() ? active_rows[p].logical_or(active) : active;
  }
}

double rms(const FirstSteps& steps, const std::vector<model::NamedTensor>& parameters, size_t p) {
  return std::sqrt(steps.squares[p] / static_cast<double>(parameters[p].tensor.numel()));
}

std::string name_list(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < 4; ++i) text += (i > 0 ? ", " : "") + names[i];
  return names.size() > 4 ? text + " and " + std::to_string(names.size() - 4) + " more" : text;
}

// Returns the name of a layer whose inputs are all zero, or "". The bias of such a layer has a gradient, but the weight
// has none: the activation before the layer is dead.
std::string dead_input_of(const FirstSteps& steps, const std::vector<model::NamedTensor>& parameters) {
  for (size_t p = 0; p < parameters.size(); ++p) {
    const std::string& name = parameters[p].name;
    if (!parameters[p].tensor.requires_grad()) continue;
    if (steps.squares[p] > 0 || !name.ends_with("weight") || parameters[p].tensor.dim() < 2) continue;
    const std::string bias = name.substr(0, name.size() - 6) + "bias";
    for (size_t q = 0; q < parameters.size(); ++q) {
      if (parameters[q].name == bias && steps.squares[q] > 0) return name.substr(0, name.size() - 7);
    }
  }
  return "";
}

// Reports the parameters without gradients. Returns whether there are any.
bool report_without_gradient(const FirstSteps& steps, const std::vector<model::NamedTensor>& parameters,
                             SanityFinding& finding) {
  std::vector<std::string> without_gradient;
  for (size_t p = 0; p < parameters.size(); ++p) {
    if (steps.squares[p] == 0 && parameters[p].tensor.requires_grad()) without_gradient.push_back(parameters[p].name);
  }
  if (without_gradient.empty()) return false;
  finding.what = format("%zu of %zu parameters have no gradient: ", without_gradient.size(), parameters.size()) +
                 name_list(without_gradient);
  if (const std::string layer = dead_input_of(steps, parameters); !layer.empty()) {
    judge(finding, Verdict::fail, "dead_activation",
          "the inputs of " + layer + " are all zero: the activation before it is dead",
          "use smaller biases or a lower learning rate, normalised inputs, or model.activation=gelu");
  } else {
    judge(finding, Verdict::fail, "no_gradient", "the parameters are frozen, detached from the loss, or never used",
          "check the path from the loss to these parameters");
  }
  return true;
}

// How the gradients change from the first layer to the last.
struct Trend {
  std::string text;   // some of the sizes, in the order of the layers; empty if there are few layers
  int direction = 0;  // 1: they grow steadily towards the last layer; -1: towards the first; 0: neither
};

Trend trend_of(const FirstSteps& steps, const std::vector<model::NamedTensor>& parameters) {
  std::vector<double> sizes;
  for (size_t p = 0; p < parameters.size(); ++p) {
    if (parameters[p].tensor.dim() >= 2 && parameters[p].tensor.requires_grad())
      sizes.push_back(rms(steps, parameters, p));
  }
  const size_t n = sizes.size(), quarter = n / 4;
  if (n < kFewestLayers) return {};
  Trend trend;
  for (size_t i = 0; i < kShownLayers; ++i)
    trend.text += (i > 0 ? ", " : "") + format("%.0e", sizes[i * (n - 1) / (kShownLayers - 1)]);
  const auto begin = sizes.begin();
  const double first = *std::max_element(begin, begin + static_cast<std::ptrdiff_t>(quarter)),
               last = *std::max_element(sizes.end() - static_cast<std::ptrdiff_t>(quarter), sizes.end());
  const double order = ranking_z(torch::tensor(sizes), torch::arange(static_cast<int64_t>(n)).to(torch::kFloat32)) /
                       std::sqrt(static_cast<double>(n - 1));
  if (std::abs(order) < kSteady) return trend;
  trend.direction = first < kShrinks * last ? 1 : last < kShrinks * first ? -1 : 0;
  return trend;
}

void check_gradient_sizes(const Subject& subject, const FirstSteps& steps,
                          const std::vector<model::NamedTensor>& parameters, SanityFinding& finding) {
  std::vector<double> sizes;
  size_t smallest = 0, largest = 0;
  bool any = false;
  for (size_t p = 0; p < parameters.size(); ++p) {
    // Ignores biases, because a bias before a norm rightly gets almost no gradient. Frozen parameters get none.
    if (parameters[p].tensor.dim() < 2 || !parameters[p].tensor.requires_grad()) continue;
    const double size = rms(steps, parameters, p);
    sizes.push_back(size);
    if (!any || size < rms(steps, parameters, smallest)) smallest = p;
    if (!any || size > rms(steps, parameters, largest)) largest = p;
    any = true;
  }
  if (!any) return;
  std::nth_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2), sizes.end());
  const double median = sizes[sizes.size() / 2], low = rms(steps, parameters, smallest),
               high = rms(steps, parameters, largest);
  finding.what += format("; smallest %.1e (%s), largest %.1e (%s)", low, parameters[smallest].name.c_str(), high,
                         parameters[largest].name.c_str());
  const Trend trend = trend_of(steps, parameters);
  if (!trend.text.empty()) finding.what += "; from the first layer to the last: " + trend.text;
  if (low < kVanished * high) {
    judge(finding, Verdict::fail, "vanishing_gradient",
          "the gradient vanishes on the way to " + parameters[smallest].name,
          "use fewer layers, model.norm=batch, or model.activation=relu");
  } else if (high > kExploded * median) {
    judge(finding, Verdict::fail, "exploding_gradient", "the gradient grows on the way to " + parameters[largest].name,
          "trainer.grad_clip_norm=1, or smaller initial weights");
  } else if (trend.direction > 0) {
    judge(finding, Verdict::warn, "vanishing_gradient",
          "the gradient shrinks from layer to layer on the way to the input",
          "use fewer layers, model.norm=batch, or model.activation=relu");
  } else if (trend.direction < 0) {
    judge(finding, Verdict::warn, "exploding_gradient",
          "the gradient grows from layer to layer on the way to the input",
          "trainer.grad_clip_norm=1, or smaller initial weights");
  }
  const int64_t outputs = outputs_for(subject.loss.name(), subject.info());
  for (size_t p = 0; p < parameters.size(); ++p) {
    const bool units = steps.inactive_rows[p] >= 0 && parameters[p].tensor.size(0) != outputs &&
                       parameters[p].name.find("embedding") == std::string::npos;
    if (!units || steps.inactive_rows[p] <= kMaxInactive || finding.verdict != Verdict::pass) continue;
    finding.what += format("; %.0f %% of the units of %s are never active", 100 * steps.inactive_rows[p],
                           parameters[p].name.c_str());
    judge(finding, Verdict::fail, "dead_activation", "their activation is zero for every sample",
          "use smaller biases or normalised inputs, or model.activation=gelu");
  }
}

}  // namespace

FirstSteps& first_steps(Subject& subject) {
  if (subject.first_steps) return *subject.first_steps;
  FirstSteps& steps = subject.first_steps.emplace();
  const spec::Job& job = subject.job;
  const loop::Lengths lengths = loop::lengths_of(job, subject.info().train_size, subject.info().tokens_per_sample);
  const loop::Schedule schedule(job.scheduler, lengths);
  steps.planned = lengths.total_steps.value_or(1'000'000);
  steps.uninformed_loss =
      loss_of_zeros(subject, subject.load(data::Split::train, subject.draw(subject.train, 256, 21)));
  Trial trial(subject, job, subject.data);
  std::vector<torch::Tensor> active_rows;
  const double began = subject.now();
  const double until = subject.until(kWatchedSeconds);
  try {
    for (int64_t i = 0; i < std::min(kWatchedSteps, steps.planned); ++i) {
      steps.rates.push_back(job.optimizer.lr * schedule.factor(i));
      steps.losses.push_back(trial.engine().step(steps.rates.back(), false).loss);
      if (i < kGradientSteps) record_gradients(trial.engine(), steps, active_rows);
      steps.out_of_time = subject.now() > until;
      if (steps.out_of_time) break;
    }
  } catch (const Diverged& diverged) {
    steps.diverged = diverged.what();
  }
  steps.seconds = subject.now() - began;
  for (const torch::Tensor& rows : active_rows) {
    steps.inactive_rows.push_back(rows.defined() ? 1.0 - rows.to(torch::kFloat64).mean().item<double>() : -1.0);
  }
  return steps;
}

void check_gradients(Subject& subject, SanityFinding& finding) {
  const auto model = subject.make_model();
  std::vector<model::NamedTensor> parameters = model->parameters();
  std::vector<std::string> frozen;
  for (const auto& parameter : parameters) {
    if (!parameter.tensor.requires_grad() && !frozen_on_purpose(subject.job.model, parameter.name))
      frozen.push_back(parameter.name);
  }
  if (!frozen.empty()) {
    finding.what = format("%zu of %zu parameters are frozen: ", frozen.size(), parameters.size()) + name_list(frozen);
    subject.no_training = "some parameters are frozen";
    judge(finding, Verdict::fail, "no_gradient", "the parameters do not require a gradient",
          "set requires_grad, or register them as buffers");
    return;
  }
  const FirstSteps& steps = first_steps(subject);
  if (steps.squares.empty()) {
    finding.verdict = Verdict::skip;
    finding.what = "the training made no step: " + steps.diverged.substr(0, steps.diverged.find('\n'));
    return;
  }
  if (report_without_gradient(steps, parameters, finding)) return;
  const auto still = std::ranges::count_if(parameters, [](const auto& p) { return !p.tensor.requires_grad(); });
  finding.what =
      still == 0 ? format("all %zu parameters have a gradient", parameters.size())
                 : format("all of %zu parameters have a gradient, except %td frozen ones", parameters.size(), still);
  check_gradient_sizes(subject, steps, parameters, finding);
}

void check_first_steps(Subject& subject, SanityFinding& finding) {
  const FirstSteps& steps = first_steps(subject);
  if (!steps.diverged.empty()) {
    finding.what = format("step %zu: ", steps.losses.size()) + steps.diverged.substr(0, steps.diverged.find('\n'));
    judge(finding, Verdict::fail, "diverged", "the learning rate is too large, or inputs are not normalised",
          format("optimizer.lr=%.1g, or scheduler.warmup=100st, or trainer.grad_clip_norm=1",
                 subject.job.optimizer.lr / 10));
    return;
  }
  const size_t n = steps.losses.size();
  if (n < 5) {
    finding.verdict = Verdict::skip;
    finding.what = format("there was time for only %zu steps", n);
    return;
  }
  const size_t tail = std::max<size_t>(2, n / 5);
  const double end = std::accumulate(steps.losses.end() - static_cast<std::ptrdiff_t>(tail), steps.losses.end(), 0.0) /
                     static_cast<double>(tail);
  const double start = steps.losses[0];
  finding.what = format("loss %.4g -> %.4g in %zu steps of %lld", start, end, n, static_cast<long long>(steps.planned));
  const double begin = std::max(start, steps.uninformed_loss);  // a model's own loss may be negative, hence abs() below
  if (end > begin + (kWorse - 1) * std::abs(begin) + kWorseSlack) {
    judge(finding, Verdict::fail, "learning_rate_too_large",
          format("a learning rate of %.1g is too large", subject.job.optimizer.lr),
          format("optimizer.lr=%.1g, or a longer scheduler.warmup", subject.job.optimizer.lr / 10));
  }
}

}  // namespace sinew::train::sanity
