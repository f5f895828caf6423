// Inside model/: keeps the content of a model file as it was when the process opened it. A run takes hours, and the
// user may export the next model over the file meanwhile. At its end, the run must save the model that it trained, not
// the new one.
#pragma once

#include <string>

namespace sinew::model {

// Remembers the content of the file for save_model_file, or only its digest if it has more than 64 MiB. Call this
// before reading the file.
void remember_model_file(const std::string& path);

}  // namespace sinew::model
