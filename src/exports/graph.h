// Private to exports/: makes the ONNX graph of a trained model, and runs such a graph with libtorch.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "exports/network.h"
#include "onnx/onnx.h"
#include "train/train.h"

namespace sinew::exports {

// How the outputs of a model become what a user wants.
struct Outcomes {
  bool classes = true;                      // else numbers
  bool single = false;                      // one output decides between two classes
  bool sigmoid = false;                     // each class has a probability of its own
  std::vector<std::string> names;           // of the classes
  std::optional<double> threshold = {};     // log odds of the second class from which it is the label; nullopt: 0
  int64_t width = 1;                        // of a regression
  std::vector<double> mean = {}, std = {};  // of a regression: of the target, one for each number
};
Outcomes outcomes_of(const train::LoadedModel& loaded);

// Whether samples are images whose channels stand last in the export: [height, width, channels].
bool channels_last(const data::DataInfo& data);

// Adds the steps to the graph. `input` is what the model takes; returns the value that holds its outputs.
std::string add_network(onnx::Builder& builder, const std::vector<Step>& steps, const Weights& weights,
                        const std::string& input);

// The whole graph, from raw samples to results. Has no metadata yet.
onnx::Model graph_of(const train::LoadedModel& loaded, const Weights& weights);

// A value in a graph that runs: a tensor, or texts.
struct Value {
  torch::Tensor tensor = {};
  std::vector<std::string> texts = {};
};
// Computes the outputs of a graph from its inputs, by the meaning that ONNX gives to the operators. Knows the operators
// that exports/ and onnx/ write. It is for comparing a graph with the model from which it was made, and not fast.
std::map<std::string, Value> run_graph(const onnx::Model& graph, std::map<std::string, Value> values);

}  // namespace sinew::exports
