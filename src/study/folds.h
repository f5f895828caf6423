// Cross-validation as a study: one trial for each fold of data.split.folds. The directory of such a study is also that
// of a run, with the means over the folds as its metrics. Private to study/.
#pragma once

#include <string>
#include <vector>

#include "rundir/rundir.h"
#include "study/open_study.h"
#include "study/trial_results.h"

namespace sinew::study {

inline constexpr const char* kFoldOption = "data.split.fold";

// Returns whether a study of this job is a cross-validation: it varies data.split.fold and nothing else.
bool leads_folds(const spec::Job& job);

// Returns the overrides of a study that trains each fold of the job once. The job's own search does not apply to it.
std::vector<std::string> overrides_for_folds(const spec::Job& job, std::vector<std::string> overrides);

// Returns what the folds measured. The status is done if all folds are complete, failed if one failed, else stopped.
rundir::Outcome outcome_of_folds(Disk& disk, const OpenStudy& study, const tune::Study& trials,
                                 const TrialResults& results);

// Writes report.html and report.json, and metrics.jsonl with the means if all folds are complete. Returns why it could
// not write report.html, or "".
std::string write_folds(Disk& disk, const std::string& directory, const rundir::Outcome& outcome);

// The table of the folds, where their models are, and the path of report.html.
std::string folds_summary(const std::string& directory, const rundir::Outcome& outcome);

}  // namespace sinew::study
