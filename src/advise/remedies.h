// What would make a run faster, and by how much. Private to advise/.
#pragma once

#include <vector>

#include "advise/parts.h"

namespace sinew::advise {

// The remedies that are worth trying, the largest expected gain first, and after them other models. `job`: see judge().
std::vector<Remedy> remedies_of(const Record& record, const Spent& spent, const std::vector<Part>& parts,
                                const spec::Job* job);

}  // namespace sinew::advise
