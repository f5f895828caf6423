// Splits the time of a run into parts, each with the limit that it is due to. Private to advise/.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "advise/advise.h"

namespace sinew::advise {

// The time of all lanes between the start and the end of the run, in seconds.
struct Spent {
  double all = 0;
  double starved = 0;  // in which the lanes could not run
  double quota = 0;    // the part of `starved` in which a CPU quota was used up
  double memory = 0;   // in which they waited for memory
  // The part of the time in which the lanes ran.
  double runs() const { return std::max(0.0, 1 - (starved + memory) / all); }
};
Spent spent(const Record& record);
std::vector<Part> parts_of(const Record& record, const Spent& spent);  // the largest first
double share_of(const std::vector<Part>& parts, Limit limit);
// The part of the training that the group loses because its members are not all as fast as the fastest one. 0 if their
// speeds are about the same.
double straggling(const std::vector<double>& shares);
std::string percent(double share);  // "34 %"
// The stage that takes most of a loader's time.
LoadStage slowest_stage(const LoadUse& loading);
bool is_record(const Record& record);  // the numbers come from a file, which may hold any

}  // namespace sinew::advise
