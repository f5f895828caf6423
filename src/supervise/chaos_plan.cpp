#include "supervise/chaos_plan.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/random.h"

namespace sinew::supervise {
namespace {

// Returns each kind once, in an order that depends on the seed.
std::vector<ChaosEvent::Kind> next_round(RandomStream& random) {
  std::vector<ChaosEvent::Kind> kinds = {ChaosEvent::Kind::kill_worker, ChaosEvent::Kind::kill_two,
                                         ChaosEvent::Kind::pause_worker, ChaosEvent::Kind::kill_coordinator,
                                         ChaosEvent::Kind::scale};
  for (size_t i = kinds.size(); i > 1; --i) std::swap(kinds[i - 1], kinds[random.below(i)]);
  return kinds;
}

// Returns a number of workers that differs from `now`.
int64_t other_size(RandomStream& random, int64_t now, int64_t most) {
  const auto drawn = 1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(most - 1)));
  return drawn < now ? drawn : drawn + 1;
}

// Maps each step to the digests that the ledger gives it.
std::map<int64_t, std::set<std::string>> read_ledger(const std::string& text) {
  std::map<int64_t, std::set<std::string>> steps;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("step") || !json.contains("digest")) continue;
    if (!json["step"].is_number_integer() || !json["digest"].is_string()) continue;
    steps[json["step"].get<int64_t>()].insert(json["digest"].get<std::string>());
  }
  return steps;
}

}  // namespace

std::string to_string(const ChaosEvent& event) {
  char text[160];
  const auto which = static_cast<unsigned long long>(event.pick);
  switch (event.kind) {
    case ChaosEvent::Kind::kill_worker: std::snprintf(text, sizeof text, "kill -9 a worker (draw %llu)", which); break;
    case ChaosEvent::Kind::kill_two:
      std::snprintf(text, sizeof text, "kill -9 two workers at once (draw %llu)", which);
      break;
    case ChaosEvent::Kind::pause_worker:
      std::snprintf(text, sizeof text, "stop a worker (draw %llu) and let it go on %.1f s later", which, event.seconds);
      break;
    case ChaosEvent::Kind::kill_coordinator: std::snprintf(text, sizeof text, "kill -9 the coordinator"); break;
    case ChaosEvent::Kind::scale:
      std::snprintf(text, sizeof text, "scale to %lld workers", static_cast<long long>(event.workers));
      break;
  }
  return text;
}

std::vector<ChaosEvent> chaos_plan(uint64_t seed, int64_t workers, int64_t events, double every) {
  RandomStream random(derive(random_key({seed}), "chaos"));
  const int64_t most = std::max<int64_t>(workers, 2) + 1;
  std::vector<ChaosEvent> plan;
  std::vector<ChaosEvent::Kind> round;
  double at = 0;
  for (int64_t i = 0; i < events; ++i) {
    if (round.empty()) round = next_round(random);
    ChaosEvent event;
    at += every * random.uniform(0.5, 1.5);
    event.at = at;
    event.kind = round.back();
    round.pop_back();
    event.pick = random.below(1000);
    if (event.kind == ChaosEvent::Kind::pause_worker) event.seconds = random.uniform(2, 5);
    if (event.kind == ChaosEvent::Kind::scale) event.workers = workers = other_size(random, workers, most);
    plan.push_back(event);
  }
  return plan;
}

bool is_due(const std::vector<ChaosEvent>& plan, size_t next, double seconds, int64_t step, int64_t steps) {
  if (next >= plan.size()) return false;
  const double share = static_cast<double>(next + 1) / static_cast<double>(plan.size() + 1);
  return seconds >= plan[next].at || static_cast<double>(step) >= share * static_cast<double>(steps);
}

int64_t last_step(const std::string& ledger) {
  const auto steps = read_ledger(ledger);
  return steps.empty() ? 0 : steps.rbegin()->first;
}

LedgerVerdict compare_ledgers(const std::string& undisturbed, const std::string& disturbed) {
  const auto calm = read_ledger(undisturbed), wild = read_ledger(disturbed);
  LedgerVerdict verdict;
  verdict.steps = static_cast<int64_t>(calm.size());
  for (const auto& [step, digests] : calm) {
    const auto found = wild.find(step);
    if (found == wild.end()) {
      ++verdict.missing;
    } else if (found->second == digests && digests.size() == 1) {
      ++verdict.equal;
    } else {
      if (verdict.differing++ == 0) verdict.first_difference = step;
    }
  }
  for (const auto& [step, digests] : wild) verdict.surplus += calm.contains(step) ? 0 : 1;
  return verdict;
}

std::string to_string(const LedgerVerdict& verdict) {
  const std::string of = std::to_string(verdict.equal) + " of " + std::to_string(verdict.steps) + " steps";
  if (verdict.steps == 0) return "the undisturbed run left no ledger: nothing to compare";
  if (verdict.same()) return "the same to the last bit: " + of + " have the same digest";
  std::string text = "NOT the same: " + of + " have the same digest";
  if (verdict.differing > 0)
    text += ", " + std::to_string(verdict.differing) + " differ, the first is step " +
            std::to_string(verdict.first_difference);
  if (verdict.missing > 0) text += ", " + std::to_string(verdict.missing) + " are missing";
  if (verdict.surplus > 0) text += ", " + std::to_string(verdict.surplus) + " are too many";
  return text;
}

}  // namespace sinew::supervise
