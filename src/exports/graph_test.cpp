#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"
#include "exports/pt2.h"
#include "exports/samples.h"

namespace sinew::exports {
namespace {

data::DataInfo images(int64_t channels, int64_t side) {
  data::DataInfo info;
  info.format = "idx";
  info.input_shape = {channels, side, side};
  info.classes = 3;
  info.class_names = {"cat", "dog", "eel"};
  info.preparation = R"({"dtype": "u8", "mean": [120.5], "factor": [0.0123]})";
  if (channels == 3) info.preparation = R"({"dtype": "u8", "mean": [120, 110, 90], "factor": [0.01, 0.02, 0.015]})";
  return info;
}

data::DataInfo table() {
  data::DataInfo info;
  info.format = "csv";
  info.input_names = {"size", "size=<missing>", "colour=red", "colour=blue", "colour=<other>"};
  info.input_shape = {5};
  info.classes = 2;
  info.class_names = {"no", "yes"};
  info.preparation = R"({"version": 2, "header": true, "numbers": {"decimal": ".", "thousands": ""},
    "target": "t", "target_is_words": true, "target_numbers": [],
    "features": [
      {"name": "size", "kind": "number", "cells": {"kind": "number", "numbers": {"decimal": ".", "thousands": ""}},
       "fill": 4.5, "std": 2.5, "center": 5, "number_at": 0, "places": {}, "other_at": -1, "missing_at": 1},
      {"name": "colour", "kind": "category", "cells": {"kind": "word", "numbers": {"decimal": ".", "thousands": ""}},
       "fill": 0, "std": 1, "center": 0, "number_at": -1, "places": {"red": 2, "blue": 3}, "other_at": 4,
       "missing_at": -1}]})";
  return info;
}

data::DataInfo characters() {
  data::DataInfo info;
  info.task = data::Task::next_token;
  info.format = "text";
  info.input_shape = info.target_shape = {6};
  info.input_dtype = DType::i64;
  info.tokens_per_sample = 6;
  info.classes = 5;
  info.class_names = {"a", "b", "c", "d", "<unknown>"};
  info.preparation = R"({"vocabulary": [97, 98, 99, 100]})";
  return info;
}

// A model with random weights and statistics.
train::LoadedModel random_model(spec::ModelOptions options, const data::DataInfo& info,
                                const std::string& loss = "cross_entropy") {
  model::install_keyed_random();
  train::LoadedModel loaded;
  loaded.job.model = std::move(options);
  loaded.job.loss.name = loss;
  loaded.data = info;
  loaded.outputs = info.task == data::Task::regression ? 1 : loss == "bce" && info.classes == 2 ? 1 : info.classes;
  loaded.model = model::make_model(loaded.job.model, info, loaded.outputs, 7);
  const model::RandomScope scope(random_key({8}));
  const torch::NoGradGuard no_grad;
  for (const model::NamedTensor& item : loaded.model->parameters()) {
    if (item.tensor.dim() == 1) item.tensor.uniform_(0.1, 0.4);  // so that no scale is 1 and no bias 0
  }
  for (const model::NamedTensor& item : loaded.model->buffers()) {
    if (torch::is_floating_point(item.tensor)) item.tensor.uniform_(0.8, 1.5);
  }
  loaded.model->set_training(false);
  return loaded;
}

// Writes the bytes to a file that `use` opens.
template <typename Use>
auto with_file(const std::string& bytes, const std::string& ending, Use&& use) {
  const std::string path = ::testing::TempDir() + "export-test-" + std::to_string(::getpid()) + ending;
  std::ofstream(path) << bytes;
  auto result = use(path);
  ::unlink(path.c_str());
  return result;
}

// Compares the graph, the module and the program with the model.
void expect_equal(train::LoadedModel loaded) {
  const Weights weights(*loaded.model, loaded.job.model, loaded.data);
  const onnx::Model graph = graph_of(loaded, weights);
  const torch::jit::Module made = script_of(loaded, weights);
  torch::jit::Module module =
      with_file(script_file(made, {}), ".pt", [](const auto& path) { return torch::jit::load(path); });
  const Samples example = make_samples(loaded, 5);
  const std::string program = program_file(made, example.array.defined() ? example.array : example.prepared, {});
  for (const int64_t count : {1, 7}) {
    const Samples samples = make_samples(loaded, count);
    const Results wanted = results_of(loaded, samples.prepared);
    const auto values = run_graph(graph, samples.raw);
    const Outcomes outcomes = outcomes_of(loaded);
    EXPECT_LE(compare(outcomes, values.at(graph.outputs[0].name).tensor, wanted.numbers, "onnx"), 2e-5);
    if (outcomes.classes) {
      EXPECT_EQ(values.at("label").texts, wanted.names);
    }
    const torch::NoGradGuard no_grad;
    const torch::Tensor given = samples.array.defined() ? samples.array : samples.prepared;
    EXPECT_LE(compare(outcomes, module.forward({given}).toTensor(), wanted.numbers, "torchscript"), 2e-5);
    const torch::Tensor run =
        with_file(program, ".pt2", [&](const auto& path) { return model::run_program(path, given); });
    EXPECT_LE(compare(outcomes, run, wanted.numbers, "pt2"), 2e-5);
  }
}

