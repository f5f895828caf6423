// Finds the files of a study's directory (docs/formats/study.md), and copies the trials that a study takes over from
// earlier studies.
#pragma once

#include <string>
#include <vector>

#include "base/disk.h"
#include "spec/spec.h"
#include "study/event.h"
#include "study/study.h"
#include "tune/tune.h"

namespace sinew::study {

std::string study_path(const std::string& directory);                   // DIR/study.jsonl
std::string trial_directory(const std::string& directory, int64_t id);  // DIR/trials/00007

// Returns the job with which a study began. `where` names the head's file in errors. Throws Error if the job is no
// longer valid.
spec::Job study_job(const StudyHead& head, const std::string& where, const spec::Environment& environment);

// Copies the event logs of the studies in tune.warm_start, so that this study is complete without their directories.
// Throws Error if one of them is missing or searched for other objectives.
void copy_earlier_studies(Disk& disk, const std::string& directory, const spec::Job& job, const StudyHead& head);
// Returns the trials in those copies, translated to the space of this study.
std::vector<tune::EarlierStudy> earlier_studies(Disk& disk, const std::string& directory, const spec::Job& job,
                                                const tune::Space& space, const spec::Environment& environment);

void output_lines(const Options& options, const std::string& text);
// Outputs the summary of a study, and writes its page with the summary to DIR/report.html.
void show_study(const Options& options, const std::string& directory, const tune::Study& study, const StudyHead& head,
                const std::string& summary);

}  // namespace sinew::study
