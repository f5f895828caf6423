// `zoo_check ZOO [NAME ...]` compares programs that stock PyTorch made with the results of eager PyTorch, and prints
// one line a program. ZOO is a folder that make_zoo.py filled; the docstring of make_zoo.py describes its files.
#include <torch/torch.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/disk.h"
#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "model/program_model.h"

namespace {

using namespace sinew;
using nlohmann::json;
using Tensors = std::map<std::string, torch::Tensor>;

constexpr int kSteps = 50;

torch::Tensor as_tensor(const Array& array) {
  static const std::map<DType, at::ScalarType> types = {{DType::f32, at::kFloat},    {DType::i64, at::kLong},
                                                        {DType::boolean, at::kBool}, {DType::f64, at::kDouble},
                                                        {DType::i32, at::kInt},      {DType::u8, at::kByte}};
  return torch::from_blob(const_cast<std::byte*>(array.bytes.data()), at::IntArrayRef(array.shape),
                          torch::TensorOptions().dtype(types.at(array.dtype)))
      .clone();
}

Tensors read(const std::string& path) {
  const auto file = checkpoint::read_safetensors(system_disk(), path);
  if (!file) throw Error("ZOO_CHECK_FAILED", file.error(), "");
  Tensors tensors;
  for (const auto& [name, array] : file->tensors) tensors[name] = as_tensor(array);
  return tensors;
}

std::vector<torch::Tensor> inputs_of(const Tensors& reference, const std::string& prefix) {
  std::vector<torch::Tensor> inputs;
  for (int i = 0; reference.contains(prefix + std::to_string(i)); ++i)
    inputs.push_back(reference.at(prefix + std::to_string(i)));
  return inputs;
}

torch::Tensor loss_of(const std::string& kind, const torch::Tensor& output, const Tensors& reference) {
  if (kind == "output") return output;
  const torch::Tensor target = reference.at("target");
  if (kind == "mse") return torch::mse_loss(output, target);
  return torch::nn::functional::cross_entropy(output.dim() == 3 ? output.flatten(0, 1) : output, target.flatten());
}

// Returns the largest difference, relative to the larger of `scale` and the largest wanted element.
double difference(const torch::Tensor& got, const torch::Tensor& wanted, double scale) {
  if (got.sizes() != wanted.sizes()) throw Error("ZOO_CHECK_FAILED", "a shape differs", "");
  if (got.numel() == 0) return 0;
  const torch::Tensor apart = (got.detach().to(at::kDouble) - wanted.to(at::kDouble)).abs();
  const double own = wanted.to(at::kDouble).abs().max().item<double>();
  const double most = apart.max().item<double>();
  return most == 0 ? 0 : most / std::max({own, scale, 1e-30});
}

void expect(double found, double limit, const std::string& what) {
  if (!(found <= limit))
    throw Error("ZOO_CHECK_FAILED", what + " differs by " + std::to_string(found * 1e6) + "e-6", "");
}

struct Program {
  Program(const std::string& zoo, const json& entry)
      : name(entry.at("name")), kind(entry.at("loss")), path(zoo + "/" + name + ".pt2"), model(path) {
    reference = read(zoo + "/" + name + ".safetensors");
  }
  torch::Tensor first_output(const std::vector<torch::Tensor>& inputs) { return model.run(inputs).at(0).toTensor(); }

  std::string name, kind, path;
  model::ProgramModel model;
  Tensors reference;
};

// Does the operations of torch.optim.Adam(foreach=False, fused=False) one by one. torch::optim::Adam rounds
// differently. In a network with a discontinuity (grid sampling, a relu near 0), a difference in the last bit grows to
// percents within 50 steps.
class PlainAdam {
 public:
  explicit PlainAdam(std::vector<torch::Tensor> parameters) : parameters_(std::move(parameters)) {
    for (const torch::Tensor& p : parameters_) {
      mean_.push_back(torch::zeros_like(p, torch::MemoryFormat::Preserve));
      square_.push_back(torch::zeros_like(p, torch::MemoryFormat::Preserve));
    }
    steps_.assign(parameters_.size(), 0);
  }

  void step(const std::vector<torch::Tensor>& gradients) {
    const torch::NoGradGuard no_grad;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (!gradients[i].defined()) continue;
      const double step = ++steps_[i];
      mean_[i].lerp_(gradients[i], 1 - 0.9);
      square_[i].mul_(0.999).addcmul_(gradients[i], gradients[i], 1 - 0.999);
      const double size = 1e-3 / (1 - std::pow(0.9, step)), root = std::sqrt(1 - std::pow(0.999, step));
      parameters_[i].addcdiv_(mean_[i], (square_[i].sqrt() / root).add_(1e-8), -size);
    }
  }

 private:
  std::vector<torch::Tensor> parameters_, mean_, square_;
  std::vector<double> steps_;
};

