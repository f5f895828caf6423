// What happened to a group and why, as sentences with their time: RUN/coordinator.log.
#pragma once

#include <string>

#include "base/clock.h"

namespace sinew::cli {

// Coordinator and supervisor append to the same file, a line at a time. A full disk loses lines, never the run.
class GroupLog {
 public:
  GroupLog(const std::string& run_directory, std::string who, Clock& clock);
  ~GroupLog();
  GroupLog(const GroupLog&) = delete;
  GroupLog& operator=(const GroupLog&) = delete;
  void write(const std::string& sentence);  // any thread

 private:
  int descriptor_;
  std::string who_;
  Clock& clock_;
};

}  // namespace sinew::cli
