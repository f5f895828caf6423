// A study as people read it.
#pragma once

#include <string>
#include <vector>

#include "study/record_file.h"
#include "tune/tune.h"

namespace sinew::study {

std::string short_number(double value);
std::string trial_directory(const std::string& study, int64_t id);
// What it searches for: "greatest val/accuracy, least test/latency".
std::string aim_text(const StudyAim& aim);
// What an ended trial came to: "val/accuracy 0.93, test/latency 7; violates test/size <= 5 by 2".
std::string result_text(const StudyAim& aim, const tune::Trial& trial);

// With one objective all that are complete, with several those that no other beats.
std::vector<const tune::Trial*> best_first(const tune::Study& study);

// How many trials ended how, the best ones with what they changed, and how to train the best again.
std::string study_summary(const std::string& directory, const tune::Study& study, const StudyHead& head);

}  // namespace sinew::study
