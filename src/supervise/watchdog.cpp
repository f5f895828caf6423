#include "supervise/watchdog.h"

#include <algorithm>
#include <cmath>

namespace sinew::supervise {
namespace {

constexpr double kNewest = 0.2;  // weight of the newest step in the smoothed time

// Returns whether any lane has begun anything since the last check. A worker that has ended, or that has posted no work
// yet, does not count as progress.
bool began_something(const Watchdog& watchdog, const std::vector<WatchedWorker>& workers) {
  return std::any_of(workers.begin(), workers.end(), [&](const WatchedWorker& worker) {
    const auto before = watchdog.seen.find(worker.pid);
    return !worker.activity.empty() && (before == watchdog.seen.end() || before->second != worker.activity);
  });
}

void learn_usual_step(Watchdog& watchdog, int64_t step) {
  if (step <= watchdog.step) return;
  const double took = watchdog.since_step / static_cast<double>(step - watchdog.step);
  if (watchdog.advances == 1) watchdog.usual = took;  // this is the first known time between two steps
  if (watchdog.advances > 1) watchdog.usual += kNewest * (took - watchdog.usual);
  ++watchdog.advances;
  watchdog.step = step;
  watchdog.since_step = 0;
}

// Returns the worker's first work that does not wait for other workers. A worker that reduces waits for others.
std::optional<Work> held_by(const WatchedWorker& worker) {
  for (const LaneActivity& lane : worker.activity) {
    const Work::Kind kind = lane.work.kind;
    if (kind != Work::Kind::nothing && kind != Work::Kind::reducing) return lane.work;
  }
  return std::nullopt;
}

}  // namespace

Standstill look_for_standstill(double now, Watchdog& watchdog, int64_t step, const std::vector<WatchedWorker>& workers,
                               const WatchdogOptions& options) {
  const double passed = std::min(options.longest_look, now - watchdog.looked.value_or(now));
  watchdog.looked = now;
  watchdog.since_step += passed;
  const bool advances = step > watchdog.step || began_something(watchdog, workers);
  learn_usual_step(watchdog, step);
  watchdog.seen.clear();
  for (const WatchedWorker& worker : workers) watchdog.seen[worker.pid] = worker.activity;
  const bool judged = watchdog.advances >= 1 &&
                      std::none_of(workers.begin(), workers.end(), [](const WatchedWorker& w) { return w.stopped; });
  if (advances || !judged) {
    watchdog.still = 0;
    watchdog.said = false;
    return {};
  }
  watchdog.still += passed;
  const double sure = watchdog.advances >= 2 ? 1 : options.first_factor;
  const double patience = sure * std::max(options.least_seconds, options.steps * watchdog.usual);
  if (watchdog.still < patience) return {};

  const std::string duration = std::to_string(std::lround(watchdog.still)) + " s";
  Standstill found;
  std::string holders;
  for (const WatchedWorker& worker : workers) {
    const auto work = held_by(worker);
    if (!work) continue;
    holders += (holders.empty() ? "" : "; ") + worker.name + " is at " + to_string(*work);
    if (watchdog.still >= options.end_factor * patience)
      found.to_end.push_back({worker.pid, "it has been at " + to_string(*work) + " for " + duration});
  }
  if (!watchdog.said) {
    found.sentence = "nothing has moved for " + duration + " after step " + std::to_string(watchdog.step) + ": " +
                     (holders.empty() ? "no worker of this machine has work; sinew ps shows all members" : holders);
  }
  watchdog.said = true;
  return found;
}

}  // namespace sinew::supervise
