#include "group/group.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "group/simulation.h"

namespace sinew::group {
namespace {

using simulation::Script;
using simulation::Town;
using simulation::World;

// Runs one script over links in memory.
Town::Tally play(const Script& script) {
  link::MemoryNetwork network;
  World world;
  world.join = [&](link::Events events) { return network.join(std::move(events)); };
  world.kill = [&](MemberId id) { network.kill(id); };
  Town town(script, world);
  town.run();
  return town.tally();
}

Town::Tally play_over_tcp(const Script& script) {
  link::TcpOptions options;
  options.job = "simulation";
  options.credentials = self_certified("of the test");
  options.connect_seconds = options.silence_seconds = 60;  // so that a slow machine does not look like a lost peer
  World world;
  world.join = [&](link::Events events) { return link::tcp_links(options, std::move(events)); };
  Town town(script, world);
  town.run();
  return town.tally();
}

Script random_script(uint64_t seed) {
  RandomStream random(random_key({seed, 6}));
  Script script;
  script.seed = seed;
  script.members = static_cast<int64_t>(1 + random.below(5));
  script.collectives = static_cast<int64_t>(3 + random.below(8));
  script.kills = static_cast<int>(random.below(4));
  script.joins = static_cast<int>(random.below(3));
  script.shares = static_cast<int>(random.below(3));
  script.leaves = static_cast<int>(random.below(2));
  return script;
}

TEST(Group, AnyNumberOfMembersGetTheResultsOfOneProcess) {
  for (int64_t members = 1; members <= 6; ++members) {
    for (uint64_t seed = 0; seed < 5; ++seed) {
      play({.seed = 100 + seed, .members = members, .collectives = 8, .slow_views = false});
    }
    if (HasFailure()) return;
  }
}

TEST(Group, WorksWithMoreMembersThanShards) {
  for (uint64_t seed = 0; seed < 3; ++seed) play({.seed = 200 + seed, .members = 20, .collectives = 4});
}

// Runs random scripts and counts what happened.
Town::Tally play_random(uint64_t first, uint64_t count, Town::Tally (*play_one)(const Script&) = play) {
  Town::Tally tally;
  for (uint64_t seed = first; seed < first + count && !testing::Test::HasFailure(); ++seed) {
    tally += play_one(random_script(seed));
    EXPECT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
  std::cout << "killed " << tally.killed << ", joined " << tally.joined << " (" << tally.admitted << " admitted, "
            << tally.gave_up << " gave up), views " << tally.views << ", shards healed " << tally.healed
            << ", computed twice " << tally.recomputed << '\n';
  return tally;
}

// Checks that the scripts killed, joined and healed often enough to make the test meaningful.
void expect_enough(const Town::Tally& tally, int64_t more_than) {
  EXPECT_GT(tally.killed, more_than);
  EXPECT_GT(tally.joined, more_than);
  EXPECT_GT(tally.healed, more_than);
}

TEST(Group, ARandomlyDisturbedGroupGetsTheResultsOfOneProcess) {
  expect_enough(play_random(1000, 150), 20);
}

TEST(Group, AuditsChangeNoResult) {
  Town::Tally tally;
  for (uint64_t seed = 4000; seed < 4060; ++seed) {
    Script script = random_script(seed);
    script.audit = seed % 3 == 0 ? 0.2 : 1;
    tally += play(script);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(tally.audited, 500);
  EXPECT_EQ(tally.named, 0);
}

// One member computes one wrong result, as owner or as auditor of a shard. The group must name this member and no
// other, and its results must equal those of one process.
Town::Tally play_liars(uint64_t first, uint64_t count) {
  Town::Tally tally;
  for (uint64_t seed = first; seed < first + count && !testing::Test::HasFailure(); ++seed) {
    Script script = random_script(seed);
    script.members = 8 + static_cast<int64_t>(seed % 3);
    script.kills = static_cast<int>(seed % 3);
    script.leaves = 0;
    script.audit = 1;
    script.lies = 2;  // tries; the second one counts if the first comes too early
    tally += play(script);
    EXPECT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
  std::cout << "lied " << tally.lied << ", named " << tally.named << ", audited " << tally.audited << ", killed "
            << tally.killed << '\n';
  return tally;
}

TEST(Group, AMemberThatComputesAWrongResultIsNamedAndNobodyElse) {
  const Town::Tally tally = play_liars(5000, 100);
  EXPECT_GT(tally.lied, 40);
  EXPECT_GT(tally.named, tally.lied * 3 / 4);
}

TEST(LongGroup, AMemberThatComputesAWrongResultIsNamedAndNobodyElse) {
  if (std::getenv("SINEW_LONG") == nullptr) GTEST_SKIP();
  const Town::Tally tally = play_liars(300000, 3000);
  EXPECT_GT(tally.named, tally.lied * 3 / 4);
}

TEST(Group, GetsTheSameResultsOverTcp) {
  expect_enough(play_random(3000, 10, play_over_tcp), 0);
}

TEST(LongGroup, GetsTheSameResultsOverTcp) {
  if (std::getenv("SINEW_LONG") == nullptr) GTEST_SKIP();
  expect_enough(play_random(200000, 500, play_over_tcp), 50);
}

TEST(LongGroup, ARandomlyDisturbedGroupGetsTheResultsOfOneProcess) {
  if (std::getenv("SINEW_LONG") == nullptr) GTEST_SKIP();
  expect_enough(play_random(100000, 5000), 500);
}

}  // namespace
}  // namespace sinew::group
