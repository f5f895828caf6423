// The trials of one study as processes, side by side, until there is nothing more to do or somebody wants it to stop.
// Whoever else leads the study does the same; each decides in its turn.
#pragma once

#include "base/clock.h"
#include "cli/study_file.h"
#include "cli/study_places.h"
#include "cli/study_processes.h"
#include "spec/spec.h"

namespace sinew::cli {

// `events`: what `file` was read to hold; `places`: trainings of this leader's at a time. Minds SIGINT, SIGTERM and
// SIGHUP from here on: the first lets trials save and end, a second that is no SIGHUP ends them at once. Returns the
// exit code.
int run_trials(const std::string& directory, const spec::Job& job, const StudyHead& head,
               const std::vector<StudyEvent>& events, StudyFile& file, StudyProcess& self, const StudyPlaces& places,
               Clock& clock);

}  // namespace sinew::cli
