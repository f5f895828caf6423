#include "exports/network.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace sinew::exports {
namespace {

using Op = Step::Op;

class NetworkBuilder {
 public:
  size_t add(Step step) {
    steps_.push_back(std::move(step));
    return steps_.size();
  }
  size_t add(Op op, size_t input, const std::string& name = "") { return add(Step{op, {input}, name}); }
  std::vector<Step> take() { return std::move(steps_); }

  void mlp(const spec::ModelOptions& options) {
    size_t x = add(Op::flatten, 0);
    for (size_t i = 0; i < options.hidden.size(); ++i) {
      x = add(Op::linear, x, "hidden." + std::to_string(i));
      if (options.norm == "batch") x = add(Op::batch_norm, x, "norms." + std::to_string(i));
      x = add(Op::activation, x, options.activation);
    }
    add(Op::linear, x, "output");
  }

  void cnn(const spec::ModelOptions& options) {
    size_t x = 0;
    for (size_t i = 0; i < options.channels.size(); ++i) {
      x = convolution(x, "convolutions." + std::to_string(i), 3, 1);
      if (options.norm == "batch") x = add(Op::batch_norm, x, "norms." + std::to_string(i));
      x = add(Op::activation, x, options.activation);
      x = add(Step{Op::max_pool, {x}, "", 2, 2, 0});
    }
    add(Op::linear, add(Op::flatten, x), "output");
  }

  void resnet(const spec::ModelOptions& options, const Shape& image) {
    const bool small = model::has_small_stem(options, image), bottleneck = options.name == "resnet50";
    const std::array<int, 4> depths =
        options.name == "resnet18" ? std::array<int, 4>{2, 2, 2, 2} : std::array<int, 4>{3, 4, 6, 3};
    size_t x = small ? convolution(0, "conv1", 3, 1) : convolution(0, "conv1", 7, 2);
    x = relu(add(Op::batch_norm, x, "bn1"));
    if (!small) x = add(Step{Op::max_pool, {x}, "", 3, 2, 1});
    for (int stage = 0; stage < 4; ++stage) {
      for (int i = 0; i < depths[static_cast<size_t>(stage)]; ++i) {
        const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(i);
        const bool widens = i == 0 && (stage > 0 || bottleneck);
        x = block(x, name, stage > 0 && i == 0 ? 2 : 1, bottleneck, widens);
      }
    }
    add(Op::linear, add(Op::mean_pixels, x), "fc");
  }

  void lstm(const spec::ModelOptions& options, const data::DataInfo& data) {
    size_t x = 0;
    if (data.task == data::Task::next_token) {
      x = add(Op::embedding, 0, "embedding");
    } else if (data.input_shape.size() == 3) {
      x = add(Step{Op::image_rows, {0}, "", 1, 1, 0, data.input_shape[0] * data.input_shape[2]});
    } else {
      x = add(Op::table_rows, add(Op::flatten, 0));
    }
    x = add(Step{Op::lstm, {x}, "lstm", 1, 1, 0, options.hidden_size, options.layers, options.bidirectional});
    add(Op::linear, add(Op::last, x), "output");
  }

  // The weights are those of the model and of add_tabular_weights().
  void tabular(const spec::ModelOptions& options, const data::DataInfo& data) {
    const spec::TabularOptions& parts = options.tabular;
    const model::TabularLayout layout = model::tabular_layout(data, parts.max_one_hot);
    const size_t input = add(Op::flatten, 0);
    std::vector<size_t> joined;
    if (layout.flat() > 0) {
      size_t x = add(Op::linear, input, "select.flat");
      if (parts.input_scaling == "robust") {
        x = add(Op::multiply, add(Op::subtract, x, "input.center"), "input.factor");
        x = add(Op::soft_clip, x);
      }
      const bool waves = parts.numeric_embedding == "pbld" && !layout.numbers.empty();
      if (waves) {
        const size_t numbers = add(Op::linear, x, "select.numbers");
        joined = {add(Op::waves, numbers, "numbers"), numbers};
      }
      const bool others = layout.flat() > static_cast<int64_t>(layout.numbers.size());
      if (!waves) joined.push_back(x);
      if (waves && others) joined.push_back(add(Op::linear, x, "select.others"));
    }
    for (size_t i = 0; i < layout.embedded.size(); ++i) {
      joined.push_back(add(Op::linear, input, "select.embedding_" + std::to_string(i)));
    }
    size_t x = joined.size() == 1 ? joined[0] : add(Step{Op::join, joined});
    if (parts.scaling_layer) x = add(Op::multiply, x, "scale");
    const std::string activation = model::activation_of(options, data.task);
    for (size_t i = 0; i < options.hidden.size(); ++i) {
      const std::string name = "hidden." + std::to_string(i);
      const size_t y = add(Op::linear, x, "layers." + name), bent = add(Op::activation, y, activation);
      x = parts.parametric_activation ? add(Step{Op::blend, {y, bent}, name + ".strength"}) : bent;
    }
    x = add(Op::linear, x, "layers.output");
    if (data.task == data::Task::regression && parts.clip_predictions) add(Op::clamp, x, "range");
  }

