#include "study/model_cleanup.h"

#include <algorithm>

#include "rundir/rundir.h"
#include "study/directory.h"

namespace sinew::study {

// Collects ended trials whose files still exist. An earlier leader may have been killed before it removed them.
ModelCleanup::ModelCleanup(Disk& disk, std::string directory, const tune::Study& study)
    : disk_(disk), directory_(std::move(directory)) {
  for (const int64_t id : study.observed()) {
    if (disk_.exists(rundir::file_in(trial_directory(directory_, id), rundir::kCheckpoints))) candidates_.insert(id);
  }
}

void ModelCleanup::clean(const TrialScheduler& scheduler) {
  const auto best = scheduler.best();
  std::erase_if(candidates_, [&](int64_t id) {
    if (scheduler.needs(id) || std::ranges::count(best, id) > 0) return false;
    for (const char* name : {rundir::kCheckpoints, rundir::kModel})
      disk_.remove_all(rundir::file_in(trial_directory(directory_, id), name));
    return true;
  });
}

}  // namespace sinew::study
