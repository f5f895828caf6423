// The trials of one study as processes, side by side, until there is nothing more to do or somebody wants it to stop.
// Whoever else leads the study does the same; each decides in its turn.
#pragma once

#include "base/signals.h"
#include "spec/spec.h"
#include "study/processes.h"
#include "study/record_file.h"
#include "study/slots.h"
#include "study/study.h"

namespace sinew::study {

// `events`: what `file` was read to hold; `places`: trainings of this leader's at a time. See StudySession::run().
int run_trials(const Options& options, const std::string& directory, const spec::Job& job, const StudyHead& head,
               const std::vector<StudyEvent>& events, StudyFile& file, StudyProcess& self, const StudyPlaces& places,
               SignalSource& signals);

}  // namespace sinew::study
