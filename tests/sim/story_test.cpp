// Plays the stories of many seeds. SINEW_SIM_SEED=N plays only story N; with SINEW_SIM_SEEDS=M, it plays the M stories
// from N on. A failed story prints its log.
#include "story.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>

namespace sinew::sim {
namespace {

constexpr uint64_t kShort = 200, kTwoLeaders = 300;  // stories
constexpr size_t kLines = 200;                       // last lines of a failed story's log

uint64_t number_in_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// A story may also end in a failed SINEW_CHECK or a crash. Then on_crash prints the seed, which is in `playing`.
volatile uint64_t playing = 0;

void on_crash(int signal) {
  char text[96];
  const int size = std::snprintf(text, sizeof text, "it ended here: SINEW_SIM_SEED=%llu\n",
                                 static_cast<unsigned long long>(playing));
  if (write(STDERR_FILENO, text, static_cast<size_t>(size)) < 0) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void print_log(const Story& story, size_t most) {
  const auto& log = story.log();
  for (size_t i = log.size() > most ? log.size() - most : 0; i < log.size(); ++i) std::cout << log[i] << '\n';
}

Judge::Tally play(uint64_t first, uint64_t count, Faults faults = Faults::without_changes) {
  Judge::Tally tally;
  for (const int signal : {SIGABRT, SIGSEGV}) std::signal(signal, on_crash);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    playing = seed;
    Story story(seed, faults);
    story.play();
    tally += story.tally();
    if (!story.complaint()) continue;
    print_log(story, kLines);
    ADD_FAILURE() << "seed " << seed << ": " << *story.complaint() << "\nonce more: SINEW_SIM_SEED=" << seed
                  << " build/plain/bin/sim_test --gtest_filter='" << (faults == Faults::two_leaders ? "Two" : "Story")
                  << "*'";
    break;
  }
  std::cout << tally.stories << " stories: " << tally.attempts << " attempts, " << tally.steps << " steps, "
            << tally.views << " views, " << tally.recomputed << " shards computed twice, " << tally.effects
            << " changes of the disk, " << tally.entries << " control entries, " << tally.changes
            << " changes of memory, " << tally.noticed << " times noticed, " << tally.splits << " without a majority, "
            << tally.not_judged << " not judged, " << tally.lies << " wrong results, " << tally.blamed
            << " blamed for one, " << tally.replaced << " leaders replaced, " << tally.elections << " elections\n";
  return tally;
}

// A test is only meaningful if enough happened.
void expect_enough(const Judge::Tally& tally) {
  EXPECT_GT(tally.attempts, tally.stories * 5 / 4);
  EXPECT_GT(tally.views, tally.stories * 10);
  EXPECT_GT(tally.recomputed, tally.stories);
  EXPECT_GT(tally.effects, tally.stories * 10);
  EXPECT_GT(tally.entries, tally.stories);
}

TEST(Story, WhateverHappensTheRunIsThatOfOneUndisturbedMember) {
  const auto first = number_in_environment("SINEW_SIM_SEED", 0);
  const bool one = std::getenv("SINEW_SIM_SEED") != nullptr;
  const auto tally = play(first, number_in_environment("SINEW_SIM_SEEDS", one ? 1 : kShort));
  if (tally.stories >= static_cast<int64_t>(kShort)) expect_enough(tally);
}

// Memory of members changes, and workers die in between. No wrong result remains.
TEST(Story, AChangeOfAMembersMemoryLeavesNoTrace) {
  const auto first = number_in_environment("SINEW_SIM_SEED", 0);
  const bool one = std::getenv("SINEW_SIM_SEED") != nullptr;
  const auto tally = play(first, number_in_environment("SINEW_SIM_SEEDS", one ? 1 : kShort), Faults::changes);
  if (tally.stories < static_cast<int64_t>(kShort)) return;
  EXPECT_GT(tally.changes, tally.stories);
  EXPECT_GT(tally.noticed, tally.stories);
  EXPECT_GT(tally.splits, tally.stories / 20);
  EXPECT_LT(tally.not_judged, tally.stories / 4);
}

TEST(Story, AChangeOfAMembersMemoryAmongOtherFaultsLeavesNoTrace) {
  const auto first = number_in_environment("SINEW_SIM_SEED", 0);
  const bool one = std::getenv("SINEW_SIM_SEED") != nullptr;
  const auto tally = play(first, number_in_environment("SINEW_SIM_SEEDS", one ? 1 : kShort), Faults::all);
  if (tally.stories < static_cast<int64_t>(kShort)) return;
  EXPECT_GT(tally.noticed, tally.stories / 2);
  EXPECT_LT(tally.not_judged, tally.stories / 2);
}

// Members compute wrong results, and workers die in between. The others find out who it was before they use the result,
// and blame nobody else.
TEST(Story, AWrongResultLeavesNoTrace) {
  const auto first = number_in_environment("SINEW_SIM_SEED", 0);
  const bool one = std::getenv("SINEW_SIM_SEED") != nullptr;
  const auto tally = play(first, number_in_environment("SINEW_SIM_SEEDS", one ? 1 : kShort), Faults::lies);
  if (tally.stories < static_cast<int64_t>(kShort)) return;
  EXPECT_GT(tally.lies, tally.stories);
  EXPECT_GT(tally.blamed, tally.stories / 2);
  EXPECT_GT(tally.splits, tally.stories / 50);
  EXPECT_LT(tally.not_judged, tally.stories / 4);
}

void play_two_leaders(uint64_t first, uint64_t count) {
  const auto tally = play(first, count, Faults::two_leaders);
  if (tally.stories < static_cast<int64_t>(kTwoLeaders)) return;
  EXPECT_GT(tally.replaced, tally.stories / 2);
}

// A leader is suspended in a call of the disk, another takes over, and the first one continues. From then on, it
// changes nothing.
TEST(TwoLeaders, OnlyTheNewestChangesFilesOfTheRun) {
  const bool one = std::getenv("SINEW_SIM_SEED") != nullptr;
  play_two_leaders(number_in_environment("SINEW_SIM_SEED", 0),
                   number_in_environment("SINEW_SIM_SEEDS", one ? 1 : kTwoLeaders));
}

TEST(LongTwoLeaders, OnlyTheNewestChangesFilesOfTheRun) {
  if (std::getenv("SINEW_LONG") == nullptr) GTEST_SKIP();
  play_two_leaders(1'000'000, 20'000);
}

// Supervisors die with their coordinators, are suspended and continue, and lose the lock of the run. The members elect
// a coordinator, which may die or be suspended as well. Never do two coordinators lead.
TEST(Story, ACoordinatorThatIsLostIsReplacedByAMember) {
  const auto first = number_in_environment("SINEW_SIM_SEED", 0);
  const bool one = std::getenv("SINEW_SIM_SEED") != nullptr;
  const auto tally = play(first, number_in_environment("SINEW_SIM_SEEDS", one ? 1 : kShort), Faults::leaders);
  if (tally.stories < static_cast<int64_t>(kShort)) return;
  EXPECT_GT(tally.elections, tally.stories / 4);
}

TEST(Story, ASeedAlwaysGivesTheSameStory) {
  for (const Faults faults : {Faults::without_changes, Faults::leaders}) {
    for (const uint64_t seed : {3, 4, 5}) {
      Story one(seed, faults), other(seed, faults);
      one.play();
      other.play();
      EXPECT_EQ(one.log(), other.log()) << "seed " << seed;
    }
  }
}

TEST(LongStory, ACoordinatorThatIsLostIsReplacedByAMember) {
  if (std::getenv("SINEW_LONG") == nullptr) GTEST_SKIP();
  const auto tally = play(200'000, 20'000, Faults::leaders);
  EXPECT_EQ(tally.stories, 20'000);
  EXPECT_GT(tally.elections, tally.stories / 4);
}

TEST(LongStory, WhateverHappensTheRunIsThatOfOneUndisturbedMember) {
  if (std::getenv("SINEW_LONG") == nullptr) GTEST_SKIP();
  const auto tally = play(100'000, 10'000);
  EXPECT_EQ(tally.stories, 10'000);
  expect_enough(tally);
}

}  // namespace
}  // namespace sinew::sim
