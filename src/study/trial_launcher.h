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
  // `slots`: trials that share the machine's cores. `generations`: of population-based training, else null.
  TrialLauncher(const Options& options, const OpenStudy& study, int64_t slots, const Generations* generations);

  // For a new process of the trial. A trial whose resolved.yaml exists resumes as that file says, on any machine: lanes
  // are part of a trial, and this machine would give it other ones. `changes`: what the trial changes in the job.
  ProcessOptions prepare(const tune::Trial& trial, const std::vector<std::string>& changes) const;

 private:
  std::vector<std::string> first_command(const tune::Trial& trial, const std::vector<std::string>& changes) const;

  const Options& options_;
  const OpenStudy& study_;
  const Generations* generations_;
  std::optional<int64_t> lanes_;  // of each training; none: the job says
};

}  // namespace sinew::study
