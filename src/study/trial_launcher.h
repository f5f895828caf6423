// Prepares a trial's run directory and makes the command line of its process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "study/generations.h"
#include "study/open_study.h"
#include "study/study.h"

namespace sinew::study {

class TrialLauncher {
 public:
  // `slots` is the number of trials that share the cores of the machine. `generations` is null unless the study is
  // population-based training.
  TrialLauncher(const Options& options, const OpenStudy& study, int64_t slots, const Generations* generations);

  // Prepares a new process of the trial. If the trial has a resolved.yaml, the process resumes with the options of that
  // file. So it keeps the trial's number of lanes even on another machine, which might choose another number. `changes`
  // are the overrides of the trial.
  ProcessOptions prepare(const tune::Trial& trial, const std::vector<std::string>& changes) const;

 private:
  std::vector<std::string> first_command(const tune::Trial& trial, const std::vector<std::string>& changes) const;

  const Options& options_;
  const OpenStudy& study_;
  const Generations* generations_;
  std::optional<int64_t> lanes_;  // lanes of each training; nullopt: as the job says
};

}  // namespace sinew::study
