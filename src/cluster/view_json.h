// Converts views to parts of larger JSON texts and back, and sets the limits that readers check.
#pragma once

#include "cluster/cluster.h"
#include "cluster/json.h"

namespace sinew::cluster {

constexpr size_t kMostMembers = kMostWorkers;
constexpr size_t kLongestAddress = 256;
constexpr size_t kLongestWhy = 4096;
constexpr double kMostShare = 1e6;

Json json_of(const View& view);
// Returns nullopt if the JSON is not a valid view: a field is missing or out of range, the members are not sorted by
// id, no member computes, or a donor does not have the state.
std::optional<View> view_of(const Json& json);

}  // namespace sinew::cluster
