// Splits the time of a run into parts, each with the limit that it is due to. Private to advise/.
#pragma once

#include <algorithm>
#include <optional>
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
// What the experiments of the run have found about the condition; nullopt: nothing.
std::optional<StepRatio> ratio_of(const Record& record, Condition condition);
// The part of the computing that waits for memory. While as many threads as lanes read memory all the time, a lane gets
// half of what the memory can give; so a step that only waits for memory takes twice as long as beside threads that
// only compute. 0 if no experiment shows more than noise.
double waiting_for_memory(const Record& record);
// The part of the computing that goes to calls of operators and not to their work: many operators on few numbers. What
// an operator takes beyond its arithmetic and its memory traffic is the cost of its calls, if there are enough calls to
// explain it. 0: not measured.
double cost_of_calls(const Record& record);
bool is_record(const Record& record);  // the numbers come from a file, which may hold any

}  // namespace sinew::advise
