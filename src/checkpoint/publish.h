// Private to checkpoint/: adds a step directory to a root and removes it. If the process dies in between, no half of a
// directory is left under its final name.
#pragma once

#include <functional>
#include <string>

#include "checkpoint/checkpoint.h"

namespace sinew::checkpoint {

// Calls `fill`, which writes and syncs the files in a temporary directory, and renames that directory to
// `<root>/step-N` (docs/formats/checkpoint.md, "The order of writing"). Returns the path. Treats an existing step
// directory as save() does.
std::string publish(Disk& disk, const std::string& root, Step step, Digest digest,
                    const std::function<void(const std::string& directory)>& fill);

// Deletes `<root>/step-N`. Readers never see half of it.
void delete_step(Disk& disk, const std::string& root, Step step);

}  // namespace sinew::checkpoint
