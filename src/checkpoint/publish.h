// Private to checkpoint/: adds step directories to a root and removes them. If the process dies meanwhile, no half of a
// directory is left under its final name.
#pragma once

#include <functional>
#include <string>

#include "checkpoint/checkpoint.h"

namespace sinew::checkpoint {

// Calls `fill`, which must write and sync the files in a temporary directory. Then renames that directory to
// `<root>/step-N` (docs/formats/checkpoint.md, "The order of writing"). Returns the path. Treats an existing step
// directory as save() does.
std::string publish(Disk& disk, const std::string& root, Step step, Digest digest,
                    const std::function<void(const std::string& directory)>& fill);

// Deletes `<root>/step-N`. Readers never see half of the directory.
void delete_step(Disk& disk, const std::string& root, Step step);

}  // namespace sinew::checkpoint
