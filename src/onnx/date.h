// Private to onnx/: encodes dates by operators of ONNX.
#pragma once

#include <string>

#include "onnx/onnx.h"

namespace sinew::onnx {

// Returns the encoding of a column of dates, [batch, 6 or 8]. `seconds`: since 1970, float64 [batch], none missing.
std::string date_inputs(Builder& builder, const data::PreparedColumn& column, const std::string& seconds);

// Turns [batch] into [batch, 1].
std::string as_column(Builder& builder, const std::string& value);

}  // namespace sinew::onnx
