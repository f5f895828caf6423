// Shows the trials of a running study as a table for a terminal.
#pragma once

#include <string>
#include <vector>

#include "study/event.h"

namespace sinew::study {

// Returns a line about the whole study, then its best trials, then the running trials with their last values. The table
// has at most `rows` lines of less than `columns` characters. `seconds` is the time since this leader joined the study.
std::vector<std::string> study_table(const tune::Study& study, const StudyHead& head, double seconds, int columns,
                                     int rows);

}  // namespace sinew::study
