// Inside model/: keeps the content of a model file as it was when the process opened it. A run takes hours, and the
// user may export the next model over the file meanwhile. At its end the run must write the model that it trained.
#pragma once

#include <string>

namespace sinew::model {

// Call it before reading the file. Remembers the content for save_model_file; of a file over 64 MiB only a digest.
void remember_model_file(const std::string& path);

}  // namespace sinew::model