spec::ModelOptions options(const std::string& name, const std::string& norm = "none",
                           const std::string& activation = "relu") {
  spec::ModelOptions made;
  made.name = name;
  made.norm = norm;
  made.activation = activation;
  made.hidden = {6, 5};
  made.channels = {4, 5};
  made.width = 4;
  made.hidden_size = 6;
  made.embedding = 5;
  return made;
}

TEST(Graph, PerceptronsWithEveryActivation) {
  for (const char* activation : {"relu", "gelu", "tanh", "silu"}) {
    SCOPED_TRACE(activation);
    expect_equal(random_model(options("mlp", "batch", activation), table()));
    expect_equal(random_model(options("cnn", "batch", activation), images(3, 9)));
  }
}

TEST(Graph, EveryArchitectureOnItsData) {
  for (const char* name : {"linear", "svm", "mlp", "lstm"}) {
    SCOPED_TRACE(name);
    expect_equal(random_model(options(name), table()));
    expect_equal(random_model(options(name), images(1, 8)));
  }
  expect_equal(random_model(options("cnn"), images(1, 8)));
  for (const char* name : {"resnet18", "resnet34", "resnet50"}) {
    SCOPED_TRACE(name);
    expect_equal(random_model(options(name), images(3, 16)));
  }
  spec::ModelOptions large = options("resnet50");
  large.stem = "imagenet";
  expect_equal(random_model(large, images(3, 40)));
}

TEST(Graph, TheModelForTablesWithAndWithoutItsParts) {
  const auto with = [](const auto& change) {
    spec::ModelOptions made = options("tabular", "none", "auto");
    made.tabular.max_one_hot = 2;
    change(made);
    expect_equal(random_model(made, table()));
    data::DataInfo number = table();
    number.task = data::Task::regression;
    number.classes = 0;
    number.class_names.clear();
    expect_equal(random_model(made, number, "mse"));
    expect_equal(random_model(made, images(1, 6)));
  };
  with([](spec::ModelOptions&) {});
  with([](spec::ModelOptions& made) { made.tabular.numeric_embedding = "none"; });
  with([](spec::ModelOptions& made) { made.tabular.input_scaling = "none"; });
  with([](spec::ModelOptions& made) {
    made.activation = "relu";
    made.tabular.scaling_layer = made.tabular.parametric_activation = made.tabular.clip_predictions = false;
    made.tabular.parametrization = "standard";
    made.tabular.max_one_hot = 100;
  });
}

TEST(Graph, RecurrentModelsOfSeveralLayersAndDirections) {
  spec::ModelOptions deep = options("lstm");
  deep.layers = 2;
  expect_equal(random_model(deep, characters()));
  deep.bidirectional = true;
  expect_equal(random_model(deep, images(3, 8)));
}

TEST(Graph, LossesWithProbabilitiesOfTheirOwn) {
  expect_equal(random_model(options("mlp"), table(), "bce"));
  expect_equal(random_model(options("mlp"), images(1, 8), "bce"));
}

TEST(Graph, NumbersInTheUnitsOfTheTarget) {
  data::DataInfo info = table();
  info.task = data::Task::regression;
  info.classes = 0;
  info.class_names.clear();
  info.target_mean = {5000};
  info.target_std = {300};
  expect_equal(random_model(options("mlp"), info, "mse"));
}

TEST(Graph, AnotherWeightIsNoticed) {
  train::LoadedModel loaded = random_model(options("resnet18"), images(3, 16));
  const Weights weights(*loaded.model, loaded.job.model, loaded.data);
  const onnx::Model graph = graph_of(loaded, weights);
  const Samples samples = make_samples(loaded, 7);
  const torch::NoGradGuard no_grad;
  loaded.model->parameters().back().tensor[0] += 0.01;  // of the last bias
  const Results wanted = results_of(loaded, samples.prepared);
  const auto values = run_graph(graph, samples.raw);
  EXPECT_THROW(compare(outcomes_of(loaded), values.at("probabilities").tensor, wanted.numbers, "onnx"), Error);
}

TEST(Graph, EveryListedArchitectureIsExportedOrRefused) {
  for (const model::Architecture& architecture : model::architectures()) {
    SCOPED_TRACE(architecture.name);
    const bool own = !model::model_file_name(architecture.name).empty();
    if (own) {
      EXPECT_THROW(network_of(options(architecture.name), table()), Error);
    } else {
      EXPECT_FALSE(network_of(options(architecture.name), images(3, 16)).empty());
    }
  }
}

}  // namespace
}  // namespace sinew::exports
