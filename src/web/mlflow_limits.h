// Inside web/: the limits that MLflow's own server sets for requests. A program that relies on a refusal of one server
// gets the same refusal from the other. tests/clients/ compares these limits with MLflow's code. Pure; the functions
// throw Refused.
#pragma once

#include <string>

#include "web/args.h"

namespace sinew::web {

// Checks the name of a metric, a parameter or a tag: its length, its characters, and that it does not change when it is
// normalised as a relative path. `path` says where the name is in the request: "metrics[3].name".
void check_key(const std::string& name, const std::string& path);
// Checks the name of an alias: its length, its characters, and that it is neither like a version number nor "latest".
void check_alias(const std::string& name);
// Checks the number of characters.
void check_length(const std::string& value, size_t limit, const std::string& path);
// Checks how many metrics, parameters and tags a batch has, and the size of the request's body.
void check_batch(const Args& args, size_t body_bytes);

inline constexpr size_t kMaxExperimentName = 500, kMaxExperimentTag = 20'000, kMaxRegistryTag = 100'000;

}  // namespace sinew::web