 private:
  size_t convolution(size_t input, const std::string& name, int64_t kernel, int64_t stride) {
    return add(Step{Op::convolution, {input}, name, kernel, stride, kernel / 2});
  }
  size_t relu(size_t input) { return add(Op::activation, input, "relu"); }

  size_t block(size_t input, const std::string& name, int64_t stride, bool bottleneck, bool widens) {
    size_t x = convolution(input, name + ".conv1", bottleneck ? 1 : 3, bottleneck ? 1 : stride);
    x = relu(add(Op::batch_norm, x, name + ".bn1"));
    x = convolution(x, name + ".conv2", 3, bottleneck ? stride : 1);
    x = add(Op::batch_norm, x, name + ".bn2");
    if (bottleneck) {
      x = convolution(relu(x), name + ".conv3", 1, 1);
      x = add(Op::batch_norm, x, name + ".bn3");
    }
    size_t shortcut = input;
    if (widens) {
      shortcut = convolution(input, name + ".downsample.0", 1, stride);
      shortcut = add(Op::batch_norm, shortcut, name + ".downsample.1");
    }
    return relu(add(Step{Op::sum, {x, shortcut}}));
  }

  std::vector<Step> steps_;
};

}  // namespace

std::vector<Step> network_of(const spec::ModelOptions& options, const data::DataInfo& data) {
  NetworkBuilder builder;
  const std::string& name = options.name;
  if (name == "linear" || name == "svm") {
    spec::ModelOptions flat = options;
    flat.hidden.clear();
    builder.mlp(flat);
  } else if (name == "mlp") {
    builder.mlp(options);
  } else if (name == "cnn") {
    builder.cnn(options);
  } else if (name.starts_with("resnet")) {
    builder.resnet(options, data.input_shape);
  } else if (name == "lstm") {
    builder.lstm(options, data);
  } else if (name == "tabular") {
    builder.tabular(options, data);
  } else {
    throw Error("EXPORT_UNSUPPORTED", "the model is not one of Sinew's own architectures, but a '" + name + "'",
                "use its file: " + model::model_file_name(name) + " in model/ of the run has the trained weights");
  }
  return builder.take();
}

Weights::Weights(model::Model& model, const spec::ModelOptions& options, const data::DataInfo& data) {
  all_ = model.parameters();
  for (const model::NamedTensor& buffer : model.buffers()) all_.push_back(buffer);
  for (model::NamedTensor& item : all_) item.tensor = item.tensor.detach().contiguous();
  if (options.name == "tabular") derive_tabular(options, data);
}

void Weights::derive(const std::string& name, const torch::Tensor& tensor, const std::string& from) {
  derived_.push_back({name, tensor.contiguous()});
  if (!from.empty()) replaced_.insert(from);
}

std::vector<model::NamedTensor> Weights::used() const {
  std::vector<model::NamedTensor> used = derived_;
  std::ranges::copy_if(all_, std::back_inserter(used),
                       [&](const model::NamedTensor& item) { return !replaced_.contains(item.name); });
  return used;
}

bool Weights::contains(const std::string& name) const {
  const auto is_it = [&](const model::NamedTensor& item) { return item.name == name; };
  return std::ranges::any_of(all_, is_it) || std::ranges::any_of(derived_, is_it);
}

const torch::Tensor& Weights::at(const std::string& name) const {
  for (const auto* list : {&all_, &derived_}) {
    for (const model::NamedTensor& item : *list) {
      if (item.name == name) return item.tensor;
    }
  }
  throw Error("EXPORT_DIFFERS", "the model has no weight '" + name + "'", "this is a bug in sinew; please report it");
}

}  // namespace sinew::exports
