// Tests the search space of a job, and its points as overrides of the job.
#include "study/search_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "study/study.h"
#include "study/testing.h"

namespace sinew::study {
namespace {

TEST(SearchSpace, ChoicesAndNumbersBecomeOverrides) {
  const tune::Space space = sample_space();
  EXPECT_THAT(overrides_of(space, {0.01, 0, 0.5}),
              testing::ElementsAre("optimizer.lr=0.01", "optimizer.name=sgd", "optimizer.momentum=0.5"));
  EXPECT_THAT(overrides_of(space, {0.1, 1, tune::kInactive}),
              testing::ElementsAre("optimizer.lr=0.1", "optimizer.name=adamw"));
}

TEST(SearchSpace, ASearchWithoutValidPointsNamesTheFile) {
  spec::Job job;
  job.tune.search = sample_search();
  EXPECT_NO_THROW(check_search(job, "job.yaml"));
  job.tune.parameter_constraints = {"optimizer.lr > 2"};
  try {
    check_search(job, "job.yaml");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("job.yaml: "));
  }
}

}  // namespace
}  // namespace sinew::study
