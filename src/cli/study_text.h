// A study as people read it.
#pragma once

#include <string>

#include "cli/study_file.h"
#include "tune/tune.h"

namespace sinew::cli {

std::string short_number(double value);
std::string trial_directory(const std::string& study, int64_t id);

// How many trials ended how, the best ones with what they changed, and how to train the best again.
std::string study_summary(const std::string& directory, const tune::Study& study, const StudyHead& head);

}  // namespace sinew::cli
