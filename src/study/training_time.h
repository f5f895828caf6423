// How long the trainings of a study have taken, all of them together, by its record and by what runs now.
#pragma once

#include <map>

#include "study/record_file.h"

namespace sinew::study {

class StudyTime {
 public:
  void told(const StudyEvent& event);
  // A trial has trained for so long, in all its processes.
  void trained(int64_t id, double seconds);
  double of(int64_t id) const;
  // Of a process that was killed, up to its last word.
  double seconds() const;

 private:
  std::map<int64_t, double> seconds_;  // of each trial; never less than before
};

}  // namespace sinew::study
