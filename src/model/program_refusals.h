// Private to model/: finds the reasons to refuse a program for any data. `sinew inspect` shows them before training
// does.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "model/program_plan.h"

namespace sinew::model {

// Finds parameters that are not float32, inputs that are numbers, and writes to memory that lanes share. It also finds
// weights that share memory and would diverge in training. It finds only the writes that the plan shows; ProgramModel
// checks each run for others. Returns at most 20 errors.
std::vector<Error> refusals(const program::Program& program, const Plan& plan);

// Finds the reasons why training cannot use a program that can run: nothing is trained, or the first output is no
// tensor of real numbers or depends on no trained parameter.
std::vector<Error> training_refusals(const program::Program& program, const Plan& plan);

// Returns the error for a program that writes to a parameter or to a constant. All lanes share the memory of a
// parameter, and constants are not merged between lanes.
Error writes_to(const std::string& file, const std::string& name, bool parameter);

const program::StoredTensor& stored_of(const program::Program& program, const program::InputSpec& spec);
bool same_memory(const program::StoredTensor& a,
                 const program::StoredTensor& b);  // equal views: one tensor under two names

// Identifies a view of the archive's bytes: same_memory(a, b) is ViewKey(a) == ViewKey(b).
struct ViewKey {
  explicit ViewKey(const program::StoredTensor& stored)
      : member(stored.member), offset(stored.offset), sizes(stored.sizes), strides(stored.strides) {}
  auto operator<=>(const ViewKey&) const = default;
  std::string member;
  int64_t offset;
  Shape sizes, strides;
};

}  // namespace sinew::model
