// Plans the disturbances of `sinew chaos`, and compares the ledgers of two runs. All functions are pure: the same seed
// gives the same plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sinew::supervise {

struct ChaosEvent {
  enum class Kind { kill_worker, kill_two, pause_worker, kill_coordinator, scale };
  double at = 0;  // seconds after the run made its first step
  Kind kind = Kind::kill_worker;
  uint64_t pick = 0;  // the index of the worker, modulo the number of workers at that time
  // pause_worker: how long the worker is suspended, longer than the group waits for a silent member
  double seconds = 0;
  int64_t workers = 0;  // scale: the wanted number of workers from then on
  bool operator==(const ChaosEvent&) const = default;
};
std::string to_string(const ChaosEvent& event);

// Returns a plan of `events` events, about `every` seconds apart, for a run that begins with `workers` workers. Each
// kind of event occurs once before any kind occurs again.
std::vector<ChaosEvent> chaos_plan(uint64_t seed, int64_t workers, int64_t events, double every);
// Returns whether event number `next` is due. The run made its first step `seconds` ago and has made `step` of `steps`
// steps. The event is due at its time, or sooner if the run would otherwise end before all events have happened.
bool is_due(const std::vector<ChaosEvent>& plan, size_t next, double seconds, int64_t step, int64_t steps);

// The result of comparing the ledgers (ledger.jsonl, one line for each step) of two runs of the same job.
struct LedgerVerdict {
  int64_t steps = 0;    // number of steps of the undisturbed run
  int64_t equal = 0;    // steps of the undisturbed run that have the same digest in the ledger of the disturbed run
  int64_t missing = 0;  // steps of the undisturbed run that the disturbed run lacks
  int64_t surplus = 0;  // steps that only the disturbed run has
  int64_t differing = 0;
  int64_t first_difference = -1;
  bool same() const { return steps > 0 && equal == steps && surplus == 0 && differing == 0; }
};
// Compares the ledgers. A torn line counts as a missing step. A step that occurs twice must have the same digest twice.
LedgerVerdict compare_ledgers(const std::string& undisturbed, const std::string& disturbed);
std::string to_string(const LedgerVerdict& verdict);
// Returns the last step in a ledger, or 0 if the ledger is empty.
int64_t last_step(const std::string& ledger);

}  // namespace sinew::supervise
