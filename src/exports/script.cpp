#include "exports/script.h"

#include <cctype>
#include <cstdio>
#include <map>
#include <sstream>

namespace sinew::exports {
namespace {

std::string number_in_code(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  std::string code = text;
  return code.find_first_of(".en") == std::string::npos ? code + ".0" : code;
}

// The expression for an attribute of nested modules. A name such as "0" is no identifier of Python.
std::string member(const std::string& name) {
  std::string code = "self";
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    code = std::isdigit(static_cast<unsigned char>(part[0])) != 0 ? "getattr(" + code + ", \"" + part + "\")"
                                                                  : code + "." + part;
    begin = end + 1;
  }
  return code;
}

class ScriptWriter {
 public:
  ScriptWriter(const train::LoadedModel& loaded, const Weights& weights) : loaded_(loaded), weights_(weights) {}

  std::string source() {
    prepare();
    code_ += "def outputs(self, v0: Tensor) -> Tensor:\n";
    const std::vector<Step> steps = network_of(loaded_.job.model, loaded_.data);
    for (size_t i = 0; i < steps.size(); ++i) {
      const bool states = steps[i].op == Step::Op::lstm;  // it also makes the last states, which no step uses
      line("v" + std::to_string(i + 1) + (states ? ", hidden, cell" : ""), expression(steps[i]));
    }
    code_ += "  return v" + std::to_string(steps.size()) + "\n\n";
    finish();
    code_ += "def forward(self, x: Tensor) -> Tensor:\n  return self.finish(self.outputs(self.prepare(x)))\n";
    return code_;
  }

 private:
  void line(const std::string& to, const std::string& what) { code_ += "  " + to + " = " + what + "\n"; }

  void prepare() {
    const data::Preparation preparation = data::preparation_of(loaded_.data);
    code_ += "def prepare(self, x: Tensor) -> Tensor:\n";
    const bool arrays = loaded_.data.task != data::Task::next_token && preparation.columns.empty();
    if (arrays) {
      line("x", "torch.to(x, 7)");  // float64
      if (channels_last(loaded_.data)) line("x", "torch.permute(x, [0, 3, 1, 2])");
      if (preparation.images) line("x", "torch.div(x, 255.0)");
      if (!preparation.mean.empty()) line("x", "torch.mul(torch.sub(x, self.input_mean), self.input_factor)");
    }
    code_ += loaded_.data.task == data::Task::next_token ? "  return x\n\n" : "  return torch.to(x, 6)\n\n";
  }

  void finish() {
    const Outcomes outcomes = outcomes_of(loaded_);
    code_ += "def finish(self, x: Tensor) -> Tensor:\n";
    if (!outcomes.classes) {
      code_ += "  return torch.add(torch.mul(torch.to(x, 7), self.target_std), self.target_mean)\n\n";
    } else if (outcomes.single) {
      code_ += "  return torch.sigmoid(torch.cat([torch.neg(x), x], 1))\n\n";
    } else {
      code_ += outcomes.sigmoid ? "  return torch.sigmoid(x)\n\n" : "  return torch.softmax(x, 1)\n\n";
    }
  }

  std::string bias(const std::string& name) const {
    return weights_.contains(name + ".bias") ? member(name + ".bias") : "None";
  }

  std::string expression(const Step& step) const {
    const std::string x = "v" + std::to_string(step.inputs.at(0));
    const auto both = [](int64_t value) { return "[" + std::to_string(value) + ", " + std::to_string(value) + "]"; };
    switch (step.op) {
      case Step::Op::flatten: return "torch.flatten(" + x + ", 1)";
      case Step::Op::linear:
        return "torch.linear(" + x + ", " + member(step.name + ".weight") + ", " + bias(step.name) + ")";
      case Step::Op::batch_norm:
        return "torch.batch_norm(" + x + ", " + member(step.name + ".weight") + ", " + member(step.name + ".bias") +
               ", " + member(step.name + ".running_mean") + ", " + member(step.name + ".running_var") +
               ", False, 0.1, " + number_in_code(kBatchNormEpsilon) + ", False)";
      case Step::Op::activation: return "torch." + step.name + "(" + x + ")";
      case Step::Op::convolution:
        return "torch.conv2d(" + x + ", " + member(step.name + ".weight") + ", " + bias(step.name) + ", " +
               both(step.stride) + ", " + both(step.padding) + ")";
      case Step::Op::max_pool:
        return "torch.max_pool2d(" + x + ", " + both(step.kernel) + ", " + both(step.stride) + ", " +
               both(step.padding) + ")";
      case Step::Op::mean_pixels: return "torch.flatten(torch.adaptive_avg_pool2d(" + x + ", [1, 1]), 1)";
      case Step::Op::sum: return "torch.add(" + x + ", v" + std::to_string(step.inputs.at(1)) + ")";
      case Step::Op::image_rows: return "torch.flatten(torch.transpose(" + x + ", 1, 2), 2)";
      case Step::Op::table_rows: return "torch.unsqueeze(" + x + ", 2)";
      case Step::Op::embedding: return "torch.embedding(" + member(step.name + ".weight") + ", " + x + ")";
      case Step::Op::lstm: return lstm(x, step);
      case Step::Op::subtract: return "torch.sub(" + x + ", " + member(step.name) + ")";
      case Step::Op::multiply: return "torch.mul(" + x + ", " + member(step.name) + ")";
      case Step::Op::soft_clip:
        return "torch.mul(" + x + ", torch.rsqrt(torch.add(torch.square(torch.div(" + x + ", 3.0)), 1.0)))";
      case Step::Op::waves: return waves(x, step.name);
      case Step::Op::join: return joined(step);
      case Step::Op::blend:
        return "torch.lerp(" + x + ", v" + std::to_string(step.inputs.at(1)) + ", " + member(step.name) + ")";
      case Step::Op::clamp:
        return "torch.minimum(torch.maximum(" + x + ", " + member(step.name + ".low") + "), " +
               member(step.name + ".high") + ")";
      case Step::Op::last: break;
    }
    return "torch.select(" + x + ", 1, -1)";
  }

