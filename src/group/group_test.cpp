#include "group/group.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "group/simulation.h"

namespace sinew::group {
namespace {

using simulation::Script;
using simulation::Town;
using simulation::World;

// One script over members in memory; how many joiners gave up.
int64_t play(const Script& script) {
  link::MemoryNetwork network;
  World world;
  world.join = [&](link::Events events) { return network.join(std::move(events)); };
  world.kill = [&](MemberId id) { network.kill(id); };
  Town town(script, world);
  town.run();
  return town.put_out_joiners();
}

uint64_t seeds(uint64_t count) {
  return std::getenv("SINEW_LONG") != nullptr ? count * 10 : count;
}

Script random_script(uint64_t seed) {
  RandomStream random(random_key({seed, 6}));
  Script script;
  script.seed = seed;
  script.members = static_cast<int64_t>(1 + random.below(5));
  script.rounds = static_cast<int64_t>(3 + random.below(8));
  script.kills = static_cast<int>(random.below(4));
  script.joins = static_cast<int>(random.below(3));
  script.shares = static_cast<int>(random.below(3));
  script.leaves = static_cast<int>(random.below(2));
  return script;
}

TEST(Group, AnyNumberOfMembersGetTheRootsOfOneProcess) {
  for (int64_t members = 1; members <= 6; ++members) {
    for (uint64_t seed = 0; seed < 5; ++seed) {
      play({.seed = 100 + seed, .members = members, .rounds = 8, .slow_views = false});
    }
    if (HasFailure()) return;
  }
}

TEST(Group, MoreMembersThanShards) {
  for (uint64_t seed = 0; seed < 3; ++seed) play({.seed = 200 + seed, .members = 20, .rounds = 4});
}

TEST(Group, ARandomlyTroubledGroupGetsTheRootsOfOneProcess) {
  int64_t gave_up = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    gave_up += play(random_script(1000 + seed));
    ASSERT_FALSE(HasFailure()) << "seed " << 1000 + seed;
  }
  RecordProperty("joiners_that_gave_up", std::to_string(gave_up));
}

}  // namespace
}  // namespace sinew::group
