#include "study/trial_processes.h"

#include <algorithm>
#include <csignal>

namespace sinew::study {

void TrialProcesses::start(int64_t id, const ProcessOptions& options, TrialMetrics metrics, GenerationEnd generation) {
  all_.emplace(id, TrialProcess{Process(options), std::move(metrics), generation});
}

std::vector<int> TrialProcesses::descriptors() const {
  std::vector<int> descriptors;
  for (const auto& [id, trial] : all_) descriptors.push_back(trial.process.descriptor());
  return descriptors;
}

void TrialProcesses::ask_to_end(TrialProcess& trial) const {
  const double now = clock_.monotonic_seconds();
  if (!trial.asked_at) {
    trial.asked_at = now;
    trial.process.send(SIGTERM);
  } else if (now - *trial.asked_at >= patience_) {
    trial.process.send_group(SIGKILL);
  }
}

void TrialProcesses::give_way(int64_t most) {
  auto running = std::ranges::count_if(all_, [](const auto& trial) { return !trial.second.asked_at; });
  for (auto at = all_.rbegin(); at != all_.rend() && running > most; ++at) {
    if (at->second.asked_at) continue;
    at->second.gave_way = true;
    ask_to_end(at->second);
    --running;
  }
}

std::vector<int64_t> TrialProcesses::end_all(bool at_once) {
  std::vector<int64_t> ended;
  for (auto& [id, trial] : all_) {
    if (at_once)
      trial.process.send_group(SIGKILL);
    else
      ask_to_end(trial);
    if (trial.process.wait()) ended.push_back(id);
  }
  for (const int64_t id : ended) all_.erase(id);
  return ended;
}

}  // namespace sinew::study
