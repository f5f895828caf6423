// Makes an HTML page from a study: the history of the best value, the importance of parameters, and every trial.
//
// The page is one file. It needs neither the network nor other files: it contains the study as JSON, and the script
// that draws the study (src/study/page/).
#pragma once

#include <string>

#include "study/event.h"
#include "tune/tune.h"

namespace sinew::study {

// `summary` is the text at the top of the page.
std::string study_page(const std::string& summary, const tune::Study& study, const StudyHead& head);

}  // namespace sinew::study