double check_gradients(Program& program) {
  const Tensors& reference = program.reference;
  const torch::Tensor output = program.first_output(inputs_of(reference, "input."));
  expect(difference(output, reference.at("output.0"), 0), 1e-5, "the output");
  const torch::Tensor loss = loss_of(program.kind, output, reference);
  expect(difference(loss, reference.at("loss").reshape(loss.sizes()), 0), 1e-5, "the loss");
  std::vector<torch::Tensor> leaves;
  std::vector<std::string> names;
  for (const auto& parameter : program.model.parameters()) {
    if (!parameter.tensor.requires_grad()) continue;
    leaves.push_back(parameter.tensor);
    names.push_back(parameter.name);
  }
  const auto gradients = torch::autograd::grad({loss}, leaves, {}, false, false, /*allow_unused=*/true);
  double largest = 0, worst = 0;
  for (const auto& [name, tensor] : reference) {
    if (name.starts_with("grad.")) largest = std::max(largest, tensor.abs().max().item<double>());
  }
  std::set<std::string> seen;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto wanted = reference.find("grad." + names[i]);
    if (gradients[i].defined() != (wanted != reference.end()))
      throw Error("ZOO_CHECK_FAILED", "only one has a gradient of " + names[i], "");
    if (!gradients[i].defined()) continue;
    worst = std::max(worst, difference(gradients[i], wanted->second, 1e-3 * largest));
    seen.insert(names[i]);
  }
  for (const auto& [name, tensor] : reference) {
    if (name.starts_with("grad.") && !seen.contains(name.substr(5))) throw Error("ZOO_CHECK_FAILED", "no " + name, "");
  }
  expect(worst, 1e-5, "a gradient");
  for (const auto& buffer : program.model.buffers()) {
    const auto wanted = reference.find("after." + buffer.name);
    if (wanted != reference.end()) expect(difference(buffer.tensor, wanted->second, 1), 1e-5, "buffer " + buffer.name);
  }
  return worst;
}

// Trains a newly loaded model and compares the loss of every step.
double check_training(Program& program) {
  std::vector<torch::Tensor> leaves;
  for (const auto& parameter : program.model.parameters()) {
    if (parameter.tensor.requires_grad()) leaves.push_back(parameter.tensor);
  }
  PlainAdam adam(leaves);
  const auto wanted = program.reference.at("losses").to(at::kDouble);
  double worst = 0;
  for (int step = 0; step < kSteps; ++step) {
    const torch::Tensor loss =
        loss_of(program.kind, program.first_output(inputs_of(program.reference, "input.")), program.reference);
    worst = std::max(worst, difference(loss.reshape({}), wanted[step], 1e-3));
    adam.step(torch::autograd::grad({loss}, leaves, {}, false, false, /*allow_unused=*/true));
  }
  expect(worst, 1e-6, "a loss of training");
  return worst;
}

void check_other_ways(const std::string& zoo, const json& entry) {
  Program program(zoo, entry);
  const torch::NoGradGuard no_grad;
  program.model.set_training(false);
  const torch::Tensor evaluated = program.first_output(inputs_of(program.reference, "input."));
  if (entry.value("evals", true))
    expect(difference(evaluated, program.reference.at("eval.output.0"), 0), 1e-5, "the output in evaluation");
  Program fresh(zoo, entry);
  const std::vector<torch::Tensor> other = inputs_of(fresh.reference, "other.input.");
  if (other.empty()) return;
  expect(difference(fresh.first_output(other), fresh.reference.at("other.output.0"), 0), 1e-5,
         "the output of another batch size");
}

// Checks a program with dropout, for which Sinew draws the random numbers: the same key must give the same bits, and
// another key different bits.
void check_dropout(Program& program) {
  const auto outputs = [&](uint64_t seed) {
    const model::RandomScope scope(random_key({seed}));
    return program.first_output(inputs_of(program.reference, "input.")).detach().clone();
  };
  const torch::Tensor first = outputs(1);
  if (!torch::equal(first, outputs(1))) throw Error("ZOO_CHECK_FAILED", "the same key gave other numbers", "");
  if (torch::equal(first, outputs(2))) throw Error("ZOO_CHECK_FAILED", "another key gave the same numbers", "");
  if (first.sizes() != program.reference.at("output.0").sizes()) throw Error("ZOO_CHECK_FAILED", "a shape differs", "");
}

std::string check(const std::string& zoo, const json& entry) {
  const model::RandomScope scope(random_key({7}));
  Program program(zoo, entry);
  if (entry.at("dropout").get<bool>()) {
    check_dropout(program);
    return "dropout repeats";
  }
  const double gradients = check_gradients(program);
  Program fresh(zoo, entry);
  const double losses = check_training(fresh);
  check_other_ways(zoo, entry);
  std::ostringstream text;
  text << "gradients within " << gradients << ", " << kSteps << " losses within " << losses;
  return text.str();
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    std::cerr << "zoo_check ZOO [NAME ...]\n";
    return 2;
  }
  torch::set_num_threads(1);
  model::install_keyed_random();
  const std::string zoo = words[1];
  const std::set<std::string> wanted(words + 2, words + count);
  std::ifstream file(zoo + "/zoo.json");
  int failed = 0, all = 0;
  for (const json& entry : json::parse(file)) {
    const std::string name = entry.at("name");
    if (!wanted.empty() && !wanted.contains(name)) continue;
    ++all;
    try {
      std::cout << name << ": " << check(zoo, entry) << std::endl;
    } catch (const Error& error) {
      ++failed;
      std::cout << name << ": FAILED: " << error.what() << std::endl;
    } catch (const std::out_of_range&) {
      ++failed;
      std::cout << name << ": FAILED: the reference lacks something" << std::endl;
    } catch (const c10::Error& error) {
      ++failed;
      std::cout << name << ": FAILED: " << error.what_without_backtrace() << std::endl;
    }
  }
  std::cout << all - failed << " of " << all << " programs agree with eager PyTorch" << std::endl;
  return failed == 0 && all > 0 ? 0 : 1;
}
