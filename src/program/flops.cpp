// Counts the floating-point operations of a program's products, from the shapes in the file.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "program/program.h"

namespace sinew::program {
namespace {

// Evaluates an expression of sympy, such as "Mul(Integer(16), Symbol('s77', positive=True, integer=True))". Every
// symbol has the value 1. Returns nullopt for an expression with other functions.
class Expression {
 public:
  Expression(const std::string& text, std::set<std::string>& symbols) : text_(text), symbols_(symbols) {}

  std::optional<double> value() {
    const auto found = term(0);
    return found && at_ == text_.size() ? found : std::nullopt;
  }

 private:
  static constexpr int kMaxDepth = 64;

  std::optional<double> term(int depth) {
    if (depth > kMaxDepth) return std::nullopt;
    skip();
    if (at_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[at_])) || text_[at_] == '-'))
      return number();
    std::string word;
    while (at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_]))) word += text_[at_++];
    if (!take('(')) return std::nullopt;
    if (word == "Symbol") return symbol();
    std::vector<double> items;
    while (!take(')')) {
      if (!items.empty() && !take(',')) return std::nullopt;
      const auto item = term(depth + 1);
      if (!item) return std::nullopt;
      items.push_back(*item);
    }
    return combined(word, items);
  }

  std::optional<double> number() {
    size_t end = at_ + 1;
    while (end < text_.size() && std::isdigit(static_cast<unsigned char>(text_[end]))) ++end;
    const double value = std::atof(text_.substr(at_, end - at_).c_str());
    at_ = end;
    return value;
  }

  std::optional<double> symbol() {  // 's77', positive=True ...)
    const size_t open = text_.find('\'', at_), close = open == std::string::npos ? open : text_.find('\'', open + 1);
    const size_t end = close == std::string::npos ? close : text_.find(')', close);
    if (end == std::string::npos) return std::nullopt;
    symbols_.insert(text_.substr(open + 1, close - open - 1));
    at_ = end + 1;
    return 1;
  }

  static std::optional<double> combined(const std::string& word, const std::vector<double>& items) {
    if (word == "Integer" && items.size() == 1) return items[0];
    if (word == "Mul" || word == "Add") {
      double result = word == "Mul" ? 1 : 0;
      for (const double item : items) result = word == "Mul" ? result * item : result + item;
      return result;
    }
    if (items.size() != 2) return std::nullopt;
    if (word == "Pow") return std::pow(items[0], items[1]);
    if (word == "FloorDiv" && items[1] != 0) return std::floor(items[0] / items[1]);
    if (word == "Max") return std::max(items[0], items[1]);
    if (word == "Min") return std::min(items[0], items[1]);
    return std::nullopt;
  }

  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char letter) {
    skip();
    if (at_ >= text_.size() || text_[at_] != letter) return false;
    ++at_;
    return true;
  }

  const std::string& text_;
  std::set<std::string>& symbols_;
  size_t at_ = 0;
};

using Sizes = std::optional<std::vector<double>>;

double product(const std::vector<double>& sizes, size_t first, size_t last) {
  double result = 1;
  for (size_t i = first; i < last && i < sizes.size(); ++i) result *= sizes[i];
  return result;
}
double product(const std::vector<double>& sizes) {
  return product(sizes, 0, sizes.size());
}

class FlopCounter {
 public:
  void count(const Graph& graph) {
    for (const Node& node : graph.nodes) {
      count(graph, node);
      for (const NamedArgument& input : node.inputs) {
        if (const auto* body = std::get_if<std::shared_ptr<const Graph>>(&input.value.value)) count(**body);
      }
    }
  }

  Flops result() && {
    flops_.symbols.assign(symbols_.begin(), symbols_.end());
    return std::move(flops_);
  }

 private:
  using Rule = std::optional<double> (FlopCounter::*)(const Graph&, const Node&);

  void count(const Graph& graph, const Node& node) {
    static const std::map<std::string, Rule> rules = {
        {"linear", &FlopCounter::linear},
        {"mm", &FlopCounter::matrices<0>},
        {"bmm", &FlopCounter::matrices<0>},
        {"matmul", &FlopCounter::matrices<0>},
        {"mv", &FlopCounter::matrices<0>},
        {"addmm", &FlopCounter::matrices<1>},
        {"baddbmm", &FlopCounter::matrices<1>},
        {"conv1d", &FlopCounter::convolution},
        {"conv2d", &FlopCounter::convolution},
        {"conv3d", &FlopCounter::convolution},
        {"convolution", &FlopCounter::convolution},
        {"conv_transpose1d", &FlopCounter::transposed},
        {"conv_transpose2d", &FlopCounter::transposed},
        {"conv_transpose3d", &FlopCounter::transposed},
        {"scaled_dot_product_attention", &FlopCounter::attention},
        {"lstm", &FlopCounter::recurrent},
        {"gru", &FlopCounter::recurrent},
        {"rnn_tanh", &FlopCounter::recurrent},
        {"rnn_relu", &FlopCounter::recurrent},
        {"einsum", &FlopCounter::einsum},
    };
    constexpr std::string_view kPrefix = "torch.ops.aten.";
    if (!node.target.starts_with(kPrefix)) return;
    const std::string name = node.target.substr(kPrefix.size(), node.target.find('.', kPrefix.size()) - kPrefix.size());
    const auto rule = rules.find(name);
    if (rule == rules.end()) return;
    const auto found = (this->*rule->second)(graph, node);
    if (!found) {
      ++flops_.not_counted["aten." + name];
      return;
    }
    flops_.total += *found;
    flops_.by_operator["aten." + name] += *found;
  }

