// Private to data/: takes validation and test rows from the training table, by its columns if the job says so.
#pragma once

#include <string>
#include <vector>

#include "data/splits.h"
#include "data/table.h"
#include "data/target.h"

namespace sinew::data {

// Returns indices into targets.rows. `request` has the fractions and the seed; data.split says what decides. Adds
// sentences for the user to `notes`. Throws Error if a row has no usable value in the column of data.split.by.
SplitIndices split_table(const Table& table, const Targets& targets, const spec::DataOptions& options,
                         SplitRequest request, std::vector<std::string>& notes);

}  // namespace sinew::data
