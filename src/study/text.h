// Describes a study as text for the user.
#pragma once

#include <string>
#include <vector>

#include "study/event.h"
#include "tune/tune.h"

namespace sinew::study {

std::string short_number(double value);  // five significant digits
// "maximise val/accuracy, minimise test/latency with test/size <= 5".
std::string aim_text(const StudyAim& aim);
// The result of an ended trial: "val/accuracy 0.93, test/latency 7; violates test/size <= 5 by 2".
std::string result_text(const StudyAim& aim, const tune::Trial& trial);

// With one objective: all complete trials, the best first. With several: the Pareto front.
std::vector<const tune::Trial*> best_first(const tune::Study& study);

// Says how many trials there are in each state, lists the best trials with their overrides, and says how to train the
// best one again.
std::string study_summary(const std::string& directory, const tune::Study& study, const StudyHead& head);

}  // namespace sinew::study
