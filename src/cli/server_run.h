// The name by which a server knows the run of a directory, for the clients of MLflow that a command may have.
#pragma once

#include <expected>
#include <string>

#include "base/clock.h"

namespace sinew::cli {

// Asks until the server has indexed the run, some seconds at most. The run's id, or why there is none.
std::expected<std::string, std::string> run_id_at(const std::string& server, const std::string& run_directory,
                                                  const std::string& resolved_yaml, Clock& clock);

}  // namespace sinew::cli
