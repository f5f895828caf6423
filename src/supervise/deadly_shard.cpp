#include "supervise/deadly_shard.h"

#include <algorithm>
#include <tuple>

#include "base/joined.h"

namespace sinew::supervise {
namespace {

bool same_shard(const Work& a, const Work& b) {
  return std::tie(a.kind, a.step, a.shard) == std::tie(b.kind, b.step, b.shard);
}

bool had(const Death& death, const Work& work) {
  return std::any_of(death.in_flight.begin(), death.in_flight.end(),
                     [&](const Work& other) { return same_shard(other, work); });
}

std::string sentence(const std::vector<Work>& guilty, const std::vector<Death>& deaths, const std::string& resume) {
  std::vector<std::string> ways, shards;
  for (const Death& death : deaths) {
    if (had(death, guilty[0])) ways.push_back(death.how);
  }
  for (const Work& work : guilty) shards.push_back(to_string(work));
  return joined(shards, " or ") + " killed " + std::to_string(ways.size()) + " workers in turn (" + joined(ways, ", ") +
         "): the run is stopped\n"
         "  try: look at those samples; if memory is short, fewer workers or trainer.lanes=1. Then: " +
         resume;
}

}  // namespace

std::vector<Work> in_flight(const std::vector<LaneActivity>& activity) {
  std::vector<Work> found;
  for (const LaneActivity& lane : activity) {
    const bool shard = lane.work.kind == Work::Kind::computing || lane.work.kind == Work::Kind::evaluating;
    if (shard) found.push_back(lane.work);
  }
  return found;
}

void forget_before(int64_t step, std::vector<Death>& deaths) {
  std::erase_if(deaths, [&](const Death& death) {
    return std::all_of(death.in_flight.begin(), death.in_flight.end(),
                       [&](const Work& work) { return work.step < step; });
  });
}

std::optional<std::string> deadly_shard_in(const std::vector<Death>& deaths, int64_t most, const std::string& resume) {
  std::vector<Work> guilty;
  int64_t worst = most;
  for (const Death& death : deaths) {
    for (const Work& work : death.in_flight) {
      const auto times =
          std::count_if(deaths.begin(), deaths.end(), [&](const Death& other) { return had(other, work); });
      if (times > worst) guilty.clear();
      const bool known = std::any_of(guilty.begin(), guilty.end(), [&](const Work& g) { return same_shard(g, work); });
      if (times >= worst && !known) guilty.push_back(work);
      worst = std::max<int64_t>(worst, times);
    }
  }
  if (guilty.empty()) return std::nullopt;
  return sentence(guilty, deaths, resume);
}

}  // namespace sinew::supervise
