// Tests the metrics of a trial, which are read while its training appends to the file or shortens it.
#include "study/trial_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/disk.h"

namespace sinew::study {
namespace {

using testing::ElementsAre;

struct TrialMetricsFile : testing::Test {
  TrialMetricsFile() {
    system_disk().remove_all(folder);
    system_disk().make_directories(folder);
  }
  void write(std::string_view text) const { write_durably(system_disk(), folder + "/metrics.jsonl", text); }
  void append(std::string_view text) const {
    system_disk().append(folder + "/metrics.jsonl")->write(std::as_bytes(std::span(text)));
  }
  std::string folder = testing::TempDir() + "trial_metrics";
};

TEST_F(TrialMetricsFile, EveryMetricHasItsValueAtEachEvaluation) {
  TrialMetrics metrics(folder, {"val/loss", "val/accuracy", "cost/size"});
  EXPECT_TRUE(metrics.next().empty()) << "no file yet";
  write("{\"step\":1,\"cost/size\":7}\n{\"step\":2,\"val/loss\":3,\"val/accuracy\":0.5}\n{\"st");
  ASSERT_EQ(metrics.next().size(), 1U);
  EXPECT_THAT(metrics.at(1), ElementsAre(3, 0.5, 7));
  append("ep\":3,\"val/accuracy\":0.6}\n{\"step\":4,\"val/loss\":2}\n{\"step\":5,\"cost/size\":8}\n");
  const auto fresh = metrics.next();
  ASSERT_EQ(fresh.size(), 1U);
  EXPECT_EQ(fresh[0].number, 2);
  EXPECT_EQ(fresh[0].value, 2);
  EXPECT_THAT(metrics.at(1), ElementsAre(3, 0.5, 7)) << "unchanged";
  EXPECT_THAT(metrics.at(2), ElementsAre(2, 0.6, 7));
  EXPECT_THAT(metrics.last(), ElementsAre(2, 0.6, 8));
  write("{\"step\":2,\"val/loss\":4}\n");  // a resumed training shortened the file
  ASSERT_EQ(metrics.next().size(), 1U);
  EXPECT_EQ(metrics.count(), 1);
  EXPECT_TRUE(std::isnan(metrics.at(1)[1]));
}

// A training that was prolonged measures the test once more, after the best evaluation of the first part.
TEST_F(TrialMetricsFile, TheTestIsThatOfTheNewestModel) {
  TrialMetrics metrics(folder, {"val/loss", "test/loss", "val/loss"});
  write("{\"val/loss\":3}\n{\"test/loss\":7}\n{\"val/loss\":2}\n{\"val/loss\":4}\n{\"test/loss\":5}\n");
  metrics.next();
  EXPECT_THAT(metrics.at_best(true), ElementsAre(2, 5, 2));
}

TEST_F(TrialMetricsFile, AFileThatWasCutAndGrewAgainIsReadFromItsBeginning) {
  TrialMetrics metrics(folder, {"val/loss"});
  write("{\"val/loss\":3}\n{\"val/loss\":2}\n");
  EXPECT_EQ(metrics.next().size(), 2U);
  write("{\"val/loss\":3}\n{\"val/loss\":1}\n{\"val/loss\":0.5}\n");
  const auto again = metrics.next();
  ASSERT_EQ(again.size(), 3U);
  EXPECT_EQ(again[1].number, 2);
  EXPECT_EQ(again[1].value, 1);
}

TEST_F(TrialMetricsFile, AValueThatIsNotFiniteIsNaN) {
  TrialMetrics metrics(folder, {"val/loss"});
  write("{\"val/loss\":null}\n{\"val/loss\":\"NaN\"}\n{\"val/loss\":\"Infinity\"}\n{\"val/loss\":\"-Infinity\"}\n");
  const auto evaluations = metrics.next();
  ASSERT_EQ(evaluations.size(), 4U);
  for (const auto& evaluation : evaluations) EXPECT_TRUE(std::isnan(evaluation.value));
}

TEST_F(TrialMetricsFile, TheBestEvaluationIsThatOfTheLastMetric) {
  TrialMetrics metrics(folder, {"val/loss", "val/accuracy"});
  write(
      "{\"val/loss\":3,\"val/accuracy\":0.5}\n{\"val/loss\":2,\"val/accuracy\":0.9}\n"
      "{\"val/loss\":1,\"val/accuracy\":0.7}\n");
  metrics.next();
  EXPECT_THAT(metrics.at_best(false), ElementsAre(2, 0.9));
  EXPECT_THAT(metrics.at_best(true), ElementsAre(3, 0.5));
}

}  // namespace
}  // namespace sinew::study
