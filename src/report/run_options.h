// resolved.yaml as a flat list: dotted keys and the values as written.
#pragma once

#include <map>
#include <string>

namespace sinew::report {

// Throws Error naming the place when the text is not a YAML mapping, or too large to be a job.
std::map<std::string, std::string> flat_options(const std::string& yaml);

}  // namespace sinew::report
