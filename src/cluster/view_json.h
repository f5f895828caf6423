// Views as parts of larger JSON texts, and the bounds of what is believed when it is read.
#pragma once

#include "cluster/cluster.h"
#include "cluster/json.h"

namespace sinew::cluster {

constexpr size_t kMostMembers = 4096;
constexpr size_t kLongestAddress = 256;
constexpr size_t kLongestWhy = 4096;
constexpr double kMostShare = 1e6;

Json json_of(const View& view);
// nullopt: not a view: something missing or out of range, seats not ascending, nobody who computes, or a state that
// would come from somebody who has none.
std::optional<View> view_of(const Json& json);

}  // namespace sinew::cluster
