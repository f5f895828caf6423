// Inside model/: decides which part of a batch each input of a program receives.
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
};

// Returns the reason why training cannot feed samples to this input, whatever the data: it has no shape, no batch
// dimension or one of a fixed size, or a dtype that no data has. Returns nullopt if training can.
std::optional<Error> batching_problem(const program::Program& program, const program::InputSpec& spec);

// Returns one binding for each user input of the program. options.inputs (`wanted`) decides. If it is empty, the first
// input takes the batch's input and the second one its target. Throws Error for unknown names, inputs without a source,
// shapes or dtypes that do not fit (the message gives that of the program and that of the data), and a program that was
// exported for one batch size only.
std::vector<Binding> bind_inputs(const program::Program& program, const std::vector<std::string>& wanted,
                                 const data::DataInfo& data);

// Does the same as bind_inputs for a model that names its inputs but does not give their shapes. An input in `optional`
// may be left out and then has no binding.
std::vector<Binding> bind_names(const std::string& file, const std::vector<std::string>& names,
                                const std::vector<std::string>& optional, const std::vector<std::string>& wanted,
                                const data::DataInfo& data);

// Throws Error if the program's first output cannot be what the loss takes: `outputs` numbers for each sample (or
// token), or one number if `outputs` is 0.
void check_output(const program::Program& program, const data::DataInfo& data, int64_t outputs);

// Returns the tensor that a binding takes from a batch. Throws Error if the input takes whole numbers and the data has
// other numbers, or whole numbers too large for float32, or if the target is missing.
torch::Tensor bound(const Binding& binding, const torch::Tensor& input, const torch::Tensor& target);

}  // namespace sinew::model
