// A study as a page: one file that needs no network and no other file. How the best value came down, what matters,
// which values did well, every trial.
//
// The page holds the study as JSON, and a script that draws it (study_page_script.cpp); nothing of the study is ever
// read as markup. Light or dark as the reader's system is.
#pragma once

#include <string>

#include "study/record_file.h"
#include "tune/tune.h"

namespace sinew::study {

std::string study_page(const std::string& directory, const tune::Study& study, const StudyHead& head);

extern const char* const kStudyPageStyle;   // CSS
extern const char* const kStudyPageScript;  // reads the element with the id "study"

}  // namespace sinew::study
