// Runs a graph with libtorch, to compare it with the model from which it was made.
#include <algorithm>
#include <functional>

#include "base/error.h"
#include "exports/graph.h"

namespace sinew::exports {
namespace {

using onnx::Element;

torch::ScalarType scalar_of(Element element) {
  switch (element) {
    case Element::u8: return torch::kUInt8;
    case Element::i8: return torch::kInt8;
    case Element::i16: return torch::kInt16;
    case Element::i32: return torch::kInt32;
    case Element::i64: return torch::kInt64;
    case Element::boolean: return torch::kBool;
    case Element::f16: return torch::kFloat16;
    case Element::bf16: return torch::kBFloat16;
    case Element::f64: return torch::kFloat64;
    default: return torch::kFloat32;
  }
}

class GraphRun {
 public:
  explicit GraphRun(std::map<std::string, Value> values) : values_(std::move(values)) {}

  void constant(const std::string& name, const onnx::Constant& constant) {
    if (constant.element == Element::text) {
      values_[name].texts = constant.texts;
      return;
    }
    const auto options = torch::TensorOptions().dtype(scalar_of(constant.element));
    values_[name].tensor = torch::from_blob(const_cast<char*>(constant.bytes.data()), constant.shape, options).clone();
  }

  void run(const onnx::Node& node) {
    node_ = &node;
    values_[node.outputs.at(0)] = result();
  }
  std::map<std::string, Value> take() { return std::move(values_); }

 private:
  const Value& value(size_t i) const { return values_.at(node_->inputs.at(i)); }
  const torch::Tensor& in(size_t i) const { return value(i).tensor; }
  template <typename Type>
  Type attribute(const char* name, Type other = {}) const {
    for (const onnx::Attribute& given : node_->attributes) {
      if (given.name == name) return std::get<Type>(given.value);
    }
    return other;
  }
  std::vector<int64_t> list(size_t i) const {
    const torch::Tensor& values = in(i);
    return {values.const_data_ptr<int64_t>(), values.const_data_ptr<int64_t>() + values.numel()};
  }
  std::vector<int64_t> pair(const char* name) const {
    auto all = attribute<std::vector<int64_t>>(name);
    all.resize(2);
    return all;
  }

  Value result() const {
    const std::string& op = node_->op;
    if (op == "LabelEncoder") return {encoded()};
    if (op == "Gather") return gathered();
    if (op == "Identity") return value(0);
    if (op == "Cast") return {in(0).to(scalar_of(static_cast<Element>(attribute<int64_t>("to"))))};
    if (op == "Concat") {
      std::vector<torch::Tensor> parts;
      for (size_t i = 0; i < node_->inputs.size(); ++i) parts.push_back(in(i));
      return {torch::cat(parts, attribute<int64_t>("axis"))};
    }
    if (op == "Unsqueeze") return {in(0).unsqueeze(list(1).at(0))};
    if (op == "Flatten") return {in(0).flatten(1)};
    if (op == "Transpose") return {in(0).permute(attribute<std::vector<int64_t>>("perm"))};
    if (op == "Reshape") return {reshaped()};
    if (op == "Softmax") return {torch::softmax(in(0), attribute<int64_t>("axis"))};
    if (op == "ArgMax") return {in(0).argmax(attribute<int64_t>("axis"), attribute<int64_t>("keepdims", 1) != 0)};
    if (op == "Where") return {torch::where(in(0), in(1), in(2))};
    if (op == "LSTM") return {lstm()};
    return {layer_or_arithmetic(op)};
  }

  torch::Tensor layer_or_arithmetic(const std::string& op) const {
    if (op == "Gemm") {
      const torch::Tensor product = torch::matmul(in(0), in(1).t());
      return node_->inputs.size() > 2 ? product + in(2) : product;
    }
    if (op == "Conv") {
      const torch::Tensor bias = node_->inputs.size() > 2 ? in(2) : torch::Tensor();
      return torch::conv2d(in(0), in(1), bias, pair("strides"), pair("pads"));
    }
    if (op == "MaxPool") return torch::max_pool2d(in(0), pair("kernel_shape"), pair("strides"), pair("pads"));
    if (op == "GlobalAveragePool") return in(0).mean(torch::IntArrayRef({2, 3}), /*keepdim=*/true);
    if (op == "BatchNormalization") {
      std::vector<int64_t> dims(static_cast<size_t>(in(0).dim()), 1);
      dims[1] = -1;
      const auto part = [&](size_t i) { return in(i).reshape(dims); };
      return (in(0) - part(3)) / torch::sqrt(part(4) + attribute<float>("epsilon")) * part(1) + part(2);
    }
    if (op == "Div") return torch::is_floating_point(in(0)) ? in(0) / in(1) : torch::div(in(0), in(1), "trunc");
    if (op == "Mod") return torch::remainder(in(0), in(1));
    using Unary = torch::Tensor (*)(const torch::Tensor&);
    static const std::map<std::string, Unary> unary = {
        {"Relu", [](const torch::Tensor& x) { return torch::relu(x); }},
        {"Tanh", [](const torch::Tensor& x) { return torch::tanh(x); }},
        {"Sigmoid", [](const torch::Tensor& x) { return torch::sigmoid(x); }},
        {"Erf", [](const torch::Tensor& x) { return torch::erf(x); }},
        {"Neg", [](const torch::Tensor& x) { return torch::neg(x); }},
        {"Cos", [](const torch::Tensor& x) { return torch::cos(x); }},
        {"Sqrt", [](const torch::Tensor& x) { return torch::sqrt(x); }},
        {"Selu", [](const torch::Tensor& x) { return torch::selu(x); }},
        {"Softplus", [](const torch::Tensor& x) { return torch::softplus(x); }},
        {"Floor", [](const torch::Tensor& x) { return torch::floor(x); }},
        {"IsNaN", [](const torch::Tensor& x) { return torch::isnan(x); }}};
    if (const auto found = unary.find(op); found != unary.end()) return found->second(in(0));
    if (op == "Add") return in(0) + in(1);
    if (op == "Sub") return in(0) - in(1);
    if (op == "MatMul") return torch::matmul(in(0), in(1));
    if (op == "Max") return torch::maximum(in(0), in(1));
    if (op == "Min") return torch::minimum(in(0), in(1));
    if (op == "Mul") return in(0) * in(1);
    if (op == "Equal") return torch::eq(in(0), in(1));
    throw Error("EXPORT_DIFFERS", "the export has the operator " + op + ", which cannot be checked",
                "this is a bug in sinew; please report it");
  }

