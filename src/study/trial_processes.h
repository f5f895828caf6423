// Starts, watches and ends the processes of the trials that this leader runs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/process.h"
#include "study/generations.h"
#include "study/trial_metrics.h"

namespace sinew::study {

struct TrialProcess {
  Process process;
  TrialMetrics metrics;
  GenerationEnd generation;
  std::optional<double> asked_at = {};  // when the trial was asked to save and end
  bool gave_way = false;                // true: the study asked the trial to end because other programs need its cores
};

class TrialProcesses {
 public:
  // `patience` is the time in seconds that a trial may take to save and end before it is killed.
  TrialProcesses(double patience, Clock& clock) : patience_(patience), clock_(clock) {}

  // Starts the process. Throws Error if that fails.
  void start(int64_t id, const ProcessOptions& options, TrialMetrics metrics, GenerationEnd generation);
  std::map<int64_t, TrialProcess>& all() { return all_; }  // the key is the id of the trial
  bool empty() const { return all_.empty(); }
  std::vector<int> descriptors() const;

  // Asks the trial to save a checkpoint and end. Kills a trial that was asked more than `patience` seconds before.
  void ask_to_end(TrialProcess& trial) const;
  // Asks the newest trials to end, so that at most `most` trials remain that have not been asked.
  void give_way(int64_t most);
  // Asks all trials to end, or kills them at once. Forgets the trials that have ended and returns their ids.
  std::vector<int64_t> end_all(bool at_once);

 private:
  double patience_;
  Clock& clock_;
  std::map<int64_t, TrialProcess> all_;
};

}  // namespace sinew::study