  Sizes sizes_of(const Graph& graph, const Argument& argument) {
    const auto* ref = std::get_if<ValueRef>(&argument.value);
    if (ref == nullptr) return std::nullopt;
    const auto& meta = graph.values.at(static_cast<size_t>(ref->id)).meta;
    if (!meta) return std::nullopt;
    std::vector<double> sizes;
    for (const Dim& dim : meta->sizes) {
      const auto size =
          dim.fixed ? std::optional(static_cast<double>(*dim.fixed)) : Expression(dim.expression, symbols_).value();
      if (!size) return std::nullopt;
      sizes.push_back(*size);
    }
    return sizes;
  }
  Sizes input(const Graph& graph, const Node& node, size_t index) {
    return index < node.inputs.size() ? sizes_of(graph, node.inputs[index].value) : std::nullopt;
  }
  Sizes output(const Graph& graph, const Node& node) {
    return node.outputs.empty() ? std::nullopt : sizes_of(graph, node.outputs[0]);
  }

  std::optional<double> linear(const Graph& graph, const Node& node) {
    const Sizes weight = input(graph, node, 1), out = output(graph, node);
    if (!weight || !out || weight->empty()) return std::nullopt;
    return 2 * product(*out) * weight->back();
  }

  template <size_t First>
  std::optional<double> matrices(const Graph& graph, const Node& node) {
    const Sizes left = input(graph, node, First), out = output(graph, node);
    if (!left || !out || left->empty()) return std::nullopt;
    return 2 * product(*out) * left->back();
  }

  std::optional<double> convolution(const Graph& graph, const Node& node) {
    for (const NamedArgument& argument : node.inputs) {
      const bool* value = std::get_if<bool>(&argument.value.value);
      if (argument.name == "transposed" && value != nullptr && *value) return transposed(graph, node);
    }
    const Sizes weight = input(graph, node, 1), out = output(graph, node);
    if (!weight || !out) return std::nullopt;
    return 2 * product(*out) * product(*weight, 1, weight->size());
  }
  std::optional<double> transposed(const Graph& graph, const Node& node) {
    const Sizes in = input(graph, node, 0), weight = input(graph, node, 1);
    if (!in || !weight) return std::nullopt;
    return 2 * product(*in) * product(*weight, 1, weight->size());
  }

  std::optional<double> attention(const Graph& graph, const Node& node) {
    const Sizes query = input(graph, node, 0), key = input(graph, node, 1), value = input(graph, node, 2);
    if (!query || !key || !value || query->size() < 2 || key->size() < 2 || value->empty()) return std::nullopt;
    const double rows = product(*query, 0, query->size() - 1), others = (*key)[key->size() - 2];
    return 2 * rows * others * (query->back() + value->back());
  }

  // A recurrent layer multiplies every token with every weight matrix once.
  std::optional<double> recurrent(const Graph& graph, const Node& node) {
    const Sizes in = input(graph, node, 0);
    if (!in || in->empty()) return std::nullopt;
    double weights = 0;
    for (const NamedArgument& argument : node.inputs) {
      const auto* list = std::get_if<List>(&argument.value.value);
      if (list == nullptr || argument.name != "params") continue;
      for (const Argument& item : list->items) {
        const Sizes one = sizes_of(graph, item);
        if (!one) return std::nullopt;
        if (one->size() == 2) weights += product(*one);
      }
    }
    return 2 * product(*in, 0, in->size() - 1) * weights;
  }

  // Counts one loop over all index letters. That is an upper bound, because an einsum may sum over some letters early.
  std::optional<double> einsum(const Graph& graph, const Node& node) {
    const auto* equation = node.inputs.size() < 2 ? nullptr : std::get_if<std::string>(&node.inputs[0].value.value);
    const auto* operands = equation == nullptr ? nullptr : std::get_if<List>(&node.inputs[1].value.value);
    if (operands == nullptr) return std::nullopt;
    std::map<char, double> letters;
    size_t at = 0;
    for (const Argument& operand : operands->items) {
      const Sizes sizes = sizes_of(graph, operand);
      if (!sizes) return std::nullopt;
      for (const double size : *sizes) {
        while (at < equation->size() && (*equation)[at] == ' ') ++at;
        if (at >= equation->size() || !std::isalpha(static_cast<unsigned char>((*equation)[at]))) return std::nullopt;
        letters[(*equation)[at++]] = size;
      }
      if (at < equation->size() && (*equation)[at] == ',') ++at;
    }
    double result = 2;
    for (const auto& [letter, size] : letters) result *= size;
    return operands->items.size() < 2 ? 0 : result * static_cast<double>(operands->items.size() - 1);
  }

  Flops flops_;
  std::set<std::string> symbols_;
};

}  // namespace

Flops flops_of(const Program& program) {
  FlopCounter counter;
  counter.count(program.graph);
  return std::move(counter).result();
}

}  // namespace sinew::program
