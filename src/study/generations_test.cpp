// Tests that a generation of a command ends at the right evaluation, whichever process of the trial measures it.
#include "study/generations.h"

#include <gtest/gtest.h>

#include <vector>

namespace sinew::study {
namespace {

// Returns the evaluation that ends the generation, or 0 if none ends it.
int64_t evaluation_that_ends(GenerationEnd end, const std::vector<int64_t>& evaluations) {
  int64_t ended_at = 0;
  for (const int64_t evaluation : evaluations) {
    if (!end.ends_at(evaluation)) continue;
    EXPECT_EQ(ended_at, 0) << "ends_at() returns true once";
    ended_at = evaluation;
  }
  EXPECT_EQ(end.reached(), ended_at > 0);
  return ended_at;
}

TEST(GenerationEnd, ComesAtTheLastEvaluation) {
  EXPECT_EQ(evaluation_that_ends(GenerationEnd(3), {1, 2}), 0);
  EXPECT_EQ(evaluation_that_ends(GenerationEnd(3), {1, 2, 3, 4}), 3);
  EXPECT_EQ(evaluation_that_ends(GenerationEnd(), {1, 2, 3, 1000000}), 0);
}

TEST(GenerationEnd, CountsEvaluationsOfEarlierProcesses) {
  EXPECT_EQ(evaluation_that_ends(GenerationEnd(3, 2), {1, 2, 3}), 3);
}

TEST(GenerationEnd, TrainsOnceMoreIfTheEarlierProcessDidNotSave) {
  EXPECT_EQ(evaluation_that_ends(GenerationEnd(3, 3), {1, 2, 3}), 0) << "the earlier process measured all of them";
  EXPECT_EQ(evaluation_that_ends(GenerationEnd(3, 4), {1, 2, 3, 4, 5}), 5);
  EXPECT_EQ(evaluation_that_ends(GenerationEnd(3, 4), {1, 2, 3, 4, 1, 2, 3, 4}), 3)
      << "the new process started from an earlier state, so its evaluations count from 1 again";
}

}  // namespace
}  // namespace sinew::study
