#include "exports/graph.h"

#include <algorithm>

#include "base/error.h"

namespace sinew::exports {
namespace {

using onnx::Builder;
using onnx::Element;

onnx::Constant constant_from(const torch::Tensor& tensor) {
  const torch::Tensor values = tensor.detach().to(torch::kCPU, torch::kFloat32).contiguous();
  return {Element::f32,
          Shape(values.sizes().begin(), values.sizes().end()),
          std::string(static_cast<const char*>(values.const_data_ptr()), values.nbytes()),
          {}};
}

// Adds the steps of one network, one after another.
class NetworkGraph {
 public:
  NetworkGraph(Builder& builder, const Weights& weights) : builder_(builder), weights_(weights) {}

  std::string build(const std::vector<Step>& steps, const std::string& input) {
    values_.push_back(input);
    for (const Step& step : steps) values_.push_back(value_of(step));
    return values_.back();
  }

 private:
  std::string value_of(const Step& step) {
    const std::string& x = values_.at(step.inputs.at(0));
    switch (step.op) {
      case Step::Op::flatten: return builder_.add("Flatten", {x}, {{"axis", int64_t{1}}});
      case Step::Op::linear: return builder_.add("Gemm", with_bias(x, step.name), {{"transB", int64_t{1}}});
      case Step::Op::batch_norm:
        return builder_.add("BatchNormalization",
                            {x, weight(step.name + ".weight"), weight(step.name + ".bias"),
                             weight(step.name + ".running_mean"), weight(step.name + ".running_var")},
                            {{"epsilon", static_cast<float>(kBatchNormEpsilon)}});
      case Step::Op::activation: return activation(x, step.name);
      case Step::Op::convolution: return builder_.add("Conv", with_bias(x, step.name), window(step));
      case Step::Op::max_pool: return builder_.add("MaxPool", {x}, window(step));
      case Step::Op::mean_pixels:
        return builder_.add("Flatten", {builder_.add("GlobalAveragePool", {x})}, {{"axis", int64_t{1}}});
      case Step::Op::sum: return builder_.add("Add", {x, values_.at(step.inputs.at(1))});
      case Step::Op::image_rows: {
        const std::string rows = builder_.add("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
        return reshaped(rows, {0, 0, step.size});
      }
      case Step::Op::table_rows: return builder_.add("Unsqueeze", {x, list({2})});
      case Step::Op::embedding:
        return builder_.add("Gather", {weight(step.name + ".weight"), x}, {{"axis", int64_t{0}}});
      case Step::Op::lstm: return lstm(x, step);
      case Step::Op::subtract: return builder_.add("Sub", {x, weight(step.name)});
      case Step::Op::multiply: return builder_.add("Mul", {x, weight(step.name)});
      case Step::Op::soft_clip: return soft_clip(x);
      case Step::Op::waves: return waves(x, step.name);
      case Step::Op::join: {
        std::vector<std::string> parts;
        for (const size_t input : step.inputs) parts.push_back(values_.at(input));
        return builder_.add("Concat", parts, {{"axis", int64_t{1}}});
      }
      case Step::Op::blend: {
        const std::string difference = builder_.add("Sub", {values_.at(step.inputs.at(1)), x});
        return builder_.add("Add", {x, builder_.add("Mul", {difference, weight(step.name)})});
      }
      case Step::Op::clamp: {
        const std::string raised = builder_.add("Max", {x, weight(step.name + ".low")});
        return builder_.add("Min", {raised, weight(step.name + ".high")});
      }
      case Step::Op::last: break;
    }
    return builder_.add("Gather", {x, builder_.constant(onnx::integers({}, {-1}))}, {{"axis", int64_t{1}}});
  }

  std::string weight(const std::string& name) { return builder_.weight(name, constant_from(weights_.at(name))); }
  std::string list(const std::vector<int64_t>& values) {
    return builder_.constant(onnx::integers({static_cast<int64_t>(values.size())}, values));
  }
  std::string number(float value) { return builder_.constant(onnx::floats({}, {value})); }
  std::string reshaped(const std::string& x, const std::vector<int64_t>& shape) {  // 0 keeps a size
    return builder_.add("Reshape", {x, list(shape)});
  }

  std::vector<std::string> with_bias(const std::string& x, const std::string& name) {
    std::vector<std::string> inputs = {x, weight(name + ".weight")};
    if (weights_.contains(name + ".bias")) inputs.push_back(weight(name + ".bias"));
    return inputs;
  }

  static std::vector<onnx::Attribute> window(const Step& step) {
    return {{"kernel_shape", std::vector<int64_t>(2, step.kernel)},
            {"strides", std::vector<int64_t>(2, step.stride)},
            {"pads", std::vector<int64_t>(4, step.padding)}};
  }

  std::string activation(const std::string& x, const std::string& name) {
    if (name == "relu") return builder_.add("Relu", {x});
    if (name == "tanh") return builder_.add("Tanh", {x});
    if (name == "silu") return builder_.add("Mul", {x, builder_.add("Sigmoid", {x})});
    if (name == "selu") return builder_.add("Selu", {x});
    if (name == "mish") {
      return builder_.add("Mul", {x, builder_.add("Tanh", {builder_.add("Softplus", {x})})});
    }
    if (name != "gelu")
      throw Error("EXPORT_UNSUPPORTED", "the activation '" + name + "' has no form in ONNX yet",
                  "export with --to safetensors");
    const std::string scaled = builder_.add("Mul", {x, number(0.70710678118654752F)});
    const std::string part = builder_.add("Add", {builder_.add("Erf", {scaled}), number(1)});
    return builder_.add("Mul", {builder_.add("Mul", {x, part}), number(0.5F)});
  }

  std::string soft_clip(const std::string& x) {
    const std::string third = builder_.add("Div", {x, number(3)});
    const std::string sum = builder_.add("Add", {builder_.add("Mul", {third, third}), number(1)});
    return builder_.add("Div", {x, builder_.add("Sqrt", {sum})});
  }

  std::string waves(const std::string& x, const std::string& name) {
    const std::string column = builder_.add("Unsqueeze", {x, list({2})});  // [batch, numbers, 1]
    const std::string angle =
        builder_.add("Add", {builder_.add("Mul", {column, weight(name + ".cycles")}), weight(name + ".shift")});
    const std::string row = builder_.add("Unsqueeze", {builder_.add("Cos", {angle}), list({2})});
    const std::string made = builder_.add("MatMul", {row, weight(name + ".matrix")});  // [batch, numbers, 1, size]
    return builder_.add("Add", {builder_.add("Flatten", {made}, {{"axis", int64_t{1}}}), weight(name + ".offset")});
  }

  // libtorch orders the gates as input, forget, cell, output; ONNX as input, output, forget, cell.
  static torch::Tensor in_order_of_onnx(const torch::Tensor& gates) {
    const std::vector<torch::Tensor> parts = gates.chunk(4, 0);
    return torch::cat({parts[0], parts[3], parts[1], parts[2]}, 0);
  }

  std::string lstm(const std::string& input, const Step& step) {
    std::string x = builder_.add("Transpose", {input}, {{"perm", std::vector<int64_t>{1, 0, 2}}});  // time first
    const int64_t directions = step.bidirectional ? 2 : 1;
    for (int64_t layer = 0; layer < step.layers; ++layer) {
      std::vector<torch::Tensor> of_input, of_state, biases;
      for (int64_t direction = 0; direction < directions; ++direction) {
        const std::string end = "_l" + std::to_string(layer) + (direction == 1 ? "_reverse" : "");
        const auto part = [&](const char* what) { return in_order_of_onnx(weights_.at(step.name + what + end)); };
        of_input.push_back(part(".weight_ih"));
        of_state.push_back(part(".weight_hh"));
        biases.push_back(torch::cat({part(".bias_ih"), part(".bias_hh")}, 0));
      }
      const std::string name = step.name + ".layer" + std::to_string(layer);
      const auto kept = [&](const char* what, const std::vector<torch::Tensor>& parts) {
        return builder_.weight(name + what, constant_from(torch::stack(parts)));
      };
      // [time, directions, batch, hidden]
      x = builder_.add(
          "LSTM", {x, kept(".W", of_input), kept(".R", of_state), kept(".B", biases)},
          {{"hidden_size", step.size}, {"direction", std::string(step.bidirectional ? "bidirectional" : "forward")}});
      x = builder_.add("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
      x = reshaped(x, {0, 0, directions * step.size});
    }
    return builder_.add("Transpose", {x}, {{"perm", std::vector<int64_t>{1, 0, 2}}});
  }

  Builder& builder_;
  const Weights& weights_;
  std::vector<std::string> values_;
};

bool is_narrow(DType dtype) {
  return size_of(dtype) <= 2 || dtype == DType::f32;
}

// Adds an input for samples that are arrays, and the nodes that normalise them as data/ does.
std::string array_input(Builder& builder, const data::DataInfo& data, const data::Preparation& preparation) {
  const Shape& shape = data.input_shape;
  const bool turned = channels_last(data), images = shape.size() == 3;
  const Shape sample = turned ? Shape{shape[1], shape[2], shape[0]} : shape;
  const std::string what = !images  ? "one row of numbers"
                           : turned ? "[height, width, channels]"
                                    : "[channels, height, width]";
  std::string x = builder.input(images ? "images" : "values", onnx::element_of(preparation.dtype), sample,
                                what + ", with the values of the training files");
  const Element kind = is_narrow(preparation.dtype) && shape.size() > 1 ? Element::f32 : Element::f64;
  x = builder.cast(x, kind);
  if (turned) x = builder.add("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
  const auto constant = [&](const Shape& dims, const std::vector<double>& values) {
    return builder.constant(kind == Element::f64
                                ? onnx::doubles(dims, values)
                                : onnx::floats(dims, std::vector<float>(values.begin(), values.end())));
  };
  if (preparation.images) x = builder.add("Div", {x, constant({}, {255})});
  if (!preparation.mean.empty()) {
    Shape dims(shape.size() + 1, 1);  // one mean for each channel or column
    dims[1] = static_cast<int64_t>(preparation.mean.size());
    x = builder.add("Sub", {x, constant(dims, preparation.mean)});
    x = builder.add("Mul", {x, constant(dims, preparation.factor)});
  }
  return kind == Element::f32 ? x : builder.cast(x, Element::f32);
}

// Adds an input for text, and the nodes that look up the tokens of its characters.
std::string text_input(Builder& builder, const data::DataInfo& data, const data::Preparation& preparation) {
  const auto known = static_cast<int64_t>(preparation.vocabulary.size());
  const std::string x = builder.input("characters", Element::i64, {data.tokens_per_sample},
                                      "the code points of the characters of a window of text (bytes, if the tokens "
                                      "of the job are bytes)");
  std::vector<int64_t> keys(preparation.vocabulary.begin(), preparation.vocabulary.end()), tokens;
  for (int64_t token = 0; token < known; ++token) tokens.push_back(token);
  // Without a token for unknown characters, such a character gets a token that the embedding does not have: an error.
  return builder.add("LabelEncoder", {x}, {{"keys_int64s", keys}, {"values_int64s", tokens}, {"default_int64", known}},
                     onnx::kMlDomain);
}

void add_class_outputs(Builder& builder, const Outcomes& outcomes, std::string logits) {
  std::string probabilities;
  if (outcomes.single) {
    const std::string opposite = builder.add("Neg", {logits});
    logits = builder.add("Concat", {opposite, logits}, {{"axis", int64_t{1}}});
    probabilities = builder.add("Sigmoid", {logits});
  } else if (outcomes.sigmoid) {
    probabilities = builder.add("Sigmoid", {logits});
  } else {
    probabilities = builder.add("Softmax", {logits}, {{"axis", int64_t{1}}});
  }
  const auto count = static_cast<int64_t>(outcomes.names.size());
  std::string help = "the name of the most likely class";
  if (outcomes.threshold) {  // raises the first class by the threshold, so that the second one needs as much more
    const auto raise = static_cast<float>(*outcomes.threshold * (outcomes.single ? 2 : 1));
    logits = builder.add("Add", {logits, builder.constant(onnx::floats({1, 2}, {raise, 0}))});
    help = "the second class from the threshold of its probability on, else the first one";
  }
  const std::string best = builder.add("ArgMax", {logits}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
  const std::string label =
      builder.add("Gather", {builder.constant(onnx::texts({count}, outcomes.names)), best}, {{"axis", int64_t{0}}});
  builder.output("probabilities", probabilities, Element::f32, {count}, "the probability of each class");
  builder.output("label", label, Element::text, {}, help);
}

void add_number_outputs(Builder& builder, const Outcomes& outcomes, const std::string& outputs) {
  std::string x = builder.cast(outputs, Element::f64);
  x = builder.add("Mul", {x, builder.constant(onnx::doubles({1, outcomes.width}, outcomes.std))});
  x = builder.add("Add", {x, builder.constant(onnx::doubles({1, outcomes.width}, outcomes.mean))});
  Shape sample = {outcomes.width};
  if (outcomes.width == 1) {
    x = builder.add("Reshape", {x, builder.constant(onnx::integers({1}, {-1}))});
    sample = {};
  }
  builder.output("prediction", x, Element::f64, sample, "the predicted number, in the units of the target");
}

}  // namespace

bool channels_last(const data::DataInfo& data) {
  const Shape& shape = data.input_shape;
  return shape.size() == 3 && (shape[0] == 1 || shape[0] == 3 || shape[0] == 4);
}

Outcomes outcomes_of(const train::LoadedModel& loaded) {
  const data::DataInfo& data = loaded.data;
  Outcomes outcomes;
  outcomes.classes = data.task != data::Task::regression;
  if (!outcomes.classes) {
    outcomes.width = loaded.outputs;
    const auto wide = [&](std::vector<double> values) {
      return values.size() == 1 ? std::vector<double>(static_cast<size_t>(loaded.outputs), values[0]) : values;
    };
    outcomes.mean = wide(data.target_mean);
    outcomes.std = wide(data.target_std);
    return outcomes;
  }
  outcomes.single = loaded.outputs == 1 && data.classes == 2;
  if (data.classes == 2) outcomes.threshold = loaded.threshold;
  outcomes.sigmoid = loaded.job.loss.name == "bce";
  for (int64_t c = 0; c < data.classes; ++c) {
    const auto i = static_cast<size_t>(c);
    outcomes.names.push_back(i < data.class_names.size() ? data.class_names[i] : std::to_string(c));
  }
  return outcomes;
}

std::string add_network(Builder& builder, const std::vector<Step>& steps, const Weights& weights,
                        const std::string& input) {
  return NetworkGraph(builder, weights).build(steps, input);
}

onnx::Model graph_of(const train::LoadedModel& loaded, const Weights& weights) {
  onnx::Model graph;
  graph.name = loaded.job.name;
  Builder builder(graph);
  const data::DataInfo& data = loaded.data;
  const data::Preparation preparation = data::preparation_of(data);
  std::string x = data.task == data::Task::next_token ? text_input(builder, data, preparation)
                  : preparation.columns.empty()
                      ? array_input(builder, data, preparation)
                      : onnx::table_inputs(builder, preparation.columns, data.input_shape.at(0));
  x = add_network(builder, network_of(loaded.job.model, data), weights, x);
  const Outcomes outcomes = outcomes_of(loaded);
  outcomes.classes ? add_class_outputs(builder, outcomes, x) : add_number_outputs(builder, outcomes, x);
  return graph;
}

}  // namespace sinew::exports