  static std::string joined(const Step& step) {
    std::string parts;
    for (const size_t input : step.inputs) parts += (parts.empty() ? "v" : ", v") + std::to_string(input);
    return "torch.cat([" + parts + "], 1)";
  }

  static std::string waves(const std::string& x, const std::string& name) {
    const std::string angle = "torch.add(torch.mul(torch.unsqueeze(" + x + ", 2), " + member(name + ".cycles") + "), " +
                              member(name + ".shift") + ")";
    return "torch.add(torch.flatten(torch.matmul(torch.unsqueeze(torch.cos(" + angle + "), 2), " +
           member(name + ".matrix") + "), 1), " + member(name + ".offset") + ")";
  }

  std::string lstm(const std::string& x, const Step& step) const {
    std::string weights;
    for (int64_t layer = 0; layer < step.layers; ++layer) {
      for (const char* end : {"", "_reverse"}) {
        if (*end != '\0' && !step.bidirectional) continue;
        for (const char* what : {".weight_ih", ".weight_hh", ".bias_ih", ".bias_hh"})
          weights += (weights.empty() ? "" : ", ") + member(step.name + what + "_l" + std::to_string(layer) + end);
      }
    }
    const std::string layers = std::to_string(step.layers * (step.bidirectional ? 2 : 1));
    const std::string zeros =
        "torch.zeros([" + layers + ", torch.size(" + x + ", 0), " + std::to_string(step.size) + "])";
    return "torch.lstm(" + x + ", [" + zeros + ", " + zeros + "], [" + weights + "], True, " +
           std::to_string(step.layers) + ", 0.0, False, " + (step.bidirectional ? "True" : "False") + ", True)";
  }

  const train::LoadedModel& loaded_;
  const Weights& weights_;
  std::string code_;
};

// Puts a tensor where its dotted name says, and makes the modules on the way.
class ModuleTree {
 public:
  ModuleTree() : units_(std::make_shared<torch::jit::CompilationUnit>()), root_(module_named("Model")) {}

  void put(const std::string& name, const torch::Tensor& tensor, bool parameter) {
    const size_t dot = name.rfind('.');
    torch::jit::Module to = dot == std::string::npos ? root_ : module_at(name.substr(0, dot));
    const std::string last = name.substr(dot == std::string::npos ? 0 : dot + 1);
    parameter ? to.register_parameter(last, tensor, /*is_buffer=*/false) : to.register_buffer(last, tensor);
  }
  torch::jit::Module root() const { return root_; }

 private:
  torch::jit::Module module_named(const std::string& name) {
    torch::jit::Module made(c10::QualifiedName("__torch__.sinew." + name), units_, /*shouldMangle=*/true);
    made.register_attribute("training", c10::BoolType::get(), false);  // eval() and train() set it
    return made;
  }
  torch::jit::Module module_at(const std::string& path) {
    const auto known = modules_.find(path);
    if (known != modules_.end()) return known->second;
    const size_t dot = path.rfind('.');
    torch::jit::Module parent = dot == std::string::npos ? root_ : module_at(path.substr(0, dot));
    torch::jit::Module made = module_named("Part");
    parent.register_module(path.substr(dot == std::string::npos ? 0 : dot + 1), made);
    return modules_.emplace(path, made).first->second;
  }

  std::shared_ptr<torch::jit::CompilationUnit> units_;
  torch::jit::Module root_;
  std::map<std::string, torch::jit::Module> modules_;
};

}  // namespace

torch::jit::Module script_of(const train::LoadedModel& loaded, const Weights& weights) {
  ModuleTree tree;
  for (const auto& [name, tensor] : weights.used()) {
    const bool parameter = name.find("running_") == std::string::npos && torch::is_floating_point(tensor);
    tree.put(name, tensor.clone(), parameter);
  }
  const data::Preparation preparation = data::preparation_of(loaded.data);
  if (!preparation.mean.empty()) {
    std::vector<int64_t> dims(loaded.data.input_shape.size() + 1, 1);
    dims[1] = static_cast<int64_t>(preparation.mean.size());
    tree.put("input_mean", torch::tensor(preparation.mean, torch::kFloat64).reshape(dims), false);
    tree.put("input_factor", torch::tensor(preparation.factor, torch::kFloat64).reshape(dims), false);
  }
  if (const Outcomes outcomes = outcomes_of(loaded); !outcomes.classes) {
    tree.put("target_mean", torch::tensor(outcomes.mean, torch::kFloat64), false);
    tree.put("target_std", torch::tensor(outcomes.std, torch::kFloat64), false);
  }
  torch::jit::Module root = tree.root();
  root.define(ScriptWriter(loaded, weights).source());
  return root;
}

std::string script_file(const torch::jit::Module& module, const Texts& about) {
  std::ostringstream file;
  module.save(file, about);
  return std::move(file).str();
}

}  // namespace sinew::exports
