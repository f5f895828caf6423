// Writes RUN/coordinator.log: what happened to a run's group and why. Each line has a time and one sentence.
#pragma once

#include <string>

#include "base/clock.h"

namespace sinew::cluster {

// The coordinator, the supervisor and members that stand by append to the same file. A full disk loses lines and never
// stops the run.
class RunLog {
 public:
  RunLog(const std::string& run_directory, std::string writer, Clock& clock);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;
  void write(const std::string& sentence);  // any thread

 private:
  int descriptor_;
  std::string writer_;
  Clock& clock_;
};

}  // namespace sinew::cluster