  Value gathered() const {
    const int64_t axis = attribute<int64_t>("axis");
    const torch::Tensor& index = in(1);
    if (!value(0).texts.empty()) {
      Value chosen;
      for (int64_t i = 0; i < index.numel(); ++i)
        chosen.texts.push_back(value(0).texts.at(static_cast<size_t>(index.const_data_ptr<int64_t>()[i])));
      return chosen;
    }
    const int64_t size = in(0).size(axis);
    const torch::Tensor from_start = torch::where(index < 0, index + size, index);
    std::vector<int64_t> shape(in(0).sizes().begin(), in(0).sizes().begin() + axis);
    shape.insert(shape.end(), index.sizes().begin(), index.sizes().end());
    shape.insert(shape.end(), in(0).sizes().begin() + axis + 1, in(0).sizes().end());
    return {in(0).index_select(axis, from_start.reshape({-1})).reshape(shape)};
  }

  torch::Tensor reshaped() const {
    std::vector<int64_t> shape = list(1);
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] == 0) shape[i] = in(0).size(static_cast<int64_t>(i));
    }
    return in(0).reshape(shape);
  }

  torch::Tensor encoded() const {
    if (const auto words = attribute<std::vector<std::string>>("keys_strings"); !words.empty()) {
      const auto numbers = attribute<std::vector<float>>("values_floats");
      return numbers.empty()
                 ? looked_up<int64_t>(words, value(0).texts, attribute<std::vector<int64_t>>("values_int64s"),
                                      attribute<int64_t>("default_int64", -1), {-1})
                 : looked_up<float>(words, value(0).texts, numbers, attribute<float>("default_float"), {-1});
    }
    const torch::Tensor keys = in(0).contiguous();
    const std::vector<int64_t> given(keys.const_data_ptr<int64_t>(), keys.const_data_ptr<int64_t>() + keys.numel());
    return looked_up<int64_t>(attribute<std::vector<int64_t>>("keys_int64s"), given,
                              attribute<std::vector<int64_t>>("values_int64s"), attribute<int64_t>("default_int64", -1),
                              keys.sizes().vec());
  }

  template <typename Number, typename Key>
  static torch::Tensor looked_up(const std::vector<Key>& keys, const std::vector<Key>& given,
                                 const std::vector<Number>& numbers, Number other, const std::vector<int64_t>& shape) {
    std::map<Key, Number> table;
    for (size_t i = 0; i < keys.size(); ++i) table.emplace(keys[i], numbers.at(i));
    std::vector<Number> found;
    for (const Key& key : given) {
      const auto at = table.find(key);
      found.push_back(at == table.end() ? other : at->second);
    }
    return torch::tensor(found, c10::CppTypeToScalarType<Number>::value).reshape(shape);
  }

  // The equations of the operator LSTM with its default activations: [time, directions, batch, hidden].
  torch::Tensor lstm() const {
    const int64_t hidden = attribute<int64_t>("hidden_size"), times = in(0).size(0), batch = in(0).size(1);
    const int64_t directions = attribute<std::string>("direction") == "bidirectional" ? 2 : 1;
    std::vector<torch::Tensor> made;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const torch::Tensor w = in(1)[direction].t(), r = in(2)[direction].t();
      const std::vector<torch::Tensor> biases = in(3)[direction].chunk(2, 0);
      torch::Tensor state = torch::zeros({batch, hidden}), cell = torch::zeros({batch, hidden});
      std::vector<torch::Tensor> states(static_cast<size_t>(times));
      for (int64_t i = 0; i < times; ++i) {
        const int64_t time = direction == 0 ? i : times - 1 - i;
        const torch::Tensor sums = torch::matmul(in(0)[time], w) + torch::matmul(state, r) + biases[0] + biases[1];
        const std::vector<torch::Tensor> gates = sums.chunk(4, 1);  // input, output, forget, cell
        cell = torch::sigmoid(gates[2]) * cell + torch::sigmoid(gates[0]) * torch::tanh(gates[3]);
        state = torch::sigmoid(gates[1]) * torch::tanh(cell);
        states[static_cast<size_t>(time)] = state;
      }
      made.push_back(torch::stack(states));
    }
    return torch::stack(made, 1);
  }

  std::map<std::string, Value> values_;
  const onnx::Node* node_ = nullptr;
};

}  // namespace

std::map<std::string, Value> run_graph(const onnx::Model& graph, std::map<std::string, Value> values) {
  const torch::NoGradGuard no_grad;
  GraphRun run(std::move(values));
  for (const auto& [name, constant] : graph.constants) run.constant(name, constant);
  for (const onnx::Node& node : graph.nodes) run.run(node);
  return run.take();
}

}  // namespace sinew::exports
