// A study's directory (docs/formats/study.md): what stands in it, and what it takes from other studies'.
#pragma once

#include <string>
#include <vector>

#include "base/disk.h"
#include "spec/spec.h"
#include "study/record_file.h"
#include "study/study.h"
#include "tune/tune.h"

namespace sinew::study {

std::string study_path(const std::string& directory);  // of the events

// The job a study was begun with. Throws Error when it can not be read any more.
spec::Job study_job(const StudyHead& head, const std::string& where, const spec::Environment& environment);

// Copies the events of tune.warm_start's studies, so that this study is whole without them. Throws Error when one of
// them is not there or was a search for something else.
void keep_earlier(Disk& disk, const std::string& directory, const spec::Job& job, const StudyHead& head);
// What they know, from the copies.
std::vector<tune::EarlierStudy> earlier_studies(Disk& disk, const std::string& directory, const spec::Job& job,
                                                const tune::Space& space, const spec::Environment& environment);

// Prints the best trials and writes the page.
void show_study(const Options& options, const std::string& directory, const tune::Study& study, const StudyHead& head);

}  // namespace sinew::study
