// Removes checkpoints and models of ended trials that nothing needs any more.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "base/disk.h"
#include "study/scheduler.h"

namespace sinew::study {

class ModelCleanup {
 public:
  // With `keeps_all`, clean() removes nothing.
  ModelCleanup(Disk& disk, std::string directory, const tune::Study& study, bool keeps_all = false);

  void add(int64_t id) { candidates_.insert(id); }  // a trial that has ended, whichever leader ran it
  // Removes the files of all candidates, except those of the best trials and of trials whose state the sampler may
  // still need. Metrics and job files stay. A trial that is a cross-validation has models of its folds.
  void clean(const TrialScheduler& scheduler);

 private:
  void remove_models(const std::string& run_directory);

  Disk& disk_;
  std::string directory_;
  bool keeps_all_;
  std::set<int64_t> candidates_;
};

}  // namespace sinew::study
