// Inside model/: the file of a model as it was when it was opened. A run takes hours, in which somebody exports the
// next model over it: what comes back at the end must be the one that was trained.
#pragma once

#include <string>

namespace sinew::model {

// Before the file is read: remembers what is in it, for save_own_file. Of one too large for that a digest.
void keep_own_file(const std::string& path);

}  // namespace sinew::model
