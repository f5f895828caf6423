// Declares src/exports/predict.py, which CMake embeds into the program (cmake/embed.cmake).
#pragma once

#include <string_view>

namespace sinew::exports {

extern const std::string_view kPredictScript;  // stands beside each model.onnx

}  // namespace sinew::exports
