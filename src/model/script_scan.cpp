// Finds problems of a TorchScript module in its graph, without running it.
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/inliner.h>

#include <set>
#include <sstream>

#include "model/makers.h"
#include "model/script_model.h"

namespace sinew::model {
namespace {

using torch::jit::Node;

constexpr const char* kFixed = " is fixed in training mode, so evaluation would behave like training";

// Returns the argument of the node that has this name in the schema, if it is a constant.
std::optional<c10::IValue> constant(const Node* node, const std::string& name) {
  const auto* schema = node->maybeSchema();
  const auto at = schema == nullptr ? std::nullopt : schema->argumentIndexWithName(name);
  if (!at || static_cast<size_t>(*at) >= node->inputs().size()) return std::nullopt;
  return torch::jit::toIValue(node->input(static_cast<size_t>(*at)));
}

bool positive(const std::optional<c10::IValue>& value) {
  return !value || (value->isDouble() && value->toDouble() > 0) || (value->isInt() && value->toInt() > 0);
}

std::string location_of(const Node* node) {
  std::string text = node->kind().toQualString();
  if (const auto location = node->sourceRange().file_line_col()) {
    const auto& [file, line, column] = *location;
    text += " (" + file + ":" + std::to_string(line) + ")";
  }
  return text;
}

class Scanner {
 public:
  void scan(const torch::jit::Block* block) {
    for (const Node* node : block->nodes()) {
      scan(node);
      for (const torch::jit::Block* inner : node->blocks()) scan(inner);
    }
  }
  ScriptScan result() && { return std::move(scan_); }

 private:
  void scan(const Node* node) {
    const std::string kind = node->kind().toQualString();
    if (kind == "prim::fork" || kind == "prim::awaitable")
      scan_.problems.push_back(location_of(node) +
                               " hands work to other threads, so a shard would not repeat its bits");
    const auto* schema = node->maybeSchema();
    if (schema == nullptr) return;
    const std::string refused = why_refused(c10::toString(schema->operator_name()));
    if (!refused.empty()) scan_.problems.push_back(location_of(node) + ": " + refused);
    check_mode(node, kind);
  }

  void check_mode(const Node* node, const std::string& kind) {
    const bool recurrent = kind == "aten::lstm" || kind == "aten::gru" || kind.starts_with("aten::rnn_");
    const auto rate = constant(node, recurrent ? "dropout" : "p");
    for (const char* name : {"training", "train"}) {
      const auto mode = constant(node, name);
      if (!mode || !mode->isBool()) continue;
      const bool normalises = kind.find("batch_norm") != std::string::npos;
      if (normalises) {
        const auto statistics = constant(node, "running_mean");
        if (statistics && statistics->isNone()) continue;
      } else if (rate && !positive(rate)) {
        continue;
      }
      if (mode->toBool()) {
        problem(node, kFixed);
      } else {
        remark(node, normalises ? " does not update its statistics in training" : " drops nothing in training");
      }
    }
    const auto dropout = constant(node, "dropout_p");
    if (dropout && positive(dropout)) problem(node, kFixed);
  }

  void problem(const Node* node, const std::string& what) {
    if (seen_.insert(location_of(node) + what).second)
      scan_.problems.push_back(location_of(node) + what +
                               ": torch.jit.trace records only one mode, and F.dropout needs training=self.training");
  }
  void remark(const Node* node, const std::string& what) {
    if (seen_.insert(location_of(node) + what).second)
      scan_.remarks.push_back(location_of(node) + what + ": the module was traced in evaluation mode");
  }

  ScriptScan scan_;
  std::set<std::string> seen_;
};

}  // namespace

ScriptScan scan_script(const torch::jit::Module& module) {
  const auto graph = module.get_method("forward").graph()->copy();
  torch::jit::Inline(*graph);
  Scanner scanner;
  scanner.scan(graph->block());
  return std::move(scanner).result();
}

FileReport inspect_script(const std::string& file) {
  const torch::jit::Module module = load_script(file);
  FileReport report;
  const auto add = [&](const char* what, const std::string& name, const torch::Tensor& tensor) {
    std::ostringstream text;
    text << toString(tensor.scalar_type()) << ' ' << tensor.sizes();
    report.lines.push_back(std::string(what) + "\t" + name + "\t" + text.str());
  };
  int64_t numbers = 0;
  for (const auto& item : module.named_parameters()) {
    add("parameter", item.name, item.value);
    numbers += item.value.numel();
  }
  for (const auto& item : module.named_buffers()) add("buffer", item.name, item.value);
  report.lines.push_back("numbers\t" + std::to_string(numbers) + "\tin all parameters");
  if (!module.find_method("forward")) {
    report.problems.emplace_back("the module has no forward: script the whole model, not a part of it");
    return report;
  }
  const auto& schema = module.get_method("forward").function().getSchema();
  for (size_t i = 1; i < schema.arguments().size(); ++i)
    report.lines.push_back("input\t" + schema.arguments()[i].name() + "\t" + schema.arguments()[i].type()->repr_str());
  for (const auto& output : schema.returns()) report.lines.push_back("output\t-\t" + output.type()->repr_str());
  if (numbers == 0) report.problems.emplace_back("it has no parameters: torch.jit.freeze turns them into constants");
  ScriptScan scan = scan_script(module);
  for (const std::string& remark : scan.remarks) report.lines.push_back("remark\t" + remark + "\t");
  report.problems.insert(report.problems.end(), scan.problems.begin(), scan.problems.end());
  if (!report.problems.empty()) return report;
  try {
    const ScriptModel model(file);  // as training makes it
  } catch (const Error& error) {
    report.problems.push_back(problem_of(file, error));
  }
  return report;
}

}  // namespace sinew::model
