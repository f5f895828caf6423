// How long the trainings of a study have taken, all of them together, by its record and by what runs now.
#pragma once

#include <map>

#include "cli/study_file.h"

namespace sinew::cli {

class StudyTime {
 public:
  void told(const StudyEvent& event);
  // The process of a trial has run for so long.
  void runs(int64_t id, double seconds);
  // Of a process that was killed, and of one that another process of the study started, up to its last word.
  double seconds() const;

 private:
  double before_ = 0;                // of processes that are gone
  std::map<int64_t, double> lives_;  // of each trial's newest
};

}  // namespace sinew::cli
