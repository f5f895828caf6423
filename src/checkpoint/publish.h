// Inside the room: how a step directory comes into a root and leaves it, so that no death in between shows half of it.
#pragma once

#include <functional>
#include <string>

#include "checkpoint/checkpoint.h"

namespace sinew::checkpoint {

// Makes `<root>/step-N` of what `fill` writes (and syncs) into the directory it is given; docs/formats/checkpoint.md,
// "The order of writing". Returns its path. See save() for what an existing directory means.
std::string publish(Disk& disk, const std::string& root, Step step, Digest digest,
                    const std::function<void(const std::string& directory)>& fill);

// Deletes `<root>/step-N` without ever showing half of it.
void withdraw(Disk& disk, const std::string& root, Step step);

}  // namespace sinew::checkpoint
