// What `sinew chaos` does to a run, and how it judges the outcome. Pure: the same seed gives the same plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sinew::cli {

struct ChaosEvent {
  enum class Kind { kill_worker, kill_two, pause_worker, kill_coordinator, scale };
  double at = 0;  // seconds after the run made its first step
  Kind kind = Kind::kill_worker;
  uint64_t pick = 0;    // which worker, modulo how many there are then
  double seconds = 0;   // pause_worker: stopped for so long, longer than a silence is forgiven
  int64_t workers = 0;  // scale: how many from then on
  bool operator==(const ChaosEvent&) const = default;
};
std::string to_string(const ChaosEvent& event);

// `events` things, about `every` seconds apart, to a run that began with `workers`. Each kind comes up before any
// comes up a second time.
std::vector<ChaosEvent> chaos_plan(uint64_t seed, int64_t workers, int64_t events, double every);
// Whether the `next` of them is, `seconds` after the first step, at `step` of a run of `steps`: at its time, or sooner
// where the run would else be over before all of them have happened.
bool is_due(const std::vector<ChaosEvent>& plan, size_t next, double seconds, int64_t step, int64_t steps);

// Two ledgers (ledger.jsonl, a line a step) of the same job.
struct LedgerVerdict {
  int64_t steps = 0;    // of the undisturbed run
  int64_t equal = 0;    // of them: there in both, with the same digest
  int64_t missing = 0;  // of them: not there in the disturbed one
  int64_t surplus = 0;  // steps only the disturbed one has
  int64_t differing = 0;
  int64_t first_difference = -1;
  bool same() const { return steps > 0 && equal == steps && surplus == 0 && differing == 0; }
};
// A line that is torn counts as missing; a step that stands there twice must say the same twice.
LedgerVerdict compare_ledgers(const std::string& undisturbed, const std::string& disturbed);
std::string to_string(const LedgerVerdict& verdict);
// The last step a ledger speaks of; 0: of none.
int64_t last_step(const std::string& ledger);

}  // namespace sinew::cli
