// When the part of a command is over, whichever life of it that sees.
#include "study/generations.h"

#include <gtest/gtest.h>

#include <vector>

namespace sinew::study {
namespace {

// The evaluation by which it is over; 0: by none of them.
int64_t over_by(PartEnd part, const std::vector<int64_t>& evaluations) {
  int64_t by = 0;
  for (const int64_t evaluation : evaluations) {
    if (!part.is_over_by(evaluation)) continue;
    EXPECT_EQ(by, 0) << "once";
    by = evaluation;
  }
  EXPECT_EQ(part.over(), by > 0);
  return by;
}

TEST(PartEnd, IsAtItsLastEvaluation) {
  EXPECT_EQ(over_by(PartEnd(3), {1, 2}), 0);
  EXPECT_EQ(over_by(PartEnd(3), {1, 2, 3, 4}), 3);
  EXPECT_EQ(over_by(PartEnd(), {1, 2, 3, 1000000}), 0);
}

TEST(PartEnd, OfALifeBeforeCountsWhatItMeasured) {
  EXPECT_EQ(over_by(PartEnd(3, 2), {1, 2, 3}), 3);
}

TEST(PartEnd, WhereTheLifeBeforeHadNotSavedThisOneTrainsFirst) {
  EXPECT_EQ(over_by(PartEnd(3, 3), {1, 2, 3}), 0) << "all of them are of the life before";
  EXPECT_EQ(over_by(PartEnd(3, 4), {1, 2, 3, 4, 5}), 5);
  EXPECT_EQ(over_by(PartEnd(3, 4), {1, 2, 3, 4, 1, 2, 3, 4}), 3) << "it began behind them, and they come again";
}

}  // namespace
}  // namespace sinew::study
