// Private to model/: decides which part of a batch each input of a program receives.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/model.h"
#include "program/program.h"

namespace sinew::model {

struct Binding {
  enum class Source : uint8_t { input, target, columns };
  std::string name;  // name of the program's input
  Source source = Source::input;
  int64_t first = 0, last = 0;  // the columns of the input, if source is columns
  bool one_value = false;       // true: the program takes [batch], not [batch, 1]
  at::ScalarType dtype = at::kFloat;
  std::string of = {};  // the source as the job names it: a column's name, "input"
  Shape sample = {};    // the sizes of one sample, without those of the batch
};

// Returns why training cannot feed samples to this input, whatever the data. The reason is one of these: the input has
// no shape, it has no batch dimension, its batch size is fixed, or data never has its dtype. Returns nullopt if
// training can feed it.
std::optional<Error> batching_problem(const program::Program& program, const program::InputSpec& spec);

// Returns one binding for each user input of the program. `wanted` (options.inputs) names the source of each input. If
// it is empty, the first input takes the batch's input and the second one the batch's target. Throws Error for unknown
// names, for inputs without a source, for shapes or dtypes that do not fit (the message gives both), for sizes of a
// sample for which the program was not exported, and for a program that was exported for one batch size only.
std::vector<Binding> bind_inputs(const program::Program& program, const std::vector<std::string>& wanted,
                                 const data::DataInfo& data);

// Returns the shapes of the inputs for a batch of so many samples; -1: the number is not known yet.
std::vector<Shape> shapes_of(const std::vector<Binding>& bindings, int64_t samples);

// Does the same as bind_inputs for a model that names its inputs but does not give their shapes. An input in `optional`
// that has no source gets no binding.
std::vector<Binding> bind_names(const std::string& file, const std::vector<std::string>& names,
                                const std::vector<std::string>& optional, const std::vector<std::string>& wanted,
                                const data::DataInfo& data);

// Returns the index of the first output that the program returns to its caller, or the number of outputs if there is
// none.
size_t first_output(const program::Program& program);

// Returns why no loss can take the program's first output: it is not a tensor of real numbers. Returns nullopt if one
// can.
std::optional<Error> output_problem(const program::Program& program);

// Throws Error if the loss cannot take the program's first output. The loss takes `outputs` numbers for each sample (or
// token), or one number if `outputs` is 0.
void check_output(const program::Program& program, const data::DataInfo& data, int64_t outputs);

// Returns the tensor that a binding takes from a batch. Throws Error if the target is missing. For an input that takes
// whole numbers, throws Error if the data has other numbers, or numbers too large for float32.
torch::Tensor bound(const Binding& binding, const torch::Tensor& input, const torch::Tensor& target);

}  // namespace sinew::model
