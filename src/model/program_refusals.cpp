#include "model/program_refusals.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/check.h"
#include "model/makers.h"
#include "model/program_inputs.h"

namespace sinew::model {
namespace {

using program::InputSpec;
using program::OutputSpec;
using program::Program;
using program::StoredTensor;
using Kind = InputSpec::Kind;

constexpr size_t kMostRefusals = 20;  // as many as a reader reads; a small file may have millions

// A parameter or a buffer of the program, and its tensor in the file.
struct Weight {
  const InputSpec* spec;
  const StoredTensor* stored;
  bool parameter, changes;  // changes: training may give the weight other numbers
};

std::string text(const Weight& weight) {
  return (weight.parameter ? "parameter " : "buffer ") + weight.spec->name;
}

std::set<std::string_view> mutated_buffers(const Program& program) {
  std::set<std::string_view> names;
  for (const OutputSpec& output : program.outputs) {
    if (output.kind == OutputSpec::Kind::buffer_mutation) names.insert(output.name);
  }
  return names;
}

// Compares each pair of weights in one member of the archive.
void refuse_shared(const Program& program, const std::vector<Weight>& weights, std::vector<Error>& refused) {
  constexpr size_t kMostViews = 4096;  // bounds the number of pairs
  std::map<std::string_view, std::vector<const Weight*>> by_member;
  for (const Weight& other : weights) {
    std::vector<const Weight*>& earlier = by_member[other.stored->member];
    for (const Weight* one : earlier) {
      if (!one->changes && !other.changes) continue;
      const bool alike = one->parameter == other.parameter && same_memory(*one->stored, *other.stored);
      if (alike || !share_bytes(*one->stored, *other.stored)) continue;
      if (refused.size() >= kMostRefusals) return;
      refused.push_back(Error("MODEL_SHARED_MEMORY",
                              program.path + ": " + text(*one) + " and " + text(other) +
                                  " are different views of one memory, so training would make them diverge",
                              "clone one of them before the export, or compute it in forward from the other"));
    }
    if (earlier.size() == kMostViews) {
      refused.push_back(Error("MODEL_SHARED_MEMORY",
                              program.path + ": more than " + std::to_string(kMostViews) +
                                  " weights are views of one memory, member " + other.stored->member,
                              "clone the weights before the export"));
      return;
    }
    earlier.push_back(&other);
  }
}

// The elements of an expanded tensor would have different gradients, but only one place in the file.
void refuse_unstorable(const Program& program, const Weight& weight, std::vector<Error>& refused) {
  if (weight.spec->name == kReservedName) refused.push_back(reserved_name(program.path, weight.spec->name));
  if (!weight.parameter && !dtype_of(weight.stored->dtype))
    refused.push_back(type_not_stored(program.path, weight.spec->name, std::string(name_of(weight.stored->dtype))));
  if ((weight.parameter || weight.changes) &&
      program::may_repeat_elements(weight.stored->sizes, weight.stored->strides))
    refused.push_back(Error("MODEL_SHARED_MEMORY",
                            program.path + ": elements of " + text(weight) +
                                " are views of one memory (expand), so training would make them diverge",
                            "clone it before the export, or expand it in forward"));
}

}  // namespace

Error writes_to(const std::string& file, const std::string& name, bool parameter) {
  return Error("MODEL_WRITES_SHARED_MEMORY",
               file + ": the program writes to its " + (parameter ? "parameter " : "constant ") + name,
               "make it a buffer (register_buffer)");
}

const StoredTensor& stored_of(const Program& program, const InputSpec& spec) {
  const bool constant =
      spec.kind == Kind::constant || (spec.kind == Kind::buffer && !program.weights.contains(spec.name));
  const auto& from = constant ? program.constants : program.weights;
  const auto found = from.find(spec.name);
  SINEW_CHECK(found != from.end(), spec.name);  // read_program has checked it
  return found->second;
}

bool same_memory(const StoredTensor& a, const StoredTensor& b) {
  return a.offset == b.offset && a.sizes == b.sizes && a.strides == b.strides && a.member == b.member;
}

std::vector<Error> training_refusals(const Program& program, const Plan& plan) {
  std::vector<Error> refused;
  std::vector<bool> trained;  // by input of the plan
  for (const InputSpec& spec : program.inputs) {
    if (spec.kind == Kind::user_constant) continue;
    const auto& meta = program.graph.values.at(static_cast<size_t>(spec.value)).meta;
    trained.push_back(spec.kind == Kind::parameter && (!meta || meta->requires_grad));
  }
  const bool none = std::ranges::find(trained, true) == trained.end();
  if (none)
    refused.push_back(nothing_to_train(program.path, "export it with nn.Parameters whose requires_grad is true"));
  if (auto problem = output_problem(program)) {
    refused.push_back(std::move(*problem));
  } else if (!none && !gradient_reaches(plan, trained, first_output(program))) {
    refused.push_back(Error("MODEL_OUTPUT_MISMATCH",
                            program.path + ": its first output does not depend on a trained parameter",
                            "return it without detach() and torch.no_grad()"));
  }
  return refused;
}

std::vector<Error> refusals(const Program& program, const Plan& plan) {
  std::vector<Error> refused;
  std::vector<Weight> weights;
  for (const OutputSpec& output : program.outputs) {
    if (output.kind == OutputSpec::Kind::parameter_mutation)
      refused.push_back(writes_to(program.path, output.name, /*parameter=*/true));
  }
  const std::set<std::string_view> mutated = mutated_buffers(program);
  size_t index = 0;
  for (const InputSpec& spec : program.inputs) {
    if (spec.kind == Kind::user_constant) continue;
    const bool overwritten = plan.overwritten[index], written = overwritten || plan.written[index];
    const program::Value& value = program.graph.values.at(static_cast<size_t>(spec.value));
    ++index;
    if (spec.kind == Kind::user && value.kind != program::ValueKind::tensor)
      refused.push_back(Error("MODEL_INPUT_MISMATCH",
                              program.path + ": input " + spec.name + " is a number, not a tensor",
                              "export the model with this number fixed"));
    if (spec.kind == Kind::user) continue;
    const StoredTensor& stored = stored_of(program, spec);
    const bool parameter = spec.kind == Kind::parameter;
    if (parameter && stored.dtype != program::ScalarType::f32)
      refused.push_back(Error("MODEL_PARAMETER_TYPE",
                              program.path + ": parameter " + spec.name + " is " + std::string(name_of(stored.dtype)) +
                                  ", but parameters are trained in float32",
                              "export model.float(); for bfloat16 set trainer.precision: bf16"));
    if (overwritten && spec.kind != Kind::buffer) refused.push_back(writes_to(program.path, spec.name, parameter));
    if (spec.kind == Kind::constant) continue;
    const bool changes = parameter ? !value.meta || value.meta->requires_grad : written || mutated.contains(spec.name);
    weights.push_back({&spec, &stored, parameter, changes});
    refuse_unstorable(program, weights.back(), refused);
  }
  refuse_shared(program, weights, refused);
  while (refused.size() > kMostRefusals) refused.pop_back();
  return refused;
}

}  // namespace sinew::model
