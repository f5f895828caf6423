#include "study/model_cleanup.h"

#include <algorithm>

#include "rundir/rundir.h"
#include "study/directory.h"
#include "study/study.h"

namespace sinew::study {

// Collects ended trials whose files still exist. An earlier leader may have been killed before it removed them.
ModelCleanup::ModelCleanup(Disk& disk, std::string directory, const tune::Study& study, bool keeps_all)
    : disk_(disk), directory_(std::move(directory)), keeps_all_(keeps_all) {
  for (const int64_t id : study.observed()) {
    const std::string own = trial_directory(directory_, id);
    if (disk_.exists(rundir::file_in(own, rundir::kCheckpoints)) || is_study(disk_, own)) candidates_.insert(id);
  }
}

void ModelCleanup::clean(const TrialScheduler& scheduler) {
  if (keeps_all_) return;
  const auto best = scheduler.best();
  std::erase_if(candidates_, [&](int64_t id) {
    if (scheduler.needs(id) || std::ranges::count(best, id) > 0) return false;
    const std::string own = trial_directory(directory_, id);
    remove_models(own);
    if (!is_study(disk_, own)) return true;
    const std::string folds = rundir::file_in(own, rundir::kTrials);
    for (const Disk::Entry& fold : disk_.list(folds)) remove_models(rundir::file_in(folds, fold.name));
    return true;
  });
}

void ModelCleanup::remove_models(const std::string& run_directory) {
  for (const char* name : {rundir::kCheckpoints, rundir::kModel})
    disk_.remove_all(rundir::file_in(run_directory, name));
}

}  // namespace sinew::study
