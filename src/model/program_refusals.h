// Inside model/: what training refuses of a program whatever the data, so that `sinew inspect` can say it before.
#pragma once

#include <vector>

#include "base/error.h"
#include "model/program_plan.h"

namespace sinew::model {

// Parameters that are no float32, inputs that are numbers, weights that share memory and would train apart, and writes
// to what no lane may write to. The last as far as the plan says it: ProgramModel looks at each run besides.
std::vector<Error> refusals(const program::Program& program, const Plan& plan);

// The program writes to a parameter, whose memory all lanes share, or to a constant, which nobody brings together.
Error writes_to(const std::string& file, const std::string& name, bool parameter);

const program::Stored& stored_of(const program::Program& program, const program::InputSpec& spec);
bool same_memory(const program::Stored& a, const program::Stored& b);  // seen alike: one tensor under two names

}  // namespace sinew::model
