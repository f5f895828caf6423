// Inside model/: what of a batch each input of a program is given.
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
  std::string name;  // of the program's input
  Source source = Source::input;
  int64_t first = 0, last = 0;  // columns
  bool one_value = false;       // the program wants [batch], not [batch, 1]
  at::ScalarType dtype = at::kFloat;
  std::string of = {};  // what it is given, as the job says it: a column's name, "input"
};

// Why training can not give samples to this input, whatever the data: no shape, no batch dimension or one of a fixed
// size, a dtype that no data has.
std::optional<Error> why_no_batch(const program::Program& program, const program::InputSpec& spec);

// One binding for each user input of the program, by options.inputs, or by order: the batch's input, then its target.
// Throws Error: unknown names, inputs left without a source, shapes or dtypes that do not fit (both are said), a batch
// size that the program was exported for alone.
std::vector<Binding> bind_inputs(const program::Program& program, const std::vector<std::string>& wanted,
                                 const data::DataInfo& data);

// The same for a model that says the names of its inputs and nothing of their shapes. Those of `optional` may be left
// out, and have no binding then.
std::vector<Binding> bind_names(const std::string& file, const std::vector<std::string>& names,
                                const std::vector<std::string>& optional, const std::vector<std::string>& wanted,
                                const data::DataInfo& data);

// Throws Error where the first output can not be what the loss takes: `outputs` numbers a sample (or a token), or, with
// 0, one number.
void check_output(const program::Program& program, const data::DataInfo& data, int64_t outputs);

// The tensor a binding takes of a batch. Numbers that are to be whole and are not throw Error.
torch::Tensor bound(const Binding& binding, const torch::Tensor& input, const torch::Tensor& target);

}  // namespace sinew::model
