// The trials of a study that runs, as a table for a terminal.
#pragma once

#include <string>
#include <vector>

#include "study/record_file.h"

namespace sinew::study {

// A line on the whole, the best trials, those that run with their last value; no more than `rows` lines of less than
// `columns` characters. Pure.
std::vector<std::string> study_table(const tune::Study& study, const StudyHead& head, int64_t planned, double seconds,
                                     int columns, int rows);

}  // namespace sinew::study
