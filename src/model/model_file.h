// Private to model/: keeps the content that a model file had when the process opened it. A run takes hours, and
// meanwhile the user may export the next model over the file. At its end, the run must save the model that it trained,
// not the new one.
#pragma once

#include <string>

namespace sinew::model {

// Remembers the content of the file for save_model_file. If the file has more than 64 MiB, remembers only its digest.
// Call this before reading the file.
void remember_model_file(const std::string& path);

}  // namespace sinew::model
