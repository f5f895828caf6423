// Writes metrics as JSON with every bit, and reads them back. Private to loop/.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report/report.h"

namespace sinew::loop {

nlohmann::json exact_json(const report::Metrics& metrics);
report::Metrics exact_metrics(const nlohmann::json& object);  // throws exceptions of the JSON library

}  // namespace sinew::loop
