#include <torch/torch.h>

#include <cstring>

#include "base/error.h"
#include "model/makers.h"
#include "model/model.h"
#include "model/program_inputs.h"
#include "model/program_refusals.h"

namespace sinew::model {
namespace {

Array array_of(const torch::Tensor& tensor, DType dtype) {
  const torch::Tensor dense = tensor.detach().cpu().contiguous();
  Array array(dtype, Shape(dense.sizes().begin(), dense.sizes().end()));
  if (array.bytes.size() != dense.nbytes())
    throw Error("MODEL_SAVE_FAILED", "a value does not have the type that the program gives it", "");
  if (dense.nbytes() > 0) std::memcpy(array.bytes.data(), dense.const_data_ptr(), dense.nbytes());
  return array;
}

}  // namespace

FileReport inspect_program(const std::string& file) {
  const program::Program program = program::read_program(file);
  FileReport report;
  const Plan plan = compile_graph(program, program.graph, &report.problems);
  for (const std::string& remark : random_in_evaluation(plan)) report.lines.push_back("remark\t" + remark + "\t");
  for (const std::string& remark : remarks_of(plan)) report.lines.push_back("remark\t" + remark + "\t");
  const bool runs = report.problems.empty();
  std::vector<Error> refused = refusals(program, plan);
  if (runs) {  // the plan is complete
    for (Error& error : training_refusals(program, plan)) refused.push_back(std::move(error));
  }
  for (const program::InputSpec& spec : program.inputs) {
    const bool tensor = spec.kind == program::InputSpec::Kind::user &&
                        program.graph.values.at(static_cast<size_t>(spec.value)).kind == program::ValueKind::tensor;
    if (!tensor) continue;
    if (const auto none = batching_problem(program, spec)) refused.push_back(*none);
  }
  for (const Error& error : refused) report.problems.push_back(problem_of(file, error));
  constexpr size_t kMostShown = 20;
  if (const size_t all = report.problems.size(); all > kMostShown) {
    report.problems.resize(kMostShown);
    report.problems.push_back("and " + std::to_string(all - kMostShown) + " more problems / correct these first");
  }
  return report;
}

void save_program(const std::string& file, const std::vector<NamedTensor>& values, const std::string& to) {
  const program::Program program = program::read_program(file);
  std::vector<Array> arrays;
  arrays.reserve(values.size());  // reserved, because replacements point into it
  std::vector<program::Replacement> replacements;
  for (const NamedTensor& value : values) {
    const auto stored = program.weights.find(value.name);
    if (stored == program.weights.end()) continue;  // a buffer that is not persistent is not in the file
    const std::optional<DType> dtype = dtype_of(stored->second.dtype);
    if (!dtype) throw Error("MODEL_SAVE_FAILED", file + ": " + value.name + " has a type that cannot be saved", "");
    arrays.push_back(array_of(value.tensor, *dtype));
    replacements.push_back({value.name, &arrays.back()});
  }
  program::write_program(program, replacements, to);
}

}  // namespace sinew::model
