// Stories by their seeds. One again, with its log: SINEW_SIM_SEED=N sim_test; many from there on: SINEW_SIM_SEEDS=M
// too.
#include "story.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>

namespace sinew::sim {
namespace {

constexpr uint64_t kShort = 200;  // stories
constexpr size_t kLines = 200;    // of a failed story's log, its last

uint64_t number_in_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// A story may also end in a failed check of the product's, or worse: which one it was is said then.
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

Judge::Told play(uint64_t first, uint64_t count) {
  Judge::Told told;
  for (const int signal : {SIGABRT, SIGSEGV}) std::signal(signal, on_crash);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    playing = seed;
    Story story(seed);
    story.play();
    told += story.told();
    if (!story.complaint()) continue;
    print_log(story, kLines);
    ADD_FAILURE() << "seed " << seed << ": " << *story.complaint() << "\nonce more: SINEW_SIM_SEED=" << seed
                  << " build/plain/bin/sim_test --gtest_filter=Story.*";
    break;
  }
  std::cout << told.stories << " stories: " << told.attempts << " attempts, " << told.steps << " steps, " << told.views
            << " views, " << told.recomputed << " shards computed twice, " << told.effects << " changes of the disk\n";
  return told;
}

// Enough must have happened for a test to say something.
void expect_enough(const Judge::Told& told) {
  EXPECT_GT(told.attempts, told.stories * 5 / 4);
  EXPECT_GT(told.views, told.stories * 10);
  EXPECT_GT(told.recomputed, told.stories);
  EXPECT_GT(told.effects, told.stories * 10);
}

TEST(Story, WhateverHappensTheRunIsThatOfOneUndisturbedMember) {
  const auto first = number_in_environment("SINEW_SIM_SEED", 0);
  const bool one = std::getenv("SINEW_SIM_SEED") != nullptr;
  const auto told = play(first, number_in_environment("SINEW_SIM_SEEDS", one ? 1 : kShort));
  if (told.stories >= static_cast<int64_t>(kShort)) expect_enough(told);
}

TEST(Story, OneSeedIsOneStory) {
  for (const uint64_t seed : {3, 4, 5}) {
    Story one(seed), other(seed);
    one.play();
    other.play();
    EXPECT_EQ(one.log(), other.log()) << "seed " << seed;
  }
}

TEST(LongStory, WhateverHappensTheRunIsThatOfOneUndisturbedMember) {
  if (std::getenv("SINEW_LONG") == nullptr) GTEST_SKIP();
  const auto told = play(100'000, 10'000);
  EXPECT_EQ(told.stories, 10'000);
  expect_enough(told);
}

}  // namespace
}  // namespace sinew::sim
